"""``elastic-lab sync``: what one sync of the HPA decides on a lag, and why: metric, ratio, tolerance, cap, window, policy."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from lab.commands.text import as_json, table
from lab.errors import InputError
from lab.flags import Flags, Kind, whole
from lab.foresee import sync
from lab.foresee.sync import Given, Sync
from lab.inputs import scaledobject_file
from lab.inputs.hpa_spec import MAX_REPLICAS, parse_quantity
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers.cron import Cron
from lab.inputs.triggers.external import PersistentLag
from lab.inputs.triggers.kafka import Kafka
from lab.inputs.triggers.parsing import Trigger
from lab.inputs.triggers.prometheus import Prometheus
from lab.inputs.triggers.resource import Resource

T = TypeVar("T")
MOST_PARTITIONS = 100_000
MOST_LAG = 10**15
NAMED = "a trigger's name, topic, type or index"


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    parser.flag(
        "scaledobject", Path, None, "the file of the ScaledObject, or of a plain HPA, YAML or JSON; - for standard input"
    )
    parser.flag("name", str, "", "the ScaledObject of this name, or NAMESPACE/NAME, where several are in the file")
    parser.flag("replicas", whole(0, MAX_REPLICAS), None, "replicas that there are now")
    text = f"[TRIGGER=]N, the lag in messages, or N,N,... by partition; again for each trigger on lag. TRIGGER is {NAMED}"
    parser.flag("lag", named(whole(0, MOST_LAG), several=True), None, text, optional=True, many=True)
    text = "[TRIGGER=]N, the partitions of a topic, over which a total lag is spread evenly"
    parser.flag("partitions", named(whole(1, MOST_PARTITIONS)), None, text, optional=True, many=True)
    text = "[TRIGGER=]N, what a query answers, or what each pod uses of cpu or memory: percent, or such as 500m or 2Gi"
    parser.flag("value", named(Kind(_amount, f"a number from 0 to {MOST_LAG:,}")), None, text, optional=True, many=True)
    parser.flag("at", _time, None, "the time, for a cron trigger", "such as 2026-01-15T07:54:00+01:00", optional=True)
    text = "N,N,... that earlier syncs within the stabilization windows asked for; those of now without it, as for a new HPA"
    parser.flag("recommended", _list(whole(0, MAX_REPLICAS)), None, text, optional=True)
    changed = whole(-MAX_REPLICAS, MAX_REPLICAS)
    parser.flag("changed", changed, 0, "replicas added (or removed, below 0) within the period of the policies")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")


def run(options: Namespace) -> int:
    """Decide and print. Returns the exit code."""
    given = scaledobject_file.load(options.scaledobject, options.name, hpa=True)
    remembered = sync.memory(options.recommended or (), options.changed)
    found = sync.sync(given.scaled, _given(given.scaled, options), options.replicas, remembered)
    found = replace(found, remarks=(*given.remarks, *_unseen(given.scaled)))
    print(as_json(asdict(found)) if options.json else _text(found))
    return 0


def _unseen(scaled: ScaledObject) -> Iterator[str]:
    """What a question before this one decides."""
    for name, one in zip(sync.labels(scaled), scaled.triggers, strict=True):
        if isinstance(one, Kafka) and one.exclude_persistent:
            still = "a partition whose offset stood still since the question before"
            yield f"{name}: excludePersistentLag counts nothing of {still}; here all counts"


def named(kind: Kind, *, several: bool = False) -> Kind:
    """``[NAME=]`` before what ``kind`` takes, or a list of it, as a pair; without a name it is ""."""
    convert = _list(kind) if several else kind

    def read(text: str) -> tuple[str, object]:
        name, _, value = text.rpartition("=")
        return name, convert(value)

    return Kind(read, f"TRIGGER=N or N: {kind.allowed}{' each, with commas' if several else ''}")


def _list(kind: Kind) -> Kind:
    return Kind(lambda text: [kind(part) for part in text.split(",")], f"{kind.allowed} each, with commas")


def _amount(text: str) -> str:
    if not 0 <= parse_quantity(text) <= MOST_LAG:
        raise ValueError(text)
    return text


def _measured(text: str, trigger: Trigger, name: str) -> Fraction:
    """The number that ``text`` is for ``trigger``. Raises :class:`InputError` for an amount where a percentage is compared."""
    in_percent = isinstance(trigger, Resource) and trigger.common.metric_type == "Utilization"
    if in_percent and not text.replace(".", "", 1).isdecimal():
        raise InputError("command line", "--value", text, f"percent of the request, such as 85, for the trigger {name}")
    return parse_quantity(text)


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(text)
    return at


def _given(scaled: ScaledObject, options: Namespace) -> list[Given]:
    """What the flags say of each trigger. Raises :class:`InputError` for a trigger of which they say nothing."""
    on_lag = [isinstance(one, Kafka | PersistentLag) for one in scaled.triggers]
    timed = [isinstance(one, Cron) for one in scaled.triggers]
    others = [not lagging and not cron for lagging, cron in zip(on_lag, timed, strict=True)]
    queried = [isinstance(one, Prometheus) for one in scaled.triggers]
    counted = on_lag if any(on_lag) else queried  # what a query answers may be the lag
    lags: dict[int, list[int]] = _by_trigger(scaled, "--lag", options.lag, counted)
    said: dict[int, str] = _by_trigger(scaled, "--value", options.value, others)
    labels = sync.labels(scaled)
    values = {index: _measured(text, scaled.triggers[index], labels[index]) for index, text in said.items()}
    values |= {index: Fraction(sum(lag)) for index, lag in lags.items()}
    partitions: dict[int, int] = _by_trigger(scaled, "--partitions", options.partitions, counted, shared=True)
    given: list[Given] = []
    for index, (trigger, name) in enumerate(zip(scaled.triggers, labels, strict=True)):
        if on_lag[index]:
            lag = _needed(lags.get(index), "--lag", name, "messages, or a list by partition")
            given.append(lag if len(lag) > 1 else _spread(lag[0], trigger, partitions.get(index), name))
        elif timed[index]:
            given.append(_needed(options.at, "--at", name, "a time such as 2026-01-15T07:54:00+01:00"))
        else:
            given.append(_needed(values.get(index), "--value", name, "what it measures"))
    return given


def _needed(value: T | None, flag: str, name: str, allowed: str) -> T:
    if value is None:
        raise InputError("command line", flag, None, f"{name}={allowed}, for the trigger {name}")
    return value


def _by_trigger(
    scaled: ScaledObject,
    flag: str,
    pairs: Sequence[tuple[str, T]] | None,
    fits: Sequence[bool],
    *,
    shared: bool = False,
) -> dict[int, T]:
    """The values of ``flag`` by the index of the trigger that each names, among those that it ``fits``.

    One without a name is the only trigger's, or with ``shared`` that of every trigger which none names.
    """
    fitting = [index for index, one in enumerate(fits) if one]
    labels, kinds = sync.labels(scaled), sync.kinds(scaled)
    found: dict[int, T] = {}
    for name, value in sorted(pairs or (), key=lambda pair: bool(pair[0])):
        wanted = [index for index in fitting if not name or name in (labels[index], str(index))]
        wanted = wanted or [index for index in fitting if name == kinds[index]]
        if not wanted or (len(wanted) > 1 and not (shared and not name)):
            allowed = ", ".join(f"{labels[index]}=..." for index in fitting) or "none: no trigger takes it"
            shown = name or (",".join(map(str, value)) if isinstance(value, list) else str(value))
            raise InputError("command line", flag, shown, allowed)
        found |= dict.fromkeys(wanted, value)
    return found


def _spread(lag: int, trigger: Trigger, partitions: int | None, name: str) -> list[int]:
    """``lag`` spread evenly over those of the ``partitions`` that ``trigger`` counts; the others have none."""
    if partitions is None:
        raise InputError(
            "command line", "--partitions", None, f"{name}=N, 1 to {MOST_PARTITIONS:,}: they cap what a lag asks for"
        )
    assert isinstance(trigger, Kafka | PersistentLag)
    counted = [number for number in range(partitions) if trigger.partitions is None or number in trigger.partitions]
    if not counted:
        allowed = f"one that trigger {name} counts: {', '.join(map(str, sorted(trigger.partitions or ())))}, from 0"
        raise InputError("command line", "--partitions", partitions, allowed)
    spread = [0] * partitions
    for place, number in enumerate(counted):
        spread[number] = (lag + len(counted) - 1 - place) // len(counted)
    return spread


def _text(found: Sync) -> str:
    rows: list[tuple[str, str]] = []

    def add(name: str, lines: Sequence[str]) -> None:
        rows.extend((name if place == 0 else "", line) for place, line in enumerate(lines))

    for one in found.triggers:
        name = one.trigger if one.trigger == one.type else f"{one.type} {one.trigger}"
        add(name, [*one.why, *([one.arithmetic] if one.arithmetic else [])])
    add("limits", found.limits or ["none acts"])
    add("KEDA", [found.keda])
    add("decision", [f"{found.replicas} -> {found.decided} ({found.decided_by})"])
    if found.window_s is not None:
        add("", [f"{found.replicas} -> {found.steady} once every sync of {found.window_s} s has asked for this"])
    head = f"{found.scaledobject}: one sync at {found.replicas} replicas, of {found.min_replicas} to {found.max_replicas}"
    return "\n".join([head, table(rows), *found.remarks])
