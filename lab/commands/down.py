"""``elastic-lab down``: end the clusters that ``--keep-cluster`` left, and what a crash left."""

from __future__ import annotations

import logging
import sys
from argparse import Namespace

from lab.errors import FAULT, HELD
from lab.flags import Flags
from lab.host import runs


def add_flags(parser: Flags) -> None:
    """The command has none."""


def run(options: Namespace) -> int:
    """End them all. Returns the exit code, which is that of a fault where one could not be ended; the log says why."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    standing = runs.clusters()
    runs.clear_all()
    print(f"{sum(not run.exists() for run in standing)} clusters ended")
    return FAULT if runs.left() else HELD
