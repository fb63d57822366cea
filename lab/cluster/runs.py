"""The register of running clusters: one folder each, so that a later start finds and clears what a crash left."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from filelock import FileLock

from lab import paths
from lab.cluster import processes
from lab.errors import LabFault

log = logging.getLogger("lab.cluster")


def open_run() -> tuple[Path, str]:
    """A new run folder owned by this process, and the pods' network: the first two octets of their loopback addresses."""
    root = paths.state_dir()
    with FileLock(root / "lock"):
        taken = {str(_read(run)["network"]) for run in all_runs()}
        network = next((f"127.{octet}" for octet in range(16, 250) if f"127.{octet}" not in taken), None)
        if network is None:
            raise LabFault(f"no free pod network: {len(taken)} clusters are registered; python -m lab down clears them")
        run = root / f"{os.getpid()}-{secrets.token_hex(3)}"
        run.mkdir(mode=0o700)
        owner = {"pid": os.getpid(), "created": psutil.Process().create_time(), "network": network, "kept": False}
        (run / "owner.json").write_text(json.dumps(owner))
    return run, network


def keep(run: Path, watcher: subprocess.Popen[bytes]) -> None:
    """Let ``run`` outlive its session and its guard: only :func:`clear_all` ends it."""
    _update(run, kept=True)
    watcher.terminate()
    processes.dismiss(watcher)
    log.info("cluster kept: kubectl --kubeconfig %s; end it with python -m lab down", run / "kubeconfig")


def adopt(run: Path) -> None:
    """Make this process the owner of a kept run. Raises :class:`LabFault` when another session still is."""
    entry = _read(run)
    if _alive(entry):
        raise LabFault(f"the cluster of {run.name} is in use by the session with pid {entry['pid']}")
    _update(run, pid=os.getpid(), created=psutil.Process().create_time(), kept=False)


def note_prometheus(run: Path, url: str) -> None:
    """Note in ``run`` where its Prometheus answers, for programs that look at a running cluster from outside."""
    _update(run, prometheus=url, noted=time.time())


def prometheus() -> str | None:
    """Where the Prometheus of the newest running cluster answers; None when no cluster runs."""
    noted: list[tuple[float, str]] = []
    for run in all_runs():
        with contextlib.suppress(FileNotFoundError):  # its session may end it meanwhile
            entry = _read(run)
            if "prometheus" in entry and (processes.remembered(run) or (run / processes.END).exists()):
                noted.append((float(str(entry["noted"])), str(entry["prometheus"])))
    return max(noted)[1] if noted else None


def sweep() -> int:
    """Clear the runs whose owner is gone and that nobody keeps; returns how many processes had to be ended."""
    return _clear(lambda entry: not entry["kept"] and not _alive(entry))


def clear_all() -> int:
    """Clear every run whose owner is gone, kept or not; returns how many processes had to be ended."""
    return _clear(lambda entry: not _alive(entry))


def _clear(chosen: Callable[[dict[str, object]], bool]) -> int:
    ended = 0
    with FileLock(paths.state_dir() / "lock"):
        for run in all_runs():
            if chosen(_read(run)):
                count = processes.clear(run)
                log.info("cleared the leftovers of an earlier session (%s): %d processes ended", run.name, count)
                ended += count
    return ended


def all_runs() -> list[Path]:
    """The folder of every registered run."""
    return sorted(file.parent for file in paths.state_dir().glob("*/owner.json"))


def _read(run: Path) -> dict[str, object]:
    entry: dict[str, object] = json.loads((run / "owner.json").read_text())
    return entry


def _update(run: Path, **changes: object) -> None:
    """Change the entry in one piece: other sessions read it at any time."""
    changed = run / "owner.json.new"
    changed.write_text(json.dumps(_read(run) | changes))
    changed.replace(run / "owner.json")


def _alive(entry: dict[str, object]) -> bool:
    try:
        created = psutil.Process(int(str(entry["pid"]))).create_time()
    except psutil.NoSuchProcess:
        return False
    return abs(created - float(str(entry["created"]))) < 0.05
