"""``elastic-lab report``: the report of a session's results, as ``python -m lab.report`` builds it."""

from __future__ import annotations

from collections.abc import Sequence

from lab.report.__main__ import main


def run(command: str, help_text: str, arguments: Sequence[str]) -> int:
    """Build the report; returns 0, 1 if the quality gate is not met, 2 on bad input, 3 on a fault of the lab."""
    return main(list(arguments))
