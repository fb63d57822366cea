"""``elastic-lab report``: build the Allure report of a session's results."""

from __future__ import annotations

import json
import logging
import os
import sys
from argparse import Namespace
from pathlib import Path

from lab.flags import Flags
from lab.report import allure_report

RESULTS = Path("results")
LAST = "v/elastic-lab/results"  # what lab.plugin leaves in pytest's cache


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    text = "the session's folder (default: that of the last session that was run from here, else results)"
    parser.flag("results", Path, None, text, optional=True)
    parser.add_argument("--zip", action="store_true", help="pack the pages and the report into one file, to attach to a ticket")


def run(chosen: Namespace) -> int:
    """Build the report, and print where it is. Returns 0."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    results = chosen.results or last_results()
    built = allure_report.build(results)
    print(f"evidence: {built}")
    if chosen.zip:
        packed = allure_report.archive(results)
        print(f"archive: {packed} ({packed.stat().st_size / 1e6:.1f} MB)")
    if built.page is not None:
        print(f"read {built.page}")
    return 0


def last_results() -> Path:
    """The folder of the last session in the current directory, by pytest's cache; ``results`` where it says none.

    The cache is in tox's environment where there is one (pytest's docs, ``cache_dir``).
    """
    try:
        folder = Path(json.loads(Path(os.environ.get("TOX_ENV_DIR", ""), ".pytest_cache", LAST).read_text()))
    except (OSError, ValueError):
        return RESULTS
    return folder if folder.is_dir() else RESULTS
