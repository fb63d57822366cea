"""What the core costs its user: the installation into an empty environment, and ``simulate`` from its start to its answer."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from functools import partial
from pathlib import Path

from benchmarks.simulate import Show, seconds
from lab import paths

LIBRARIES = ("numpy", "pyyaml")
EXAMPLES = paths.PROJECT / "docs" / "examples"
QUESTION = [
    f"--scaledobject={EXAMPLES / 'orders.yaml'}",
    f"--profile={EXAMPLES / 'evening-peak.yaml'}",
    f"--workload={EXAMPLES / 'enricher.yaml'}",
    "--start-s=60",
    "--fail-on=nothing",
]


def environment(folder: Path) -> Path:
    """A new environment in ``folder``, with pip alone: its Python."""
    venv.create(folder, with_pip=True, symlinks=True)
    return folder / "bin" / "python"


def run(python: Path | str, *words: object) -> None:
    """Run an environment's ``python``, which sees no other folder. Raises ``CalledProcessError`` where it fails."""
    subprocess.run([str(python), "-I", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def megabytes(folder: Path) -> float:
    """The size of the files in ``folder``; a link has none."""
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def main(show: Show) -> None:
    """Install the wheel and its libraries alone, in turns, and ask. What pip has fetched once comes from its cache."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, paths.PROJECT)
        (wheel,) = folder.glob("*.whl")
        pythons = {name: environment(folder / name) for name in ("warm", "ours", "peer")}
        given = {"warm": [wheel], "ours": [wheel], "peer": LIBRARIES}
        taken = {
            name: seconds(partial(run, python, "-m", "pip", "install", "--quiet", *given[name]), 1)
            for name, python in pythons.items()
        }
        show("pip install of the core", taken["ours"], taken["peer"], "s", " and ".join(LIBRARIES))
        sizes = {name: megabytes(folder / name) for name in pythons}
        show("its environment", sizes["ours"], sizes["peer"], "MB", "one with these alone")
        answer = seconds(partial(run, pythons["ours"], "-m", "lab", "simulate", *QUESTION), 5)
        peer = seconds(partial(run, pythons["ours"], "-c", "import numpy, yaml"), 5)
        show("simulate, from its start to its answer", answer, peer, "s", "Python that imports these")
