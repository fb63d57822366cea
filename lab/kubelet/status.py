"""A pod's status from the states of its containers, by the kubelet's rules. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from lab.kubelet.podspec import HOST_IP, Json


@dataclass(frozen=True)
class Waiting:
    """Not running: being created, backing off, or short of a ConfigMap."""

    reason: str = "ContainerCreating"
    message: str = ""


@dataclass(frozen=True)
class Running:
    """Running as process ``pid``."""

    started_at: datetime
    pid: int


@dataclass(frozen=True)
class Terminated:
    """Ended: the code (128 + n for signal n) and when."""

    exit_code: int
    reason: str
    started_at: datetime
    finished_at: datetime
    signal: int = 0
    message: str = ""
    pid: int = 0


State = Waiting | Running | Terminated


@dataclass(frozen=True)
class View:
    """The state of a container as the status shows it."""

    name: str
    image: str
    image_id: str
    state: State
    last: Terminated | None
    restarts: int
    ready: bool


def timestamp(moment: datetime) -> str:
    """RFC 3339 in whole seconds, as the API keeps it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_time(text: str | None) -> datetime:
    """The moment the API wrote as ``text``; now if it wrote none."""
    return datetime.fromisoformat(text) if text else datetime.now(UTC)


def ended(returncode: int, started_at: datetime, finished_at: datetime, pid: int) -> Terminated:
    """How a process ended, from its return code as Python gives it (-n for signal n)."""
    signal = -returncode if returncode < 0 else 0
    code = 128 + signal if signal else returncode
    return Terminated(code, "Completed" if code == 0 else "Error", started_at, finished_at, signal=signal, pid=pid)


def restarts(policy: str, exit_code: int) -> bool:
    """Whether a container that ended with ``exit_code`` is started again."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def phase(views: Sequence[View], policy: str, final: bool) -> str:
    """The pod's phase; ``final`` once no container will ever run again."""
    if any(isinstance(view.state, Waiting) and view.last is None for view in views):
        return "Pending"
    if any(isinstance(view.state, Running) for view in views):
        return "Running"
    succeeded = all(isinstance(view.state, Terminated) and view.state.exit_code == 0 for view in views)
    if final or policy == "Never" or (policy == "OnFailure" and succeeded):
        return "Succeeded" if succeeded else "Failed"
    return "Running"


def pod_status(
    views: Sequence[View], *, policy: str, final: bool, ip: str, start: datetime, now: datetime, previous: Mapping[str, Json]
) -> Json:
    """The whole status to publish. ``previous`` are the earlier conditions, by type; an unchanged one keeps its time."""
    current = phase(views, policy, final)
    shown = _common(current, start, _conditions(views, current, final, now, previous))
    return shown | {"podIP": ip, "podIPs": [{"ip": ip}], "containerStatuses": [_container(view) for view in views]}


def differs(shown: Json, sent: Json) -> bool:
    """Whether an object's status ``shown`` has another phase, or another of the conditions, than what was ``sent``."""
    conditions = {entry["type"]: entry["status"] for entry in shown.get("conditions") or ()}
    wanted = ((entry["type"], entry["status"]) for entry in sent["conditions"])
    return shown.get("phase") != sent["phase"] or any(conditions.get(kind) != status for kind, status in wanted)


def refused_status(reason: str, message: str, start: datetime, now: datetime, previous: Mapping[str, Json]) -> Json:
    """The status of a pod that this node refuses to run."""
    return _common("Failed", start, _conditions((), "Failed", True, now, previous)) | {"reason": reason, "message": message}


def _common(phase: str, start: datetime, conditions: list[Json]) -> Json:
    host = {"hostIP": HOST_IP, "hostIPs": [{"ip": HOST_IP}]}
    return {"phase": phase, "startTime": timestamp(start), "conditions": conditions, **host}


def _conditions(views: Sequence[View], phase: str, final: bool, now: datetime, previous: Mapping[str, Json]) -> list[Json]:
    unready = [view.name for view in views if not view.ready]
    if phase in ("Succeeded", "Failed"):
        ready, reason, message = False, "PodCompleted" if phase == "Succeeded" else "PodFailed", ""
    elif unready:
        ready, reason, message = False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    else:
        ready, reason, message = True, "", ""
    wanted = [
        ("PodReadyToStartContainers", not final, "", ""),
        ("Initialized", True, "PodCompleted" if phase == "Succeeded" else "", ""),
        ("Ready", ready, reason, message),
        ("ContainersReady", ready, reason, message),
    ]
    if "PodScheduled" not in previous:  # bound by hand: no scheduler has set the condition
        wanted.append(("PodScheduled", True, "", ""))
    return [_condition(*condition, now, previous) for condition in wanted]


def _condition(kind: str, holds: bool, reason: str, message: str, now: datetime, previous: Mapping[str, Json]) -> Json:
    status = "True" if holds else "False"
    before = previous.get(kind, {})
    moved = before["lastTransitionTime"] if before.get("status") == status else timestamp(now)
    # None removes what an earlier patch has left in the field.
    told = {"reason": reason or None, "message": message or None}
    return {"type": kind, "status": status, **told, "lastProbeTime": None, "lastTransitionTime": moved}


def _container(view: View) -> Json:
    shown: Json = {
        "name": view.name,
        "image": view.image,
        "imageID": view.image_id,
        "ready": view.ready,
        "started": isinstance(view.state, Running),
        "restartCount": view.restarts,
        "state": _state(view.state),
        "lastState": _state(view.last) if view.last else {},
    }
    pid = view.last.pid if isinstance(view.state, Waiting) and view.last else 0
    if not isinstance(view.state, Waiting):
        pid = view.state.pid
    if pid:
        shown["containerID"] = f"process://{pid}"
    return shown


def _state(state: State) -> Json:
    if isinstance(state, Waiting):
        return {"waiting": {"reason": state.reason, "message": state.message}}
    if isinstance(state, Running):
        return {"running": {"startedAt": timestamp(state.started_at)}}
    times = {"startedAt": timestamp(state.started_at), "finishedAt": timestamp(state.finished_at)}
    optional = {"signal": state.signal, "message": state.message, "containerID": state.pid and f"process://{state.pid}"}
    shown = {"exitCode": state.exit_code, "reason": state.reason, **times}
    return {"terminated": shown | {key: value for key, value in optional.items() if value}}
