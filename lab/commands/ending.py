"""The exit code of a command that judges: by default only what held in full ends with 0."""

from __future__ import annotations

from collections.abc import Collection

from lab.errors import BREACHED, HELD
from lab.flags import Flags, choice
from lab.judge import claim

FAIL_ON = {"no-data": (claim.BREACHED, claim.NO_DATA), "breached": (claim.BREACHED,), "nothing": ()}


def add_flag(parser: Flags) -> None:
    """Add --fail-on."""
    text = "exit with 1 where an objective was breached or had no data (no-data), was breached (breached), or never (nothing)"
    parser.flag("fail-on", choice(*FAIL_ON), "no-data", text)


def code(verdicts: Collection[str], fail_on: str) -> int:
    """The exit code for ``verdicts``, such as "held", where ``--fail-on`` is ``fail_on``."""
    return BREACHED if set(verdicts) & set(FAIL_ON[fail_on]) else HELD
