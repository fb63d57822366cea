"""The answer of a query of Prometheus about the simulated group. Lag in messages, rates in messages/s, times in s.

Series are those of kafka_exporter and of kafka-lag-exporter, scraped when they are asked for. A selector's group, topic and
partition are looked at. A label that a scrape adds (namespace, job and the like) is taken to match.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.errors import InputError, report
from lab.foresee import whole
from lab.foresee.group import Floats, Ints, Seen
from lab.foresee.promql import Matcher, Or, Query, QueryError, Selector, Sum, Where, parse
from lab.foresee.situation import Situation
from lab.inputs.triggers.external import PersistentLag
from lab.inputs.triggers.kafka import Kafka
from lab.inputs.triggers.parsing import Trigger, topic_places
from lab.inputs.triggers.prometheus import Prometheus

OFFSET = "kafka_topic_partition_current_offset"
_EXPORTED = {"consumergroup", "topic", "partition"}  # kafka_exporter's labels
_MEMBERS = {"member_host", "consumer_id", "client_id"}  # differ from pod to pod
_REPORTED = {"group", "topic", "partition", "cluster_name"} | _MEMBERS  # kafka-lag-exporter's
LABELS = {
    "kafka_consumergroup_lag": _EXPORTED,
    "kafka_consumergroup_lag_sum": _EXPORTED - {"partition"},
    "kafka_consumergroup_group_lag": _REPORTED,
    "kafka_consumergroup_group_topic_sum_lag": _REPORTED - {"partition"} - _MEMBERS,
    OFFSET: {"topic", "partition"},
    "kminion_kafka_consumer_group_topic_lag": {"group_id", "topic"},
    "kminion_kafka_consumer_group_topic_partition_lag": {"group_id", "topic", "partition"},
}
RENAMED = {"topic_name": "topic", "partition_id": "partition"}  # of kminion's labels
GROUPS = ("consumergroup", "group", "consumer_group", "consumerGroup", "group_id", "groupId", "consumer_group_name")
QUERIES = "a query as docs/simulate.md lists them"
_COMPARE: Mapping[str, Callable[[Floats, float], npt.NDArray[np.bool_]]] = {
    ">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
Elements = tuple[Floats, npt.NDArray[np.bool_]]  # the values, and which of them there are


@dataclass(frozen=True)
class Names:
    """What the triggers of an object tell of the group: its name, "" where none does, and its topics' by place."""

    group: str
    topics: tuple[str, ...]

    @classmethod
    def of(cls, triggers: Iterable[Trigger], topics: int) -> Names:
        """The names in ``triggers``: those on lag first, and then the first that a query says of what they leave out."""
        triggers = tuple(triggers)
        group, known = "", [""] * topics
        for trigger, place in zip(triggers, topic_places(triggers), strict=True):
            theirs, topic = _written(trigger)
            group = group or theirs
            if place is not None and place < topics:
                known[place] = topic
        for matcher in _equal(triggers):
            if matcher.label in GROUPS:
                group = group or matcher.value
            elif matcher.label == "topic" and matcher.value not in known and "" in known:
                known[known.index("")] = matcher.value
        return cls(group, tuple(known))


def _written(trigger: Trigger) -> tuple[str, str]:
    if isinstance(trigger, Kafka):
        return trigger.group.literal, trigger.topic.literal
    if isinstance(trigger, PersistentLag):
        return trigger.metadata.get("consumerGroup", ""), trigger.metadata.get("topic", "")
    return "", ""


def _equal(triggers: Iterable[Trigger]) -> Iterator[Matcher]:
    """The matchers by equality in the queries of ``triggers``."""
    for trigger in triggers:
        if isinstance(trigger, Prometheus):
            try:
                selector = _selector(_parsed(trigger.query))
            except QueryError:
                continue
            labels = LABELS.get(selector.metric, set())
            yield from (one for one in selector.matchers if one.operator == "=" and one.value and one.label in labels)


def check(content: Mapping[str, Any], where: object) -> None:
    """Report each query in the ScaledObject ``content`` that is not simulated, though the rest of it may be wrong too."""
    spec = content.get("spec")
    triggers = spec.get("triggers") if isinstance(spec, dict) else None
    for index, trigger in enumerate(triggers if isinstance(triggers, list) else ()):
        metadata = trigger.get("metadata") if isinstance(trigger, dict) and trigger.get("type") == "prometheus" else None
        text = metadata.get("query") if isinstance(metadata, dict) else None
        if isinstance(text, str) and text.strip():
            try:
                _known(_parsed(text))
            except QueryError as error:
                report(_refusal(where, f"spec.triggers[{index}].metadata.query", text, error))


def on_lag(text: str) -> bool:
    """Whether the query ``text`` answers a lag, messages, and not a rate, messages/s. Raises :class:`QueryError`."""
    return not _selector(_parsed(text)).rate_s


def _parsed(text: str) -> Query:
    """The tree of ``text``, with the usual names for kminion's labels. Raises :class:`QueryError`."""
    query = parse(text)
    return _renamed(query) if _selector(query).metric.startswith("kminion_") else query


def _selector(query: Query) -> Selector:
    """What ``query`` selects."""
    while not isinstance(query, Selector):
        query = query.of
    return query


def _renamed(query: Query) -> Query:
    if isinstance(query, Selector):
        matchers = (replace(one, label=RENAMED.get(one.label, one.label)) for one in query.matchers)
        return replace(query, matchers=tuple(matchers))
    made = replace(query, of=_renamed(query.of))
    return replace(made, labels=frozenset(RENAMED.get(one, one) for one in made.labels)) if isinstance(made, Sum) else made


def _known(query: Query) -> None:
    """Raise :class:`QueryError` for a metric that no exporter of lag has."""
    selector = _selector(query)
    if selector.metric not in LABELS:
        several = ", and without a sum several series are an error in KEDA" if selector is query else ""
        raise QueryError(f"{selector.metric} is no lag that is known{several}")
    if (selector.metric == OFFSET) is not (selector.rate_s > 0):
        raise QueryError(f"{selector.metric} {'without a rate' if selector.metric == OFFSET else 'as a rate'} is not modelled")


def _refusal(where: object, field: str, text: str, error: QueryError) -> InputError:
    return InputError(where, field, " ".join(text.split()), f"{QUERIES}: {error}")


@dataclass(frozen=True)
class _Vector:
    """What a part of a query answers: ``labels`` of its elements, of which topic and partition tell them apart."""

    labels: frozenset[str]
    topic: Ints
    partition: Ints
    read: Callable[[Seen], Elements]

    @property
    def size(self) -> int:
        """How many elements there are at most."""
        return len(self.topic)


class Answer:
    """The elements that a query answers, one at most, and lines about what it does not see."""

    def __init__(self, text: str, names: Names, situation: Situation, where: object, field: str) -> None:
        """Raises :class:`InputError`, naming ``field`` of the file ``where``, for a query that is not simulated."""
        self._names, self._is, self._field = names, situation, field
        self.notes: list[str] = []
        shown = " ".join(text.split())
        try:
            query = _parsed(text)
            _known(query)
            self._vector = self._of(query)
        except QueryError as error:
            raise _refusal(where, field, text, error) from None
        if self._vector.size > 1 or self._vector.labels & _MEMBERS:
            several = f"{self._vector.size} series" if self._vector.size > 1 else "a series for each pod"
            raise InputError(where, field, shown, f"one series, such as sum(...) gives: {several} are an error in KEDA")

    def __call__(self, seen: Seen) -> list[float]:
        """The elements."""
        values, there = self._vector.read(seen)
        return [float(value) for value in values[there]]

    def _of(self, query: Query) -> _Vector:
        match query:
            case Selector():
                found = self._selected(query)
                return found if "partition" in found.labels else _summed(found, found.labels)
            case Sum(of, labels, without):
                inner = self._of(of)
                return _summed(inner, inner.labels - labels if without else inner.labels & labels)
            case Where(of, sign, bound):
                inner, holds = self._of(of), _COMPARE[sign]

                def read(seen: Seen) -> Elements:
                    values, there = inner.read(seen)
                    return values, there & holds(values, bound)

                return _Vector(inner.labels, inner.topic, inner.partition, read)
            case Or(of, value, any_labels):
                return _or(self._of(of), value, any_labels)

    def _selected(self, selector: Selector) -> _Vector:
        """A series for each partition that every matcher selects."""
        topics = self._is.topics
        sizes = self._is.sizes or (len(self._is.shares) // topics,) * topics
        topic = np.repeat(np.arange(topics), sizes)
        partition = np.concatenate([np.arange(size) for size in sizes])
        numbers = np.arange(len(topic))
        chosen = np.ones(len(numbers), dtype=bool)
        for matcher in selector.matchers:
            chosen &= self._matched(matcher, selector.metric, topic, partition)
        if not chosen.any() and not self.notes:
            self._note(selector.metric, "selects no partition of the group")
        numbers, shares = numbers[chosen], self._is.shares
        there: npt.NDArray[np.bool_] = np.ones(len(numbers), dtype=bool)

        def lags(seen: Seen) -> Elements:
            return whole.by_partition(seen.lags[numbers]), there

        def rates(seen: Seen) -> Elements:
            return self._rate(seen.now, selector.rate_s) * shares[numbers], there

        read = rates if selector.rate_s else lags
        return _Vector(frozenset(LABELS[selector.metric]), topic[chosen], partition[chosen], read)

    def _matched(self, matcher: Matcher, metric: str, topic: Ints, partition: Ints) -> npt.NDArray[np.bool_]:
        """Which partitions ``matcher`` selects."""
        label, own = matcher.label, LABELS[metric]
        said = f'{label}{matcher.operator}"{matcher.value}"'
        everything: npt.NDArray[np.bool_] = np.ones(len(topic), dtype=bool)
        if label == "partition" and label in own:
            by_number = np.array([matcher.matches(str(number)) for number in range(int(partition.max()) + 1)])
            return by_number[partition]
        if label == "topic":
            if not any(self._names.topics):
                return everything
            by_place = np.array([matcher.matches(name) for name in self._names.topics])
            if not by_place.any():
                self._note(metric, f"{said} selects none of the group's topics, {', '.join(filter(None, self._names.topics))}")
            return by_place[topic]
        if label in GROUPS and label in own:
            if self._names.group and not matcher.matches(self._names.group):
                self._note(metric, f"{said} is not the group {self._names.group}")
                return ~everything
        elif (label in GROUPS or label == "partition") and not matcher.matches(""):
            right = next((f" (it is {one})" for one in GROUPS if one in own), "")
            self._note(metric, f"has no label {label}{right}")
            return ~everything
        return everything

    def _note(self, metric: str, what: str) -> None:
        self.notes.append(f"{self._field}: {metric} {what}: the query matches nothing there and reads 0")

    def _rate(self, now: float, window: float) -> float:
        """Messages/s over the window. Before 0 s they come at the first step's rate."""
        arrivals = self._is.arrivals
        before = max(0.0, window - now) * float(arrivals.rates[0])
        since, until = arrivals.by(np.array([max(0.0, now - window), now]))
        return (float(until - since) + before) / window


def _summed(inner: _Vector, labels: frozenset[str]) -> _Vector:
    """The sums over elements that are alike in ``labels``."""
    nothing: Ints = np.zeros(inner.size, dtype=np.int64)
    if not inner.size:
        return _Vector(labels, nothing, nothing, inner.read)
    by_topic = inner.topic if "topic" in labels else nothing
    by_partition = inner.partition if "partition" in labels else nothing
    pairs, group = np.unique(np.stack([by_topic, by_partition]), axis=1, return_inverse=True)
    count = pairs.shape[1]

    def read(seen: Seen) -> Elements:
        values, there = inner.read(seen)
        if count == 1 and there.all():
            return np.array([values.sum()]), np.array([True])
        totals: Floats = np.bincount(group.ravel(), np.where(there, values, 0.0), minlength=count).astype(np.float64)
        return totals, np.bincount(group.ravel(), there, minlength=count) > 0

    return _Vector(labels, pairs[0], pairs[1], read)


def _or(inner: _Vector, value: float, any_labels: bool) -> _Vector:
    """``inner``, or ``value`` where it has no element; an element with labels is another than vector's, which has none."""
    if inner.labels and not any_labels:
        named = ", ".join(sorted(inner.labels))
        raise QueryError(f"beside a sum by {named} `or vector` is a second series, an error in KEDA: take `or on() vector`")
    if inner.size > 1:
        raise QueryError(f"{inner.size} series, which are an error in KEDA")
    one: Ints = np.zeros(1, dtype=np.int64)

    def read(seen: Seen) -> Elements:
        values, there = inner.read(seen)
        return (values[there] if there.any() else np.array([value])), np.array([True])

    return _Vector(inner.labels, one, one, read)
