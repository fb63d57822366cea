"""A user's own consumer in a trial: its reports on stdout, and one clear line where it does not come to work."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from lab.errors import NoAnswer
from lab.inputs.own_consumer import BLACK_BOX
from lab.record import contract
from lab.trial.listen import stamped

log = logging.getLogger("lab.trial")

CONSUMER = "consumer"
RESTARTS = 2  # from then on a kubelet waits longer and longer before the next start
NEARLY_S = 2.0  # before the end of its grace: then a pod that ignores SIGTERM is still there to be seen
ANSWER_S = 10.0
SILENT_S = 86_400.0  # an output that nothing is written to is followed on
LATE_S = 10.0  # until the end of a container is told, after that of its output
TRIES = 5  # to read an output again
_COMING = ("ContainerCreating", "PodInitializing", "CrashLoopBackOff")  # it starts, or has started and ended

Pod = dict[str, Any]
Key = tuple[str, str]


def crash(pods: list[Pod]) -> tuple[str, int, int] | None:
    """The pod whose container has ended and been started anew too often, its restarts, and its exit code. Pure."""
    for pod in pods:
        status = (pod.get("status", {}).get("containerStatuses") or [{}])[0]
        over = (status.get("lastState") or {}).get("terminated") or {}
        if status.get("restartCount", 0) >= RESTARTS and "deletionTimestamp" not in pod["metadata"]:
            return pod["metadata"]["name"], int(status["restartCount"]), int(over.get("exitCode", -1))
    return None


def overdue(pods: list[Pod], now: float) -> list[str]:
    """Those of ``pods`` that were told to go and still run when their grace is nearly over at ``now``, epoch s. Pure."""
    found = []
    for pod in pods:
        status = (pod.get("status", {}).get("containerStatuses") or [{}])[0]
        told = pod["metadata"].get("deletionTimestamp")  # when the grace is over
        if told and "running" in status.get("state", {}) and now > datetime.fromisoformat(told).timestamp() - NEARLY_S:
            found.append(str(pod["metadata"]["name"]))
    return found


def unstarted(pods: list[Pod]) -> str:
    """Why the first of ``pods`` that waits for its container does so, as for an image that can't be pulled; "" of none."""
    for pod in pods:
        status = (pod.get("status", {}).get("containerStatuses") or [{}])[0]
        waits = status.get("state", {}).get("waiting") or {}
        if waits.get("reason") not in (None, *_COMING):
            why = f"{waits['reason']}: {waits.get('message') or 'no reason is given'}"
            return f"{pod['metadata']['name']} does not start: {why[: contract.SHOWN]}"
    return ""


def stranger(
    owned: Mapping[str, int], elsewhere: Mapping[str, Any] | None, rung: str, partitions: int, group: str, login: bool
) -> str:
    """Why a group is not at work, by who ``owned`` how many partitions and the report of other topics. Pure.

    Kafka asks for a ``login``, or does not.
    """
    if elsewhere is not None:
        return f"its members read {', '.join(elsewhere['topics'])}: it is to take $TOPIC"
    held = {name: count for name, count in owned.items() if count}
    if held:
        return f"{len(held)} members own {sum(held.values())} of {partitions} partitions"
    if rung == BLACK_BOX:
        login_too = ", and to log in by $KAFKA_SETTINGS" if login else ""
        return f"{group} has no member that owns a partition: it is to take $GROUP and $TOPIC{login_too}"
    return f"no report of partitions that were assigned; elastic-lab check-consumer says what of rung {rung} it fulfils"


def last_line(api: client.ApiClient, namespace: str, pod: str, *, previous: bool = False) -> str:
    """What the end of a pod's output says, "" where it wrote nothing or can't be asked."""
    try:
        said = client.CoreV1Api(api).read_namespaced_pod_log(
            pod, namespace, container=CONSUMER, previous=previous, tail_lines=contract.LINES, _request_timeout=ANSWER_S
        )
    except (ApiException, HTTPError, NoAnswer):
        return ""
    return contract.last_words((said or "").splitlines())


class Stdout:
    """Follows what the consumer's pods write, and gives ``take`` each report in it: a line of JSON by itself.

    A report without a time gets that of its arrival. An output that ends before its container is read again, from the line
    after the last; ``lose`` is told of one that can't be.
    """

    def __init__(
        self,
        api: client.ApiClient,
        namespace: str,
        take: Callable[[dict[str, Any]], None],
        lose: Callable[[object], None],
    ) -> None:
        self._core, self._namespace, self._take, self._lose = client.CoreV1Api(api), namespace, take, lose
        # By pod and container: how often in a row it could not be read, when it was read to its end (monotonic s), its lines.
        self._tries, self._over, self._seen = Counter[Key](), dict[Key, float](), Counter[Key]()
        self._stop = threading.Event()

    def follow(self, pods: list[Pod]) -> None:
        """Follow those of ``pods`` whose container runs, and that are not followed yet."""
        for pod in pods:
            status = (pod.get("status", {}).get("containerStatuses") or [{}])[0]
            key = pod["metadata"]["name"], str(status.get("containerID", ""))
            if "running" not in status.get("state", {}):
                continue
            tries, over = self._tries[key], time.monotonic() - self._over.get(key, math.inf) > LATE_S
            if tries and (not over or "deletionTimestamp" in pod["metadata"]):
                continue
            if tries > TRIES:
                self._lose(f"the output of {key[0]} can't be read")
                continue
            self._tries[key] += 1
            self._over.pop(key, None)
            threading.Thread(target=self._read, args=(key,), name=f"stdout-{key[0]}", daemon=True).start()

    def close(self) -> None:
        """Take no further report."""
        self._stop.set()

    def _read(self, key: Key) -> None:
        pod, _ = key
        try:
            said: Any = self._core.read_namespaced_pod_log(
                pod,
                self._namespace,
                container=CONSUMER,
                follow=True,
                _preload_content=False,
                _request_timeout=(ANSWER_S, SILENT_S),
            )
            self._tries[key] = 1
            for number, text in enumerate(said, 1):
                if self._stop.is_set():
                    return
                if number <= self._seen[key] or not text.endswith(b"\n"):
                    continue
                self._seen[key] = number
                if row := contract.line(text.decode(errors="replace")):
                    self._take(stamped(row) | {"pod": pod})
        except (ApiException, HTTPError, NoAnswer, OSError) as error:
            log.warning("the output of %s is not read on: %s", pod, error)
        finally:
            self._over[key] = time.monotonic()
