"""Faults that a trial asks for by name: each strikes when the profile's phase of that name begins, and is one of its inputs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import psutil

from lab import clock
from lab.errors import LabFault
from lab.spec.inputs import SIGKILL
from lab.trial.stage import Stage

_PROCESS = "process://"


def inflict(stage: Stage, fault: str) -> dict[str, Any]:
    """Do what ``fault`` names; what was done, as plain data with its time ``t`` (epoch s).

    Raises :class:`LabFault` when there is nothing to do it to.
    """
    return {"fault": fault, **_INFLICT[fault](stage)}


def sigkill(stage: Stage) -> dict[str, Any]:
    """SIGKILL the process of the consumer that owns most partitions: it can't drain, commit or leave the group."""
    running = {pod["metadata"]["name"]: pid for pod in stage.transitions.pods("consumer") if (pid := _process(pod))}
    owned = {name: owns for name, owns in stage.reports.owned().items() if name in running and owns}
    if not owned:
        raise LabFault("no consumer that owns a partition runs as a process of this machine: none to kill")
    victim = max(sorted(owned), key=lambda name: owned[name])
    pid = running[victim]
    if psutil.Process(pid).environ().get("HOSTNAME") != victim:
        raise LabFault(f"process {pid} is not the consumer {victim}")
    struck = clock.now()
    os.kill(pid, signal.SIGKILL)
    return {"t": struck, "pod": victim, "pid": pid, "owned": owned[victim]}


def _process(pod: dict[str, Any]) -> int | None:
    """The process of the pod's container while it runs and is to go on running."""
    statuses = pod.get("status", {}).get("containerStatuses") or [{}]
    container = statuses[0].get("containerID", "")
    if "deletionTimestamp" in pod["metadata"] or "running" not in statuses[0].get("state", {}):
        return None
    return int(container.removeprefix(_PROCESS)) if container.startswith(_PROCESS) else None


_INFLICT: dict[str, Callable[[Stage], dict[str, Any]]] = {SIGKILL: sigkill}
