"""``python -m lab.report``: build the Allure report of a session's results."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from lab.errors import InputError, LabFault
from lab.report import build


def main(arguments: list[str] | None = None) -> int:
    """Build the report and print where it is; returns 0, 1 if the quality gate is not met, 2 on bad input or a fault."""
    parser = argparse.ArgumentParser(prog="python -m lab.report", description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("results"), help="the session's folder (default: results)")
    parser.add_argument("--least", type=int, metavar="N", help="fail unless the results hold at least N tests")
    chosen = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        print(build.build(chosen.results))
        wrong = build.gate(chosen.results, chosen.least) if chosen.least is not None else None
    except (InputError, LabFault) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    if wrong:
        print(f"lab: quality gate: {wrong}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
