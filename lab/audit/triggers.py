"""Rules on triggers together, on what stands in for them, and on hours: formula, fallback, cron. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from lab.audit.bounds import MOST, PARTITIONS, first_kept
from lab.audit.objects import Path, whole
from lab.audit.rules import ERROR, INFORMATION, OUTAGE, TRIGGERS, WARNING, Hit, rule
from lab.audit.scaledobject import BEHAVIOR, MODIFIERS, RESOURCES, Scaled
from lab.audit.trigger import Trigger
from lab.inputs import modifiers
from lab.inputs.triggers import cron
from lab.inputs.triggers.common import Common
from lab.inputs.triggers.cron import Cron
from lab.inputs.triggers.kafka import KAFKA

_SUM = re.compile(r"\s*\w+(\s*\+\s*\w+)*\s*")
_NAME = re.compile(r"[A-Za-z_]\w*")
BEGINS = datetime(2026, 1, 5, tzinfo=UTC)  # a Monday: hours are counted from it, so that an answer does not depend on the day
_DAYS, _MOST_TIMES, _YEARS = 14, 5000, (2026, 2027)
_LONG_H = 20.0  # a stretch of a day that nobody means by hours
_FIXED = ("EST", "MST", "HST")  # zones that never change their clocks
FALLBACK: Path = ("spec", "fallback")


@rule(
    "max-not-sum",
    INFORMATION,
    "several kafka triggers without a formula",
    "`scalingModifiers`: their sum",
    "keda#828",
    "keda#4533",
    test=TRIGGERS,
)
def max_not_sum(here: Scaled) -> Iterator[Hit]:
    """Any failing one stops every scale-down too."""
    if len(here.lags) < 2 or here.formula:
        return
    counts = [here.counted(one) for one in here.lags]
    known = [count for count in counts if count is not None]
    words = f"the HPA takes the largest of {len(here.lags)} triggers on lag, not their sum"
    number = None
    if len(known) == len(counts) and all(one.bounds_replicas for one in here.lags):
        number = max(known)
        words += f": at full lag {min(number, here.most):,} pods, with {here.owned or number:,} partitions in all"
    yield Hit(("spec", "triggers"), words, number, _sum(here))


def _sum(here: Scaled) -> dict[Path, Any]:
    """The formula of the sum, with names for the triggers; none where their thresholds differ, or other triggers count."""
    thresholds = {one.threshold for one in here.lags}
    if len(thresholds) > 1 or len(here.lags) < len(here.triggers):
        return {}
    names = [one.name if _NAME.fullmatch(one.name) else f"lag{one.index}" for one in here.lags]
    named = {one.path("name"): name for one, name in zip(here.lags, names, strict=True) if one.name != name}
    return named | {MODIFIERS: {"formula": " + ".join(names), "target": str(thresholds.pop())}}


@rule(
    "modifiers-cap",
    ERROR,
    "a formula that is refused, or one of capped triggers that ends below the bounds",
    "`lagThreshold`: the target",
    needs=PARTITIONS,
)
def modifiers_cap(here: Scaled) -> Iterator[Hit]:
    """Each trigger is capped before the formula. Source: ``getTotalLag``, and ``validateScalingModifiersFormula``."""
    if not here.modifiers:
        return
    if not here.formula or not here.target or here.target <= 0:
        what = "target" if here.formula else "formula"
        yield Hit((*MODIFIERS, what), f"scalingModifiers without a usable {what}: KEDA refuses them", cure=f"a {what}")
        return
    if not any(one.name for one in here.triggers if one.type not in RESOURCES):
        yield Hit((*MODIFIERS, "formula"), "no trigger has a name that the formula could use: KEDA refuses it", cure="names")
        return
    if here.refusal:
        yield Hit((*MODIFIERS, "formula"), f"KEDA refuses it: {here.refusal}", cure="what expr takes")
        return
    words = set(re.findall(r"\w+", here.formula))
    summed = [one for one in here.lags if one.name in words]
    caps = {one.index: count for one, count in here.caps()}
    if not _SUM.fullmatch(here.formula) or len(summed) < len(words) or any(one.index not in caps for one in summed):
        return
    lag, needed = sum(caps[one.index] * one.threshold for one in summed), min(here.most, here.owned or here.most)
    most = math.ceil(lag / here.target)
    if most < needed and here.modifiers.get("metricType", "AverageValue") == "AverageValue":
        told = (
            f"each trigger is capped before the formula, which ends at {lag:,}: at most {most:,} of {needed:,} pods, at any lag"
        )
        cure = {one.path("metadata", "lagThreshold"): f"{here.target:.0f}" for one in summed}
        yield Hit((*MODIFIERS, "target"), told, most, cure if here.target == int(here.target) else {})


@rule(
    "fallback-never",
    ERROR,
    "a fallback that nothing, or not every failure, brings",
    "a whole target; an alert on keda_scaled_object_errors_total",
    "keda#8056",
    "keda#5525",
    "keda#6696",
    test=OUTAGE,
)
def fallback_never(here: Scaled) -> Iterator[Hit]:
    """Else the seconds until it comes. Source: ``GetMetricsWithFallback``, ``HasValidFallback``, ``CheckFallbackValid``."""
    if here.fallback is None or not here.triggers:
        return
    behavior, target = (here.fallback.get("behavior") or "static"), str(here.modifiers.get("target", ""))
    asked = [one for one in here.triggers if one.type not in RESOURCES]
    if here.formula and not re.fullmatch(r"[+-]?\d+", target):
        cure: dict[Path, Any] = {(*MODIFIERS, "target"): str(math.ceil(here.target))} if here.target else {}
        yield Hit((*MODIFIERS, "target"), f"target {target} is not whole: the fallback never comes, of no trigger", 0, cure)
    elif not here.formula and not asked:
        yield Hit(FALLBACK, "every trigger is cpu or memory: KEDA refuses a fallback", 0, cure="remove it")
    elif behavior == modifiers.FALLBACK and not here.formula:
        yield Hit((*FALLBACK, "behavior"), "scalingModifiers without a formula: KEDA refuses it", 0, cure="a formula")
    else:
        valued = [one.path("metricType") for one in asked if one.metric_type == "Value" and not here.formula]
        if valued and here.facts.keda >= (2, 18):
            yield Hit(valued[0], "without a ready pod a fallback of type Value never comes", 0, severity=WARNING)
        deaf = [one for one in asked if one.type in (KAFKA, "external")]  # that of apache-kafka is built without a connection
        if deaf:
            seconds = (whole(here.fallback.get("failureThreshold"), 0) + 1) * here.question_s(deaf[0])
            words = f"it comes {seconds:.0f} s after a trigger fails, but not while no broker or external scaler answers"
            yield Hit(FALLBACK, f"{words}: {len(deaf)} of {len(asked)} triggers", seconds, severity=INFORMATION)


@rule(
    "fallback-shrinks",
    WARNING,
    "a static fallback below maxReplicaCount",
    "`behavior: currentReplicasIfHigher`",
    "keda#6659",
    "keda#7239",
    test=OUTAGE,
)
def fallback_shrinks(here: Scaled) -> Iterator[Hit]:
    """An outage amid a peak takes pods away. Fallback counts as active, so that 0 replicas are 1."""
    if here.fallback is None or (here.fallback.get("behavior") or "static") != "static":
        return
    replicas = whole(here.fallback.get("replicas"), 0)
    lost = here.most - max(replicas, here.floor)
    if lost > 0:
        words = f"a failing trigger at {here.most:,} pods takes {lost:,} of them away, {here.down_window_s:,} s later"
        cure: dict[Path, Any] = {(*FALLBACK, "behavior"): "currentReplicasIfHigher"} if here.facts.keda >= (2, 17) else {}
        yield Hit((*FALLBACK, "replicas"), words, lost, cure, WARNING if replicas else ERROR)


@rule(
    "cron-open",
    WARNING,
    "a window over 20 h, or one whose minute is a star",
    "the same days, fixed minutes",
    "keda#4677",
    "keda#5882",
    "keda#2031",
)
def cron_open(here: Scaled) -> Iterator[Hit]:
    """It is active while the next start is not before the next end: through all days on which no end comes first."""
    for trigger, when in _crons(here):
        start, end = when.start.split(), when.end.split()
        weekly, longest = _open(when)
        stars = "*" in start[0] or "*" in end[0]
        if stars or longest >= _LONG_H:
            words = f"open {weekly:.4g} h a week, {longest:.4g} h at the longest"
            fixed = {"start": " ".join(["0" if "*" in start[0] else start[0], *start[1:]])}
            fixed["end"] = " ".join(["0" if "*" in end[0] else end[0], end[1], *start[2:]])
            cure = {trigger.path("metadata", key): text for key, text in fixed.items() if text != getattr(when, key)}
            cured = replace(when, start=fixed["start"], end=fixed["end"])
            if not stars and _open(cured)[0] >= weekly:  # the window may be meant to be open over a weekend
                cure = {}
            yield Hit(trigger.path("metadata", "end"), words, weekly, cure)


@rule(
    "cron-zone-dst",
    ERROR,
    "no zone, one without summer time, or an hour that is skipped",
    "a zone such as `Europe/Berlin`; another hour",
    "robfig/cron#541",
)
def cron_zone_dst(here: Scaled) -> Iterator[Hit]:
    """A zone that is none is found out at run time alone, and then stops every scale-down."""
    for trigger in here.triggers:
        zone = trigger.metadata.get("timezone", "")
        path = trigger.path("metadata", "timezone")
        if trigger.type == "cron" and zone and _zone(zone) is None:
            yield Hit(path, f"{zone} is no time zone: KEDA fails at each question, and nothing scales down")
        elif trigger.type == "cron" and zone in _FIXED:
            days = sum(_offset("America/New_York", BEGINS + timedelta(days=day)) != timedelta(hours=-5) for day in range(365))
            yield Hit(path, f"{zone} has no summer time: an hour off on {days} days a year", days, severity=WARNING)
        elif trigger.type == "cron" and re.fullmatch(r"Etc/GMT[+-][1-9]\d?", zone):
            sign, hours = zone[7], int(zone[8:])
            words = f"{zone} is UTC{'-' if sign == '+' else '+'}{hours}: its sign is the other way round"
            yield Hit(path, words, hours, severity=WARNING)
    for trigger, when in _crons(here):
        for field in ("start", "end"):
            if day := _skipped(when.zone, getattr(when, field)):
                words = f"the clocks of {when.zone} skip it on {day}: that {field} never comes"
                yield Hit(trigger.path("metadata", field), words, severity=WARNING)


@rule(
    "cron-no-effect",
    WARNING,
    "desiredReplicas beyond the bounds or within the tolerance",
    "`scaleUp.tolerance: 0`; other bounds",
    "keda#7900",
    "keda#5263",
    "keda#5820",
)
def cron_no_effect(here: Scaled) -> Iterator[Hit]:
    """The largest trigger counts, and no sum."""
    for trigger in here.triggers if not here.formula else ():
        wanted = trigger.number("desiredReplicas", 0)
        path = trigger.path("metadata", "desiredReplicas")
        if trigger.type != "cron" or wanted < 1:
            continue
        if wanted <= here.floor and here.to_zero:  # an open window is active: there are pods in it
            continue
        if wanted <= here.floor:
            yield Hit(path, f"desiredReplicas {wanted:,} is not above the minimum, {here.floor:,}: it does nothing", wanted)
            continue
        if wanted > here.most:
            yield Hit(path, f"desiredReplicas {wanted:,}: maxReplicaCount allows {here.most:,}", here.most, {MOST: wanted})
        if here.owned is not None and min(wanted, here.most) > here.owned:
            words = f"{min(wanted, here.most) - here.owned:,} of its {min(wanted, here.most):,} pods own no partition"
            yield Hit(path, words, min(wanted, here.most) - here.owned, {path: str(here.owned)})
        top = min(wanted, here.most)
        kept = max(first_kept(wanted, here.tolerance), here.floor)
        if kept < top:
            words = f"a group that stands at {kept:,} pods stays: {wanted} / {kept} is within the tolerance, {here.tolerance:g}"
            yield Hit(path, words, top - kept, {(*BEHAVIOR, "scaleUp", "tolerance"): 0} if here.takes_tolerance else {})


def _crons(here: Scaled) -> Iterator[tuple[Trigger, Cron]]:
    """The cron triggers that KEDA takes."""
    for trigger in here.triggers:
        given = trigger.metadata
        start, end, zone = (given.get(field, "") for field in ("start", "end", "timezone"))
        if trigger.type != "cron" or start == end or _zone(zone) is None or not (_parses(start) and _parses(end)):
            continue
        yield trigger, Cron(Common("", False, "AverageValue", False), zone, start, end, trigger.number("desiredReplicas", 1))


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def _parses(text: str) -> bool:
    try:
        cron.parse_schedule(text)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1024)
def _open(when: Cron) -> tuple[float, float]:
    """Hours a week that ``when`` is active in two weeks, or in its first thousands of times; its longest stretch, h."""
    now, last, hours, stretch, longest = BEGINS, BEGINS + timedelta(days=_DAYS), 0.0, 0.0, 0.0
    for _ in range(_MOST_TIMES):
        if now >= last:
            break
        starts, ends = cron.due(when, now)
        then = min(one for one in (starts, ends, last) if one is not None)
        active = starts is None or (ends is not None and ends <= starts)
        part = (then - now) / timedelta(hours=1)
        hours, stretch = (hours + part, stretch + part) if active else (hours, 0.0)
        longest, now = max(longest, stretch), then
    return hours / ((now - BEGINS) / timedelta(weeks=1)), longest


def _offset(zone: str, when: datetime) -> timedelta | None:
    return when.astimezone(ZoneInfo(zone)).utcoffset()


@lru_cache(maxsize=1024)
def _skipped(zone: str, text: str) -> str:
    """The first day on which a change of clocks skips the time of ``text``; "" where none does, or it has many hours."""
    schedule, place = cron.parse_schedule(text), ZoneInfo(zone)
    if schedule.hour.star or len(schedule.hour.values) > 6 or len(schedule.minute.values) > 6:
        return ""
    first = datetime(_YEARS[0], 1, 1)
    for day in (first + timedelta(days=number) for number in range(365 * len(_YEARS))):
        if place.utcoffset(day) == place.utcoffset(day + timedelta(days=1)) or day.month not in schedule.month:
            continue
        for hour in schedule.hour.values:
            for minute in schedule.minute.values:
                wall = day.replace(hour=hour, minute=minute)
                there = wall.replace(tzinfo=place).astimezone(UTC).astimezone(place).replace(tzinfo=None)
                if there != wall:
                    return f"{wall:%Y-%m-%d %H:%M}"
    return ""
