"""The suite as a user runs it, for tests that watch it from outside."""

from __future__ import annotations

import sys


def experiments(*options: str) -> list[str]:
    """The command that runs the experiments with ``options``."""
    return [sys.executable, "-m", "pytest", "tests/experiments", "-m", "spike", "-p", "no:cacheprovider", *options]
