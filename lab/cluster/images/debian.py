"""Root file systems of Debian packages, by mmdebstrap: the only part of an image that is not built from source here."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab.errors import LabFault

RELEASE = "bookworm"
_LEFT_OUT = ("man", "doc", "locale", "info")


def check() -> None:
    """Raise :class:`LabFault` in one line when no root file system can be made here."""
    if os.geteuid() != 0:
        raise LabFault("python -m lab images: needs root, to make root file systems and firewall rules: run it with sudo")
    if shutil.which("mmdebstrap") is None:
        raise LabFault("python -m lab images: no mmdebstrap command on PATH: apt install mmdebstrap")


def root(archive: Path, packages: Sequence[str], hooks: Sequence[str] = (), whole: bool = False) -> None:
    """Write a root file system with ``packages`` and their dependencies to ``archive``, a tar; ``hooks`` run in it ("$1").

    ``whole`` adds Debian's base and runs the packages' scripts; without it their files are unpacked and nothing runs.
    """
    kept = [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in _LEFT_OUT]
    variant, moment = ("minbase", "customize") if whole else ("extract", "extract")
    made = [f"--{moment}-hook={hook}" for hook in ('mkdir -p -m 1777 "$1/tmp"', *hooks)]
    result = subprocess.run(
        ["mmdebstrap", f"--variant={variant}", f"--include={','.join(packages)}", *kept, *made, RELEASE, str(archive)],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if line.startswith(("E:", "W:"))] or ["it printed no reason"]
        raise LabFault(f"a Debian root of {', '.join(packages[:3])}...: {lines[0]} (are Debian's packages reachable?)")
