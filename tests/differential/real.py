"""Runs walks for real, side by side, and tells what every sync of their HPAs saw and decided."""

import json
import re
import secrets
import time
from dataclasses import dataclass

from kubernetes import client

from lab.cluster import apply
from lab.model import hpa, hpa_log
from lab.model.hpa_log import Seen, Sync, may_exist
from lab.trial.watch import Transitions
from tests.differential.source import Source

START_DEADLINE_S = 120  # until KEDA has made every HPA: 42 s for 80, at the 20 requests a second of its client
SLOWEST = 4  # times its period that a sync may take, with all walks on two cores
CROSSING_S = 1.0  # a watch event may arrive so much later than what it tells of was read, with so many of them on two cores
_OUTCOMES = (*hpa_log.DECIDED, hpa_log.FAILED)


@dataclass(frozen=True)
class Past:
    """What is known of one walk's run beside the log: the answers, and the replicas that existed, both by time (epoch s).

    ``begun`` is the earliest its HPA's first sync can have begun: HPAs wait a period for it.
    """

    answers: list[tuple[float, int | None]]
    existing: list[tuple[float, int]]
    begun: float


class Bench:
    """Runs batches of walks on ``cluster``; each has a namespace of its own, which goes by itself afterwards."""

    def __init__(self, cluster, scale, folder):
        self._cluster, self._scale, self._folder = cluster, scale, folder

    def play(self, walks):
        """The syncs of each of ``walks``, in order. Raises AssertionError when KEDA made another HPA than was asked for."""
        named = {f"walk-{index}": walk for index, walk in enumerate(walks)}
        namespace = f"walks-{secrets.token_hex(3)}"
        file = self._folder / f"{namespace}.jsonl"
        api = self._cluster.api()
        begun = time.time()
        head = {"name": namespace, "labels": {"created-by": "elastic-lab"}}
        apply.objects(api, [{"apiVersion": "v1", "kind": "Namespace", "metadata": head}])
        transitions = Transitions(api, namespace, file)
        source = Source(named, transitions.notify)
        try:
            deployments = [walk.deployment(name) for name, walk in named.items()]
            scaled = [walk.scaled_object(name, source.url(name)) for name, walk in named.items()]
            apply.objects(api, [*deployments, *scaled], namespace)
            longest = max(len(walk.values) for walk in walks)
            deadline_s = START_DEADLINE_S + SLOWEST * longest * self._scale.hpa_sync_s
            transitions.wait(source.used_up, deadline_s, f"{len(walks)} walks of {longest} syncs", self._cluster.check)
            specs = {
                name: checked(walk, transitions.now[("HorizontalPodAutoscaler", f"keda-hpa-{name}")])
                for name, walk in named.items()
            }
            logs = by_walk(self._cluster.controller_log(), namespace)
        finally:
            transitions.close()
            client.CoreV1Api(api).delete_namespace(namespace)
            source.close()
            api.close()
        counts, made = events(file)
        found = []
        for name, walk in named.items():
            lines = list(hpa_log.parse(logs.get(name, ""), begun))
            first = made[f"keda-hpa-{name}"] + self._scale.hpa_sync_s
            found.append(syncs(walk, specs[name], lines, Past(source.handed[name].answers, counts.get(name, []), first)))
        return found


def checked(walk, item):
    """The spec of the HPA that KEDA made."""
    real, asked = hpa.parse(item, "KEDA's HPA"), hpa.parse(walk.hpa(), "the walk")
    assert real == asked, f"KEDA's HPA is another than {walk} asks for: {item['spec']}"
    return real


def by_walk(text, namespace):
    """The controller's lines about each walk of ``namespace``."""
    named = re.compile(rf'(?:Deployment/{namespace}/|"{namespace}/keda-hpa-)(walk-\d+)\b')
    lines = {}
    for line in text.splitlines():
        if found := named.search(line):
            lines.setdefault(found[1], []).append(line)
    return {name: "\n".join(told) for name, told in lines.items()}


def events(file):
    """(epoch s, replicas that exist) of each Deployment, and when each HPA was made (epoch s)."""
    found, made = {}, {}
    for line in file.read_text().splitlines():
        row = json.loads(line)
        if row["kind"] == "HorizontalPodAutoscaler":
            made.setdefault(row["name"], row["t"])
        if row["kind"] == "Deployment":
            found.setdefault(row["name"], []).append((row["t"], int(row["object"].get("status", {}).get("replicas", 0))))
    return found, made


def syncs(walk, spec, lines, past):
    """The syncs of one walk; what each saw is the source's last answer before its proposal, and the replicas of that moment."""
    found, replicas = [], walk.replicas
    for logged in hpa_log.syncs(lines, _OUTCOMES):
        outcome, proposal = logged.outcome, logged.proposal
        failed = outcome.words == hpa_log.FAILED
        # A sync that failed names no replicas; it was not decided by its bounds, so they were within them.
        desired = min(max(replicas, walk.least), walk.most) if failed else outcome.replicas["desiredReplicas"]
        found.append(
            Sync(
                at=logged.at,
                spec=spec,
                current=outcome.replicas.get("currentReplicas", desired),
                desired=desired,
                proposed=proposal.replicas["desiredReplicas"] if proposal else None,
                seen=tuple(_seen(past, logged)) if proposal else (Seen(replicas, (None,)),),
                scaled_at=outcome.t if outcome.words == hpa_log.RESCALED else None,
                until=outcome.t,
                since=None if found else min(past.begun, logged.at),
            )
        )
        replicas = desired
    return found


def _seen(past, logged):
    """What a sync may have seen, likeliest first: KEDA may have asked for the metric on its own account as well.

    The controller reads the scale some time after the sync before, then asks for the metric.
    """
    for asked, value in reversed([answer for answer in past.answers if logged.before < answer[0] <= logged.at]):
        if value is not None:
            for existing in may_exist(past.existing, logged.before, asked, CROSSING_S):
                yield Seen(existing, ((value,),))
