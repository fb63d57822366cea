"""``python -m lab.report``: build the Allure report of a session's results; ``compare`` sets two runtimes side by side."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from lab.errors import BAD_INPUT, FAULT, InputError, LabFault
from lab.report import build, runtimepage, runtimes

COMPARE = "compare"


def main(arguments: list[str] | None = None) -> int:
    """Build the report, or with ``compare`` the page of two runtimes, and print where it is.

    Returns 0, 1 if the quality gate is not met, 2 on bad input, 3 on a fault of the lab.
    """
    given = sys.argv[1:] if arguments is None else arguments
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        return _compare(given[1:]) if given[:1] == [COMPARE] else _build(given)
    except (InputError, LabFault) as error:
        print(f"lab: {error}", file=sys.stderr)
        return FAULT if isinstance(error, LabFault) else BAD_INPUT


def _build(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m lab.report",
        description="the report of a session's results: its page, and the evidence behind it",
        epilog=f"python -m lab.report {COMPARE} RESULTS_A RESULTS_B: the same trials on two runtimes, side by side",
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


def _compare(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog=f"python -m lab.report {COMPARE}",
        description="Set the trials that were run on two runtimes side by side: one HTML page, and its tables as Markdown.",
    )
    for name in ("first", "second"):
        parser.add_argument(name, type=Path, metavar=f"RESULTS_{'A' if name == 'first' else 'B'}", help="a session's folder")
    parser.add_argument("--output", type=Path, metavar="FILE.html", help="the page (default: RESULTS_A/runtimes.html)")
    chosen = parser.parse_args(arguments)
    output: Path = chosen.output or chosen.first / "runtimes.html"
    if output.suffix != ".html":
        raise InputError(COMPARE, "--output", str(output), "a file whose name ends in .html")
    for file in runtimepage.write(runtimes.compare(chosen.first, chosen.second), output):
        print(f"{file} ({file.stat().st_size / 1e6:.2f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
