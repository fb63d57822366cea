"""Rules on how many replicas there may be: partitions, bounds, pauses. Pure."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from typing import Any

from lab.audit import schema
from lab.audit.objects import Path, at, listed, mapping, whole
from lab.audit.rules import CAP, ERROR, INFORMATION, REMOVED, TRIGGERS, WARNING, ZERO, Hit, rule
from lab.audit.scaledobject import ANNOTATIONS, BEHAVIOR, HPA_CONFIG, Scaled, tolerance_of
from lab.audit.trigger import Trigger
from lab.errors import shown
from lab.inputs import scaledobject

LEAST: Path = ("spec", "minReplicaCount")
MOST: Path = ("spec", "maxReplicaCount")
IDLE: Path = ("spec", "idleReplicaCount")
TARGET: Path = ("spec", "scaleTargetRef")
PARTITIONS = "--partitions"
_LONGEST_NAME = 63
_LONGEST_WINDOW_S, _LONGEST_PERIOD_S = 3600, 1800


def first_kept(wanted: int, tolerance: float) -> int:
    """The least replicas at which the HPA takes a metric for ``wanted`` replicas as within its ``tolerance``."""
    least = max(1, int(wanted / (1 + tolerance)) - 1)
    return next(count for count in range(least, wanted + 1) if wanted / count <= 1 + tolerance)


def _asked(here: Scaled, trigger: Trigger) -> int:
    """The replicas that ``trigger`` may ask for beyond the partitions."""
    if trigger.type == "cron":
        return min(here.most, trigger.number("desiredReplicas", 0))
    return 0 if trigger.bounds_replicas or here.formula else here.most


@rule(
    "idle-replicas",
    WARNING,
    "more pods than the partitions P may be asked for",
    "`maxReplicaCount`: P",
    "keda#2888",
    test="tests/experiments/test_4_past_p.py",
    needs=PARTITIONS,
)
def idle_replicas(here: Scaled) -> Iterator[Hit]:
    """Pods that own nothing, or that never come."""
    if here.owned is None:
        return
    pods = max(here.least, *(_asked(here, one) for one in here.triggers), 0)
    lowered: dict[Path, Any] = {MOST: here.owned} | ({LEAST: here.owned} if here.least > here.owned else {})
    if pods > here.owned:
        words = f"{pods - here.owned:,} of {pods:,} pods own no partition: there are {here.owned:,}"
        yield Hit(LEAST if here.least == pods else MOST, words, pods - here.owned, lowered)
    elif at(here.item.spec, "maxReplicaCount") is None and here.owned > here.most:
        words = f"maxReplicaCount is {here.most} by default: there are {here.owned:,} partitions, and no more pods come"
        yield Hit(MOST, words, here.owned - here.most, lowered)


@rule(
    "one-past-partitions",
    INFORMATION,
    "capped, maxReplicaCount above P: a lag asks for P + 1",
    "`maxReplicaCount`: P",
    "keda#4483",
    test=CAP,
    needs=PARTITIONS,
)
def one_past_partitions(here: Scaled) -> Iterator[Hit]:
    """The cap divides whole numbers. With a threshold of 1 no lag lies between; factors never pass the partitions."""
    for trigger, count in (
        here.caps() if not here.formula and len(here.lags) == 1 else ()
    ):  # of several triggers the largest proposal counts
        if not trigger.bounds_replicas:
            continue
        low, high = count * trigger.threshold + 1, (count + 1) * trigger.threshold - 1
        if here.most > count and low <= high and not trigger.even:
            lags = f"a lag of {low:,}" if low == high else f"a lag from {low:,} to {high:,}"
            words = f"{lags} asks for {count + 1:,} pods, one more than the {count:,} partitions"
            cure = {MOST: count} if count >= here.least else {}
            yield Hit(MOST, f"{words} that trigger {trigger.index} counts", count + 1, cure)


@rule(
    "unreachable-last",
    WARNING,
    "capped: the tolerance keeps the last pods away",
    '`allowIdleConsumers: "true"` with `maxReplicaCount`: P',
    "keda#4791",
    "keda#2908",
    test=CAP,
    needs=PARTITIONS,
)
def unreachable_last(here: Scaled) -> Iterator[Hit]:
    """Cap and tolerance stop short of the last pods, where a step lands there."""
    for trigger, count in (
        here.caps() if not here.formula and len(here.lags) == 1 else ()
    ):  # of several triggers the largest proposal counts
        if not trigger.bounds_replicas:
            continue
        top = min(count, here.most)
        kept = max(first_kept(count, here.tolerance), here.floor)
        if kept < top:
            why = (
                f"its metric ends at {count:,} x lagThreshold, and {count} / {kept} is within the tolerance, {here.tolerance:g}"
            )
            words = f"a group that stands at {kept:,} pods stays there with any lag, and pod {top:,} is never asked for: {why}"
            cure: dict[Path, Any] = {trigger.path("metadata", "allowIdleConsumers"): "true", MOST: top}
            if trigger.limited or trigger.even:  # KEDA refuses the one pair, and ignores the other
                cure = {(*BEHAVIOR, "scaleUp", "tolerance"): 0} if here.takes_tolerance else {}
            yield Hit(trigger.path("metadata", "allowIdleConsumers"), words, top - kept, cure)


@rule(
    "uneven-share",
    INFORMATION,
    "fewer pods would finish as soon",
    "as many",
    "keda#2581",
    "keda#7517",
    needs=PARTITIONS,
)
def uneven_share(here: Scaled) -> Iterator[Hit]:
    """The last pods add nothing, for the pod with the most partitions is the last to finish."""
    for trigger, count in here.caps():
        if trigger.even:
            factors = [one for one in range(1, count + 1) if count % one == 0]
            jump, low = max(((high - low, low) for low, high in itertools.pairwise(factors)), default=(0, 1))
            field = trigger.path("metadata", "ensureEvenDistributionOfPartitions")
            if 2 * jump > count:
                words = f"a lag of {low * trigger.threshold + 1:,} asks for {low + jump:,} pods, one less for {low:,}"
                yield Hit(
                    field,
                    f"{words}: {count:,} partitions have no factor between",
                    jump,
                    cure="a number of partitions with more factors",
                )
            elif here.most < count and count % here.most:
                fits = max(one for one in factors if one <= here.most)
                words = f"{here.most:,} pods share {count:,} partitions unevenly: maxReplicaCount cuts the factors off"
                yield Hit(MOST, words, fits, {MOST: fits}, cure=f"`maxReplicaCount: {fits}`")
        elif here.most < count and len(here.lags) == 1:
            each = math.ceil(count / here.most)
            enough = math.ceil(count / each)
            if enough < here.most:
                words = f"one of {here.most:,} pods owns {each:,} of {count:,} partitions, as with {enough:,} pods"
                yield Hit(MOST, f"{words}: at equal load they finish as soon", enough, {MOST: enough})


@rule(
    "bounds",
    ERROR,
    "counts, times, names and kinds that are refused; idleReplicaCount above 0",
    "within the bounds",
    "keda#8172",
    "keda#2314",
    "keda#6370",
    test=ZERO,
)
def bounds(here: Scaled) -> Iterator[Hit]:
    """Source: ``CheckReplicaCountBoundsAreValid``, ``verifyName``, and autoscaling's ``validation.go``."""
    if here.least > here.most:
        words = f"minReplicaCount {here.least:,} is above maxReplicaCount {here.most:,}: refused"
        yield Hit(LEAST, words, here.least, {LEAST: here.most})
    written = here.item.spec.get("minReplicaCount") is not None
    if here.idle is not None and here.idle >= (here.floor if written else 0):
        words = "needs a minReplicaCount above it" if not written else f"is not below minReplicaCount {here.floor:,}"
        yield Hit(IDLE, f"idleReplicaCount {here.idle:,} {words}: refused", here.idle, {IDLE: REMOVED})
    elif here.idle:
        words = f"without work it flaps between {here.idle:,} and {here.least:,}: KEDA and the HPA undo each other's step"
        yield Hit(IDLE, words, here.idle, {IDLE: 0})
    yield from _names(here)
    yield from _target(here)
    yield from _times(here)
    yield from schema.wrong(here.item.spec)


def _names(here: Scaled) -> Iterator[Hit]:
    name: Path = ("metadata", "name")
    if not scaledobject.NAME.fullmatch(here.item.name):
        words = f"{shown(here.item.metadata.get('name'))} is no name of an object: {schema.REFUSED}"
        yield Hit(name, words, cure="small letters, digits, - and .")
    for field in ("labels", "annotations"):
        for key, value in mapping(here.item.metadata.get(field)).items():
            if not isinstance(value, str) and value is not None:
                place: Path = ("metadata", field, str(key))
                cure = {} if isinstance(value, dict | list) else {place: json.dumps(value, default=str)}
                yield Hit(place, f"{shown(value)} is no string: {schema.REFUSED}", changes=cure, cure="quotes")
    refused = "KEDA refuses it" if here.facts.keda >= (2, 20) else "KEDA can't make it a label"
    if len(here.item.name) > _LONGEST_NAME:
        words = f"the name has {len(here.item.name)} characters, more than {_LONGEST_NAME}: {refused}"
        yield Hit(name, words, len(here.item.name), cure="a shorter name")
    elif len(here.hpa) > _LONGEST_NAME:
        words = f"{here.hpa}, the name of the HPA, has {len(here.hpa)} characters, more than {_LONGEST_NAME}: {refused}"
        short = here.item.name[:_LONGEST_NAME].rstrip("-.")
        yield Hit(name, words, len(here.hpa), {(*HPA_CONFIG, "name"): short}, cure="a shorter name of the HPA")


def _target(here: Scaled) -> Iterator[Hit]:
    """Source: the CRD, and ``ParseGVKR``, whose kinds are the API server's to the letter."""
    given = mapping(here.item.spec.get("scaleTargetRef"))
    if not given.get("name"):
        yield Hit((*TARGET, "name"), "nothing says what is scaled: the API server refuses it", cure="a name")
    kind = given.get("kind")
    if isinstance(kind, str) and scaledobject.served(kind) != kind:
        words = f"the API server serves no {kind}, so KEDA finds nothing to scale: there is no HPA"
        yield Hit((*TARGET, "kind"), words, changes={(*TARGET, "kind"): scaledobject.served(kind)})


def _times(here: Scaled) -> Iterator[Hit]:
    for direction in ("scaleUp", "scaleDown"):
        given, path = mapping(here.written_behavior.get(direction)), (*BEHAVIOR, direction)
        window = whole(given.get("stabilizationWindowSeconds"), 0)
        if window > _LONGEST_WINDOW_S:
            yield _refused((*path, "stabilizationWindowSeconds"), window, _LONGEST_WINDOW_S)
        for number, policy in enumerate(listed(given.get("policies"))):
            period = whole(policy.get("periodSeconds"), 1)
            if period > _LONGEST_PERIOD_S:
                yield _refused((*path, "policies", number, "periodSeconds"), period, _LONGEST_PERIOD_S)

        tolerance = given.get("tolerance")
        bare = isinstance(tolerance, float) and tolerance % 1 != 0
        if tolerance is not None and (bare or tolerance_of(tolerance) is None):
            words = "a bare fraction, which KEDA's CRD does not take" if bare else "no quantity from 0"
            cure: dict[Path, Any] = {(*path, "tolerance"): f"{tolerance}"} if bare else {}
            yield Hit((*path, "tolerance"), f"tolerance {shown(tolerance)} is {words}: refused", changes=cure, cure="a string")


def _refused(path: Path, seconds: int, most: int) -> Hit:
    return Hit(
        path, f"{seconds:,} s is above {most:,} s: the API server refuses the HPA, so there is none", seconds, {path: most}
    )


@rule(
    "paused",
    WARNING,
    "an annotation that pauses; `selectPolicy: Disabled`",
    "remove it",
    "keda#7774",
    "keda#4253",
    test=TRIGGERS,
)
def paused(here: Scaled) -> Iterator[Hit]:
    """Any value of paused-replicas pauses, also beside paused "false". Source: ``NeedToBePausedByAnnotation``."""
    given = here.annotations
    if "paused-replicas" in given:
        count, beside = given["paused-replicas"], ' though paused is "false"' if given.get("paused") == "false" else ""
        number = float(count) if count.isdecimal() else None
        words = f"it stands at {count} replicas, whatever the lag{beside}: any paused-replicas pauses"
        yield Hit(_annotation("paused-replicas"), words, number, {_annotation("paused-replicas"): REMOVED})
    elif here.switched("paused"):
        words = "it stands as it is, without an HPA, whatever the lag"
        yield Hit(_annotation("paused"), words, changes={_annotation("paused"): REMOVED})
    ways: tuple[tuple[str, str, Any], ...] = (
        ("paused-scale-in", "scaleDown", "are never given back"),
        ("paused-scale-out", "scaleUp", "never come"),
    )
    for name, direction, words in ways:
        rules = here.down if direction == "scaleDown" else here.up
        field: Path = (*BEHAVIOR, direction, "selectPolicy")
        if here.switched(name) and here.facts.keda >= (2, 18):
            field = _annotation(name)
        elif rules.select != "Disabled":
            continue
        pods = here.most - here.floor
        if pods > 0:
            yield Hit(field, f"{pods:,} pods, from {here.floor:,} to {here.most:,}, {words}", pods, {field: REMOVED})


def _annotation(name: str) -> Path:
    return ("metadata", "annotations", f"{ANNOTATIONS}{name}")
