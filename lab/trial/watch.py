"""Records every API watch event of a trial's namespace with the time it arrived, and lets the runner wait on them."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ResourceNotFoundError

from lab import clock
from lab.cluster import apply
from lab.errors import InputError, LabFault, one_line
from lab.record.trial import WatchGap
from lab.trial.follow import REQUEST_S, Kind, follow

HPA, SCALED = "HorizontalPodAutoscaler", "ScaledObject"
AUTOSCALING, KEDA = ("autoscaling/v2", HPA), ("keda.sh/v1alpha1", SCALED)
KINDS = (
    ("apps/v1", "Deployment"),
    AUTOSCALING,
    KEDA,
    ("v1", "Pod"),
    ("batch/v1", "Job"),
)
FORBIDDEN = 403


class Transitions:
    """Watches the namespace; ``now``: last state by (kind, name); ``gaps``: when a kind's events were not seen, epoch s.

    Of a kind in ``names`` only the object of that name is watched.
    """

    def __init__(
        self,
        api: client.ApiClient,
        namespace: str,
        file: Path,
        kinds: tuple[tuple[str, str], ...] = KINDS,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._file = file.open("a")
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self.now: dict[tuple[str, str], dict[str, Any]] = {}
        self.gaps: list[WatchGap] = []
        self.fault: str | None = None  # why an event could not be kept, which makes the file worthless
        dynamic = apply.dynamic_client(api)
        only = names or {}
        self._sources = {kind: Kind(dynamic, version, kind, namespace, only.get(kind, "")) for version, kind in kinds}
        for kind in self._sources:
            threading.Thread(target=self._follow, args=(kind,), name=f"watch-{kind}", daemon=True).start()

    def wait(
        self, condition: Callable[[], object], deadline_s: float, what: str, check: Callable[[], None] | None = None
    ) -> None:
        """Block until ``condition`` holds, asked at every event. Raises :class:`LabFault` when the deadline passes."""
        end = time.monotonic() + deadline_s
        with self._changed:
            while not condition():
                left = end - time.monotonic()
                if left <= 0:
                    raise LabFault(f"{what}: not within {deadline_s:g} s")
                self._changed.wait(min(left, 1.0))
                if check is not None:
                    check()

    def notify(self) -> None:
        """Let waiters ask again: something else they wait for has changed."""
        with self._changed:
            self._changed.notify_all()

    def field(self, kind: str, name: str, *path: str) -> Any:
        """The value at ``path`` of an object's last state; None when any part of it is missing."""
        with self._changed:
            value: Any = self.now.get((kind, name))
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def pods(self, app: str) -> list[dict[str, Any]]:
        """The last state of the pods of ``app`` that have not been deleted."""
        with self._changed:
            pods = [item for (kind, _), item in self.now.items() if kind == "Pod"]
        return [item for item in pods if item["metadata"].get("labels", {}).get("app") == app]

    def close(self) -> None:
        """Stop recording."""
        with self._changed:
            self._stop.set()
            with contextlib.suppress(OSError):  # of a full disk, which is known
                self._file.close()
        for source in self._sources.values():
            source.stop()

    def _follow(self, kind: str) -> None:
        def gap(began: float, ended: float) -> None:
            behind = clock.now() - time.monotonic()
            self.gaps.append(WatchGap(kind, behind + began, behind + ended))

        try:
            follow(self._sources[kind], lambda event, item: self._keep(kind, event, item), self._stop, gap)
        except Exception as error:
            if not self._stop.is_set():
                self._lose(error)
                self.notify()

    def _lose(self, error: Exception) -> None:
        self.fault = self.fault or f"a watch event could not be kept: {error}"

    def _keep(self, kind: str, event: str, item: dict[str, Any]) -> None:
        received = clock.now()
        item["metadata"].pop("managedFields", None)
        name = item["metadata"]["name"]
        row = {"t": received, "kind": kind, "name": name, "event": event, "object": item}
        with self._changed:
            if self._stop.is_set():
                return
            try:
                self._file.write(json.dumps(row) + "\n")
                self._file.flush()
            except OSError as error:
                self._lose(error)
            if event == "DELETED":
                self.now.pop((kind, name), None)
            else:
                self.now[(kind, name)] = item
            self._changed.notify_all()


def scaled_object(api: client.ApiClient, namespace: str, name: str) -> dict[str, Any]:
    """The ScaledObject ``name`` as the API server has it."""
    resource = apply.dynamic_client(api).resources.get(api_version=KEDA[0], kind=SCALED)
    found: dict[str, Any] = resource.get(name=name, namespace=namespace, _request_timeout=REQUEST_S).to_dict()
    return found


def events(api: client.ApiClient, namespace: str, hpa: str) -> list[dict[str, Any]] | None:
    """The events of the HPA ``hpa`` that the API server still has, by default an hour's; None where it may not be asked."""
    chosen = f"involvedObject.kind={HPA},involvedObject.name={hpa}"
    try:
        answer: Any = client.CoreV1Api(api).list_namespaced_event(
            namespace, field_selector=chosen, _preload_content=False, _request_timeout=REQUEST_S
        )
    except ApiException as error:
        if error.status != FORBIDDEN:
            raise
        return None
    found: list[dict[str, Any]] = json.loads(answer.data)["items"]
    return found


def group(api: client.ApiClient, namespace: str, name: str) -> tuple[tuple[tuple[str, str], ...], dict[str, str]]:
    """The kinds of a live group's HPA, of its ScaledObject ``name`` and of what is scaled, and the name of each.

    Each is listed once, so that a right that lacks is told at once (:func:`refusals`). Raises :class:`LabFault` where one is
    not there.
    """
    found = scaled_object(api, namespace, name)
    scale = found["spec"]["scaleTargetRef"]
    target = scale.get("apiVersion") or "apps/v1", scale.get("kind") or "Deployment"
    made = (found.get("status") or {}).get("hpaName") or f"keda-hpa-{name}"
    kinds, names = (AUTOSCALING, KEDA, target), {HPA: made, SCALED: name, target[1]: scale["name"]}
    dynamic = apply.dynamic_client(api)
    for version, kind in kinds:
        _, there = Kind(dynamic, version, kind, namespace, names[kind]).objects()
        if not there:
            raise LabFault(f"there is no {kind} {names[kind]} in the namespace {namespace}")
    return kinds, names


@contextlib.contextmanager
def connected(kubeconfig: str | None, context: str) -> Iterator[client.ApiClient]:
    """A client of the ``context`` in the file ``kubeconfig``, None for the one that kubectl reads, with :func:`refusals`.

    Raises :class:`InputError` for a context that is not there.
    """
    file = Path(kubeconfig or config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION)
    try:
        api = apply.connect(file, context)
    except config.ConfigException as error:
        raise InputError("command line", "--context", context, f"one of {file}: {error}") from None
    with api, refusals(context):
        yield api


@contextlib.contextmanager
def refusals(context: str) -> Iterator[None]:
    """Turn what the API server of ``context`` refuses within the block into :class:`LabFault`, one line."""
    try:
        yield
    except ResourceNotFoundError as error:
        raise LabFault(f"context {context} has no such kind: {error}") from None
    except ApiException as error:
        said = str(error.reason)
        with contextlib.suppress(ValueError, TypeError, AttributeError):
            said = json.loads(error.body or "{}").get("message") or said
        needs = ", which needs the rights of manifests/shadow/rbac.yaml" if error.status == FORBIDDEN else ""
        raise LabFault(one_line(f"context {context}{needs}: {said}")) from None
