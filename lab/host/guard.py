"""``python -m lab.host.guard RUN``: waits for the session that started it to end, then clears what it left.

A session that ends in order removes the run folder itself, and this finds nothing to do; a crash closes the pipe all the same.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lab.host import runs


def main() -> None:
    """Block until stdin closes, then clear the run folder named on the command line."""
    run = Path(sys.argv[1])
    sys.stdin.read()
    runs.abandon(run)


if __name__ == "__main__":
    main()
