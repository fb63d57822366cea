"""``elastic-lab report``: build the Allure report of a session's results."""

from __future__ import annotations

import logging
import sys
from argparse import Namespace
from pathlib import Path

from lab.flags import Flags
from lab.report import allure_report, last_session


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    text = "the session's folder (default: that of the last session that was run from here, else results)"
    parser.flag("results", Path, None, text, optional=True)
    parser.add_argument("--zip", action="store_true", help="pack the pages and the report into one file, to attach to a ticket")


def run(chosen: Namespace) -> int:
    """Build the report, and print where it is, or that there is nothing to report. Returns 0."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    results = chosen.results or last_session.find()
    if results is None:
        print("no report: the session did not start")
        return 0
    built = allure_report.build(results)
    print(f"evidence: {built}")
    if chosen.zip:
        packed = allure_report.archive(results)
        print(f"archive: {packed} ({packed.stat().st_size / 1e6:.1f} MB)")
    if built.page is not None:
        print(f"read {built.page}")
    return 0
