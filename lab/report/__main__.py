"""``python -m lab.report``: build the Allure report of a session's results."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from lab.errors import BAD_INPUT, FAULT, InputError, LabFault
from lab.report import build


def main(arguments: list[str] | None = None) -> int:
    """Build the report, and print where it is.

    Returns 0, 1 if the quality gate is not met, 2 on bad input, 3 on a fault of the lab.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        return _build(sys.argv[1:] if arguments is None else arguments)
    except (InputError, LabFault) as error:
        print(f"lab: {error}", file=sys.stderr)
        return FAULT if isinstance(error, LabFault) else BAD_INPUT


def _build(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m lab.report",
        description="the report of a session's results: its page, and the evidence behind it",
    )
    parser.add_argument("--results", type=Path, default=Path("results"), help="the session's folder (default: results)")
    parser.add_argument("--least", type=int, metavar="N", help="fail unless the results hold at least N tests")
    parser.add_argument("--zip", action="store_true", help="pack the pages and the report into one file, to attach to a ticket")
    chosen = parser.parse_args(arguments)
    built = build.build(chosen.results)
    print(f"evidence: {built}")
    if chosen.zip:
        packed = build.archive(chosen.results)
        print(f"archive: {packed} ({packed.stat().st_size / 1e6:.1f} MB)")
    wrong = build.gate(chosen.results, chosen.least) if chosen.least is not None else None
    if wrong:
        print(f"lab: quality gate: {wrong}", file=sys.stderr)
    if built.page is not None:
        print(f"read {built.page}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
