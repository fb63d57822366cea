"""The register of runs: one folder each, so that a later start finds and clears what a crash left.

A run is a cluster, or other work whose processes and files must not outlive the session. Its folder names the session that owns
it. A folder that names no session is a dead run, like one whose session is gone.

``python -m lab.host.runs RUN`` is the guard of a run. It waits until the session that started it has ended, and then clears
what the session left. A session that ends in order removes the run folder itself, and the guard finds nothing to do. A crash
closes the guard's pipe all the same.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from lab import paths, wholefile
from lab.errors import LabFault
from lab.host import identity, machine, processes, resources

log = logging.getLogger("lab.cluster")

OWNER = "owner.json"
ATTEMPTS = 3
Made = TypeVar("Made")


def open_run() -> Path:
    """A new run folder owned by this process. Raises :class:`LabFault`, and leaves no folder, when it can't be written."""
    root = paths.state_dir()
    with _locked():  # a sweep between the folder and its owner would take it for a dead run
        run = root / f"{os.getpid()}-{secrets.token_hex(8)}"
        try:
            run.mkdir(mode=0o700)
            _write(run, {"kept": False, **_self()})
        except OSError as error:
            shutil.rmtree(run, ignore_errors=True)
            raise LabFault(f"no run can be registered in {root}: {error.strerror}") from error
    return run


@contextlib.contextmanager
def guarded() -> Iterator[Path]:
    """A run that is cleared when the block ends, and by its guard when the session ends before that."""
    run = open_run()
    watcher = None
    try:
        watcher = processes.guard(run)
        yield run
    finally:
        processes.clear(run)
        if watcher is not None:
            processes.dismiss(watcher)


def start(work: Callable[[Path], Made]) -> tuple[Made, Path, subprocess.Popen[bytes]]:
    """Open a run, guard it, and return three things: what ``work`` makes in it, the run, and its guard.

    Where a component found its port taken, it is done again in another run, at most three times. Raises what ``work`` raises,
    and :class:`LabFault` for an OSError, with nothing left running.
    """
    for attempt in range(1, ATTEMPTS + 1):
        run = open_run()
        watcher = None
        try:
            watcher = processes.guard(run)
            return work(run), run, watcher
        except BaseException as error:
            taken = processes.port_taken(run)
            processes.clear(run)
            if watcher is not None:
                processes.dismiss(watcher)
            if isinstance(error, OSError):
                raise LabFault(f"{run.name}: {error}") from error
            if taken is None or attempt == ATTEMPTS or not isinstance(error, LabFault):
                raise
            log.warning("%s found its port taken: starting again (%d of %d)", taken, attempt + 1, ATTEMPTS)
    raise AssertionError("the last attempt returns or raises")


def keep(run: Path, watcher: subprocess.Popen[bytes]) -> None:
    """Let ``run`` outlive its session and its guard: then only :func:`clear_all` ends it."""
    _update(run, kept=True)
    watcher.terminate()
    processes.dismiss(watcher)
    log.info("cluster kept: kubectl --kubeconfig %s; end it with elastic-lab down", run / "kubeconfig")


def adopt(run: Path) -> None:
    """Make this process the owner of a kept run. Raises :class:`LabFault` when another session still owns it."""
    with _locked():
        entry = _read(run)
        if _owned(entry):
            raise LabFault(f"the cluster of {run.name} is in use by the session with pid {entry['pid']}")
        _update(run, kept=False, **_self())


def abandon(run: Path) -> None:
    """Clear ``run``, whose session has ended, unless it is kept or was cleared meanwhile."""
    if run.exists():
        with _locked(run.parent):
            if run.exists() and not _kept(_read(run)):
                processes.clear(run)


def note_prometheus(run: Path, url: str) -> None:
    """Write the address of the run's Prometheus into ``run``, for programs that look at a running cluster from outside."""
    _update(run, prometheus=url, noted=time.time())


def prometheus() -> str | None:
    """The address of the newest running cluster's Prometheus; None when no cluster runs."""
    entries = ((run, _read(run)) for run in all_runs())  # an entry is empty when its session ends it meanwhile
    asked = [(run, entry) for run, entry in entries if "prometheus" in entry]
    running = [entry for run, entry in asked if processes.remembered(run) or (run / processes.END).exists()]
    noted = [(float(str(entry["noted"])), str(entry["prometheus"])) for entry in running]
    return max(noted)[1] if noted else None


def sweep() -> int:
    """Clear the runs that are not kept and whose owner is gone; returns how many processes had to be ended."""
    return _clear(lambda entry: not _kept(entry) and not _owned(entry))


def clear_all() -> int:
    """Clear every run whose owner is gone, kept or not; returns how many processes had to be ended."""
    return _clear(lambda entry: not _owned(entry))


def left() -> list[Path]:
    """The runs whose owner is gone, kept or not. After :func:`clear_all` they are those that could not be cleared."""
    with _locked():
        return [run for run in all_runs() if not _owned(_read(run))]


def _clear(chosen: Callable[[dict[str, object]], bool]) -> int:
    ended = 0
    root = paths.state_dir()
    with _locked():
        for dead in _folders(root):
            if dead.suffix == processes.DEAD:
                processes.remove(dead)
        for run in all_runs():
            if chosen(_read(run)):
                count = processes.clear(run)
                log.info("cleared the leftovers of an earlier session (%s): %d processes ended", run.name, count)
                ended += count
        for run in identity.marked():
            if run.parent == root.resolve() and not run.exists():  # its folder was removed under it
                ended += processes.end_all(run)
    return ended


def all_runs() -> list[Path]:
    """The folders of all runs: of those that live, and of those that are still to be cleared."""
    return [folder for folder in _folders(paths.state_dir()) if folder.suffix != processes.DEAD]


def clusters() -> list[Path]:
    """The folder of every run that is a cluster."""
    return [run for run in all_runs() if (run / "kubeconfig").exists()]


def _folders(root: Path) -> list[Path]:
    """This user's folders in the register."""
    found = []
    for entry in root.iterdir():
        with contextlib.suppress(OSError):  # its session removes it meanwhile
            if entry.is_dir() and entry.stat().st_uid == os.geteuid():
                found.append(entry)
    return sorted(found)


def _locked(root: Path | None = None) -> AbstractContextManager[None]:
    machine.check_system()
    return resources.hold_lock((root or paths.state_dir()) / "lock", "it opens or clears a run")


def _read(run: Path) -> dict[str, object]:
    """The run's entry; empty when there is none that can be read."""
    try:
        entry = json.loads((run / OWNER).read_text())
    except (OSError, ValueError):
        return {}
    return entry if isinstance(entry, dict) else {}


def _write(run: Path, entry: dict[str, object]) -> None:
    wholefile.write(run / OWNER, json.dumps(entry))


def _update(run: Path, **changes: object) -> None:
    """Change the entry in one piece, because other sessions read it at any time."""
    _write(run, _read(run) | changes)


def _self() -> dict[str, object]:
    """An entry's owner fields when this process is the owner."""
    own = identity.identify(os.getpid())
    if own is None:
        raise LabFault("/proc does not show this process: the lab needs it to tell its processes from others")
    return asdict(own)


def _kept(entry: dict[str, object]) -> bool:
    return entry.get("kept") is True


def _owned(entry: dict[str, object]) -> bool:
    """Whether the session that owns the run still lives."""
    owner = identity.read(entry)
    return owner is not None and identity.lives(owner)


def main() -> None:
    """Block until stdin closes, then clear the run folder named on the command line."""
    run = Path(sys.argv[1])
    sys.stdin.read()
    abandon(run)


if __name__ == "__main__":
    main()
