"""Rules on what is scaled, and on objects together: requests, grace, disruption budgets, owners, the operator's load. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from lab.audit.objects import SCALED, WORKLOADS, Fleet, Item, Path, at, listed, text, whole
from lab.audit.rules import ERROR, MANY, REMOVED, WARNING, Hit, rule
from lab.audit.scaledobject import RESOURCES, Facts, Scaled

_GRACE: Path = ("spec", "template", "spec", "terminationGracePeriodSeconds")
_API_QPS = 20.0  # patches/s that KEDA's operator may send as it is shipped (--kube-api-qps)


@rule(
    "cpu-without-request",
    ERROR,
    "a cpu or memory trigger without a request, or alone with 0",
    "a request; `minReplicaCount: 1`",
    "kubernetes/kubernetes#79365",
)
def cpu_without_request(here: Scaled) -> Iterator[Hit]:
    """The HPA then has no number, and scales nothing down. Source: ``calculatePodRequests``, ``verifyCPUMemoryScalers``."""
    alone = bool(here.triggers) and all(one.type in RESOURCES for one in here.triggers)
    if alone and not here.least:
        field = ("spec", "minReplicaCount")
        yield Hit(field, "cpu and memory alone can't start a pod: KEDA refuses a minReplicaCount of 0", 0, {field: 1})
    for trigger in here.triggers:
        kind = trigger.metric_type or trigger.metadata.get("type", "Utilization")
        if trigger.type not in RESOURCES or kind != "Utilization" or here.workload is None:
            continue
        chosen, pod = trigger.metadata.get("containerName", ""), here.workload.pod
        if (not chosen and _sets(pod, trigger.type)) or _has_default(here, trigger.type):
            continue
        restarted = [one for one in listed(pod.get("initContainers")) if one.get("restartPolicy") == "Always"]
        every = [one for one in (*listed(pod.get("containers")), *restarted) if not chosen or one.get("name") == chosen]
        lacking = [text(one.get("name")) for one in every if not _sets(one, trigger.type)]
        if lacking:
            words = f"no {trigger.type} request in {', '.join(lacking)}: no percent, so that nothing scales down"
            yield Hit(("spec", "template", "spec", "containers"), words, len(lacking), item=here.workload)


def _sets(container: Mapping[str, Any], name: str) -> bool:
    """Whether ``container``, or a pod's spec, has a request or a limit, which is its request by default."""
    return any(at(container, "resources", kind, name) not in (None, 0, "0") for kind in ("requests", "limits"))


def _has_default(here: Scaled, name: str) -> bool:
    """Whether a LimitRange fills requests in."""
    spaces = (here.item.space, here.workload.space if here.workload else "")
    limits = (one for item in here.fleet.of("LimitRange") if item.space in spaces for one in listed(item.spec.get("limits")))
    return any(
        one.get("type") == "Container" and (at(one, "defaultRequest", name) or at(one, "default", name)) for one in limits
    )


@rule(
    "manifest-replicas",
    WARNING,
    "`replicas` in the manifest of the target",
    "remove it",
    "kubernetes/kubernetes#25238",
    "keda#5572",
    "keda#947",
)
def manifest_replicas(here: Scaled) -> Iterator[Hit]:
    """Each apply sets them. An object out of a cluster always has the field, and is no manifest."""
    if here.workload is None or here.workload.live or "replicas" not in here.workload.spec:
        return
    replicas = whole(here.workload.spec["replicas"], 1)
    words = f"each apply sets {replicas:,} replicas, from up to {here.most:,}"
    yield Hit(("spec", "replicas"), words, replicas, {("spec", "replicas"): REMOVED}, item=here.workload)


@rule(
    "grace-too-short",
    WARNING,
    "terminationGracePeriodSeconds below preStop and the longest job",
    "`terminationGracePeriodSeconds`: both",
    "keda#6719",
    "keda#5096",
    test="tests/experiments/test_6_scale_down.py",
    needs="--job-s",
)
def grace_too_short(here: Scaled) -> Iterator[Hit]:
    """What is cut is done again. Source: ``killContainer``, which leaves 2 s at least."""
    if here.workload is None or here.facts.job_s is None:
        return
    hooks = [at(one, "lifecycle", "preStop", "sleep", "seconds") for one in listed(here.workload.pod.get("containers"))]
    stop = max((whole(one, 0) for one in hooks), default=0)
    grace = whole(here.workload.pod.get("terminationGracePeriodSeconds"), 30)
    left = max(2, grace - stop)
    if here.facts.job_s > left:
        cut = here.facts.job_s - left
        words = (
            f"{left:,} of {grace:,} s are left for a job of {here.facts.job_s:g} s: its last {cut:g} s are cut, and done again"
        )
        cure = {_GRACE: math.ceil(stop + here.facts.job_s)}
        yield Hit(_GRACE, words, cut, cure, item=here.workload)


@rule(
    "pdb-blocks",
    WARNING,
    "a PodDisruptionBudget that allows no eviction at the minimum",
    "`maxUnavailable: 1`",
    "kubernetes/kubernetes#66811",
    "open-policy-agent/gatekeeper-library#202",
)
def pdb_blocks(here: Scaled) -> Iterator[Hit]:
    """Then a node can't be drained. A scale-down ignores the budget."""
    for budget in here.fleet.of("PodDisruptionBudget") if here.workload else ():
        assert here.workload is not None
        if budget.space != here.workload.space or not _selects(budget, here.workload):
            continue
        least, most = (budget.spec.get(field) for field in ("minAvailable", "maxUnavailable"))
        kept = here.floor - (_pods(most, here.floor) or 0) if most is not None else _pods(least, here.floor)
        if kept is not None and kept >= here.floor:
            field = "minAvailable" if most is None else "maxUnavailable"
            words = f"at {here.floor:,} pods {budget.spec[field]} {field} allows 0 evictions: a drain hangs"
            cure: dict[Path, Any] = {("spec", "maxUnavailable"): 1}
            if most is None:
                cure[("spec", "minAvailable")] = REMOVED
            yield Hit(("spec", field), words, 0, cure, item=budget)


def _selects(one: Item, other: Item) -> bool:
    """Whether the selector of ``one`` takes the pods of ``other``."""
    return one.selector is not None and one.selector.items() <= other.labels.items()


def _pods(value: object, of: int) -> int | None:
    """A count of pods, or a percentage of ``of``, rounded up."""
    if isinstance(value, str) and value.removesuffix("%").isdecimal():
        return math.ceil(int(value.removesuffix("%")) * of / 100) if value.endswith("%") else int(value)
    return value if isinstance(value, int) else None


@rule(
    "two-owners",
    ERROR,
    "two owners of one target, HPA name or pods",
    "one object with two triggers",
    "keda#4683",
    "keda#5825",
    "keda#4526",
    of_fleet=True,
)
def two_owners(every: tuple[list[Scaled], Fleet, Facts]) -> Iterator[Hit]:
    """KEDA's webhook refuses some, where it can be reached; of the others both HPAs stop (AmbiguousSelector)."""
    found, fleet, _ = every
    for owners in fleet.owners.values():
        for one in owners[1:]:
            words = (
                f"{len(owners)} objects scale {' '.join(one.target[2:])}, {owners[0].title} too: both stop, or KEDA refuses it"
            )
            yield Hit(("spec", "scaleTargetRef"), words, len(owners), item=one)
    names = {(one.space, one.name): one for one in fleet.plain_hpas}
    for scaled in found:
        other = names.setdefault((scaled.item.space, scaled.hpa), scaled.item)
        if other.title != scaled.item.title:
            words = f"{other.title} has the HPA {scaled.hpa} too: each overwrites the other's"
            yield Hit(("metadata", "name"), words, 2, item=scaled.item)
    yield from _selectors(fleet)


def _selectors(fleet: Fleet) -> Iterator[Hit]:
    scaled = {(space, kind, name) for space, _, kind, name in fleet.owners}
    targets = [item for item in fleet.of(*WORKLOADS) if (item.space, item.kind, item.name) in scaled]
    by_label: dict[tuple[str, tuple[str, str]], list[Item]] = {}
    for item in targets:
        for label in item.labels.items():
            by_label.setdefault((item.space, label), []).append(item)
    for item in targets:
        first = next(iter((item.selector or {}).items()), None)
        others = by_label.get((item.space, first), ()) if first else ()
        taken = [other for other in others if other.title != item.title and _selects(item, other)]
        if taken:
            words = f"its selector takes the pods of {', '.join(one.title for one in taken[:3])} too: both HPAs stop"
            yield Hit(("spec", "selector"), words, len(taken) + 1, item=item)


@rule(
    "fleet-rate",
    WARNING,
    "polls that use up the 20 requests/s of KEDA's operator",
    "`--kube-api-qps`; a longer `pollingInterval`",
    "keda#7613",
    "keda#6789",
    "keda#3670",
    "kubernetes/kubernetes#96242",
    test=MANY,
    of_fleet=True,
)
def fleet_rate(every: tuple[list[Scaled], Fleet, Facts]) -> Iterator[Hit]:
    """Source: ``cmd/operator/main.go``, and ``RequestScale``, which patches status.lastActiveTime."""
    found, _, _ = every
    rate = round(sum(1 / one.polling_s for one in found), 6)
    if rate >= _API_QPS:
        usual, _ = Counter(one.polling_s for one in found).most_common(1)[0]
        words = (
            f"{len(found):,} {SCALED}s, all active, patch {rate:.1f} times a second, and KEDA's operator may {_API_QPS:g} times"
        )
        first = next(one for one in found if one.polling_s == usual)
        yield Hit(("spec", "pollingInterval"), words, rate, item=first.item)
