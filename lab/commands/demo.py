"""``elastic-lab demo``: one trial in a folder of your own, watched on the live board, with its report at the end."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

from lab import paths
from lab.cluster import binary
from lab.errors import BAD_INPUT, FAULT, InputError
from lab.flags import Flags
from lab.host import runs
from lab.wait import until

FOLDER = Path("elastic-lab-demo")
UP_S = 600  # for the session to bring its cluster up
# What the folder has: its name there, and the file that it is a copy of.
FILES = {
    "pytest.ini": Path(__file__).with_name("demo_files") / "pytest.ini",
    "test_spike.py": Path(__file__).with_name("demo_files") / "test_spike.py.txt",
    "profiles/spike.yaml": paths.PROFILES / "plateau.yaml",
    "profiles/profile.schema.json": paths.PROFILES / "profile.schema.json",
    "manifests/scaledobjects/scaler.yaml": paths.MANIFESTS / "scaledobjects" / "recommended.yaml",
}


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"where the files and the results go (default: {FOLDER})")
    parser.add_argument("--no-board", action="store_true", help="do not serve the live board during the trial")


def run(options: Namespace) -> int:
    """Run the demo; returns the exit code of its session: 0, 1 for a breached objective, 2 for bad input, 3 for a fault."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    begun = time.monotonic()
    folder: Path = options.folder
    prepare(folder)
    binary.prepare()  # here, so that the time below is of a machine on which everything is built
    built = time.monotonic()
    code = _session(folder, board=not options.no_board)
    if code not in (BAD_INPUT, FAULT):
        _start(folder, "-m", "lab", "report").wait()
    now = time.monotonic()
    print(f"the demo took {now - built:.0f} s, and {built - begun:.0f} s of preparing before it")
    print(f"files to change: {folder / 'test_spike.py'}, {folder / 'profiles'}, {folder / 'manifests'}")
    print(f"again: cd {folder} && pytest -m spike")
    return code


def prepare(folder: Path) -> None:
    """Copy the demo's files into ``folder`` where they are not there. Raises :class:`InputError` for another's folder."""
    if folder.exists() and not folder.is_dir():
        raise InputError("command line", "--folder", str(folder), "a folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "test_spike.py").exists():
        raise InputError("command line", "--folder", str(folder), "a new folder, an empty one, or the demo's own")
    for name, source in FILES.items():
        target = folder / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def _session(folder: Path, *, board: bool) -> int:
    """Run the folder's experiment, with the live board of its cluster beside it; returns the session's exit code."""
    before = runs.prometheus()
    started = [_start(folder, "-m", "pytest", "-m", "spike")]
    session = started[0]
    try:
        if board:
            until(lambda: session.poll() is not None or runs.prometheus() not in (None, before), UP_S, "the demo's cluster up")
            if session.poll() is None:
                started.append(_start(folder, "-m", "lab.board", f"--prometheus={runs.prometheus()}", "--port=0"))
        return session.wait()
    finally:
        for process in reversed(started):
            if process.poll() is None:
                process.terminate()
                process.wait()


def _start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, *arguments], cwd=folder, stdin=subprocess.DEVNULL)
