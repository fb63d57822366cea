"""``python -m lab.host.guard RUN``: waits until the session that started it has ended, then clears what it left.

A session that ends in order removes the run folder itself, and the guard finds nothing to do. A crash closes the pipe all the
same.
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
