"""A command in this process: what it prints, or the line with which it refuses."""

import pytest

from lab.__main__ import main
from lab.errors import BREACHED, HELD


@pytest.fixture
def lab(capsys):
    """A function that runs a command in this process: what it prints. Nothing but a breach may be wrong."""

    def run(*arguments):
        code = main([*arguments])
        said = capsys.readouterr()
        assert (code in (HELD, BREACHED), said.err) == (True, "")
        return said.out

    return run


@pytest.fixture
def refused(capsys):
    """A function that runs a command: the line on stderr; the exit code must be 2 and nothing printed."""

    def run(*arguments):
        try:
            code = main([*map(str, arguments)])
        except SystemExit as end:
            code = end.code
        said = capsys.readouterr()
        assert (code, said.out) == (2, "")
        (line,) = said.err.strip().splitlines()
        return line

    return run
