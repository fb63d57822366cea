"""Runs a command of the machine to its end, within a deadline."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.errors import LabFault


def run_command(
    command: Sequence[object],
    limit_s: float,
    what: str,
    *,
    feed: str | None = None,
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """The exit code of ``command``, which may read ``feed``, and what it printed.

    Where it is not over in ``limit_s`` s it is killed, and :class:`LabFault` names ``what``. OSError is raised for no command.
    """
    words = [str(part) for part in command]
    try:
        return subprocess.run(
            words,
            input=feed,
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        raise LabFault(f"{what}: not within {limit_s:g} s") from None
