"""Sends signals to a trial's pods: to a process of this machine on the process node, else in its container, through the API."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

import psutil
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import stream

from lab.errors import LabFault
from lab.trial.closing import bounded
from lab.trial.stage import CONSUMER, Stage

_PROCESS = "process://"  # the id of a container that is a process of this machine
_ANSWER_S = 20.0


def running(stage: Stage, app: str = CONSUMER) -> dict[str, str]:
    """The id of the container of each pod of ``app`` that runs and is to go on running, by its pod."""
    found = {}
    for pod in stage.transitions.pods(app):
        status = (pod.get("status", {}).get("containerStatuses") or [{}])[0]
        if "deletionTimestamp" not in pod["metadata"] and "running" in status.get("state", {}) and "containerID" in status:
            found[pod["metadata"]["name"]] = status["containerID"]
    return found


def send(stage: Stage, pod: str, container: str, signal: int) -> dict[str, Any]:
    """Send ``signal`` to the process of ``container``, which is that of ``pod``.

    Returns its number as ``pid``. Where the API took the signal there, the number is the pod's own, and ``t`` is when it was
    sent, by the node's clock (epoch s). Raises :class:`LabFault` when it can't be sent.
    """
    if container.startswith(_PROCESS):
        pid, name = int(container.removeprefix(_PROCESS)), None
        with suppress(psutil.Error):
            name = psutil.Process(pid).environ().get("HOSTNAME")
        if name != pod:  # the number is another process's by now
            raise LabFault(f"process {pid} is not the consumer {pod}")
        os.kill(pid, signal)
        return {"pid": pid}
    return _through_api(stage, pod, signal)


def _through_api(stage: Stage, pod: str, signal: int) -> dict[str, Any]:
    command = ["python", "-m", "lab.programs.signaller", str(int(signal))]
    said: list[Any] = []

    def ask() -> None:
        with stage.cluster.api() as api:  # its own: while a stream is opened, its requests are those of a web socket
            session = stream(
                client.CoreV1Api(api).connect_get_namespaced_pod_exec,
                pod,
                stage.namespace,
                container=CONSUMER,
                command=command,
                stdout=True,
                stderr=True,
                _preload_content=False,
            )
            session.run_forever(timeout=_ANSWER_S)
            said[:] = session.read_stdout(timeout=0), session.read_stderr(timeout=0)
            session.close()

    try:
        bounded(ask, 2 * _ANSWER_S)  # the web socket is opened without a time-out
        answer, error = said
        found = dict(json.loads(answer))
    except (ApiException, LabFault) as refused:
        raise LabFault(f"no signal {signal} to {pod} through the API: {getattr(refused, 'reason', refused)}") from None
    except (TypeError, ValueError):
        raise LabFault(f"no signal {signal} to {pod} through the API: {(error or 'no answer').strip()[-300:]}") from None
    return {"pid": int(found["pid"]), "t": float(found["t"])}
