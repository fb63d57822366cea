"""The suite as a user runs it, for tests that watch it from outside."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from unittest import mock

from lab import paths

NESTED_S = 600  # deadline of a session inside this one: some seconds on a quiet machine
PROGRAM_S = 300  # of a program that answers at once


def experiments(*options: str, tests: Sequence[str] = ("tests/experiments",)) -> list[str]:
    """The command that runs the experiments, or those in the files ``tests``, with ``options``."""
    return [sys.executable, "-m", "pytest", *tests, "-m", "spike or extended", "-p", "no:cacheprovider", *options]


def cases(*options: str) -> list[str]:
    """The tests that pytest would run with ``options``, each case of a parametrized one for itself."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *options]
    ran = subprocess.run(command, cwd=paths.PROJECT, capture_output=True, text=True, timeout=NESTED_S, check=True)
    return [line for line in ran.stdout.splitlines() if "::" in line]


def refused(module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """The one line with which ``main`` of program ``module`` refuses its flags; fails when it is not one line and exit code 2.

    It runs in this process: to start one for each bad flag takes a hundred times as long.
    """
    package = importlib.import_module(module)
    program = importlib.import_module(f"{module}.__main__") if hasattr(package, "__path__") else package
    with (
        mock.patch.object(sys, "argv", [module, *arguments]),
        mock.patch.dict(os.environ, environment),
        contextlib.redirect_stderr(io.StringIO()) as said,
    ):
        try:
            code = program.main()
        except SystemExit as end:
            code = end.code
    assert code == 2
    (line,) = said.getvalue().strip().splitlines()
    return line
