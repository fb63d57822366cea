"""What a trigger's metadata tells the scaler. Pure.

Words shared with KEDA's kafka trigger are checked by the same code. KEDA sends a ``...FromEnv`` field with the variable's
*value*, and leaves it out where the container has no such variable (``parseExternalScalerMetadata`` in
``pkg/scalers/external_scaler.go`` of KEDA 2.21). It never sends secrets of an authenticationRef.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lab.inputs.triggers import kafka
from lab.inputs.triggers.common import normalized
from lab.inputs.triggers.metadata import Metadata

_NAMED = ("bootstrapServers", "consumerGroup", "topic")
_SHARED = ("lagThreshold", "activationLagThreshold", "offsetResetPolicy", "partitionLimitation", "allowIdleConsumers")
_OWN = (
    *("lagSeconds", "activationLagSeconds", "sustainSeconds", "samplingInterval", "windowSize"),
    *("scaleUpStabilization", "scaleDownStabilization"),
)
_CONNECTION = ("scalerAddress", "enableTLS", "unsafeSsl")  # KEDA's own, for the connection; it sends them along
FIELDS = (*_NAMED, *(f"{name}FromEnv" for name in _NAMED), *_SHARED, *_OWN, *_CONNECTION)
LONGEST_S = 3_600
SHORTEST_S = 0.1
MOST_INTERVALS = 3_600  # that a stabilization may span: each is a sample to keep, and to look at with every question
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
LONGEST_GROUP = 255  # Kafka has no such limit, but a group's name is in every metric of it
LONGEST_INTERVAL_S = 300
BRIDGED = 3  # sampling intervals without a sample that a straight line still stands for


@dataclass(frozen=True)
class Rule:
    """What a window of ``size`` intervals goes by: times in s, ``target`` and ``activation`` in messages, for ``ages`` in s.

    ``allow_idle`` is whether the metric may ask for more replicas than there are partitions.
    """

    target: float
    sustain_s: float
    up_s: float
    down_s: float
    interval_s: float
    size: int
    activation: float
    ages: bool
    allow_idle: bool

    @property
    def longest_gap_s(self) -> float:
        """How old the last sample may be, and how far apart two may be, before what came earlier no longer counts."""
        return BRIDGED * self.interval_s


@dataclass(frozen=True)
class Source:
    """What is read: a group's offsets on a topic of the cluster at ``servers``; ``partitions`` are the only ones, None is all.
    ``offset_reset`` says where a group begins that has never committed, ``ages`` whether time or messages are counted."""

    servers: str
    group: str
    topic: str
    offset_reset: str
    partitions: frozenset[int] | None
    ages: bool


@dataclass(frozen=True)
class Settings:
    """One trigger's settings: what is read, and the rule it is judged by."""

    source: Source
    rule: Rule

    @property
    def metric(self) -> str:
        """The metric's name; KEDA puts the trigger's index before it."""
        return normalized(f"persistent-lag{'-seconds' if self.rule.ages else ''}-{self.source.topic}")


def parse(given: Mapping[str, str], where: object, place: str = "", *, resolved: bool = False) -> Settings:
    """The settings in metadata as KEDA sends it. Raises :class:`InputError` naming ``where`` and the field, after ``place``.
    ``resolved`` says that ``...FromEnv`` fields hold their variables' values; in a manifest they hold the variables' names."""
    metadata = Metadata.read({"metadata": dict(given)}, where, place, resolved)
    metadata.check(FIELDS)
    names = {field: _name(metadata, field, resolved) for field in _NAMED}
    ages = _in_seconds(metadata)
    shared = {field: metadata.content[field] for field in _SHARED if field in metadata.content}
    trigger = kafka.parse({"type": "kafka", "metadata": names | shared}, where, place)
    interval = metadata.number("samplingInterval", SHORTEST_S, LONGEST_INTERVAL_S, 10)
    size = metadata.whole("windowSize", 1, 720, 30)
    reach_s, within = interval * size, "at most samplingInterval * windowSize"
    longest_s, spanned = MOST_INTERVALS * interval, f"at most {MOST_INTERVALS} times samplingInterval"
    servers, group, topic = cluster(names["bootstrapServers"]), names["consumerGroup"], names["topic"]
    return Settings(
        Source(servers, group, topic, trigger.offset_reset, trigger.partitions, ages),
        Rule(
            target=metadata.number("lagSeconds", SHORTEST_S) if ages else float(trigger.lag_threshold),
            sustain_s=_span(metadata, "sustainSeconds", reach_s, f"{within}, {reach_s:g}: older samples are not kept"),
            up_s=_span(metadata, "scaleUpStabilization", longest_s, f"{spanned}, {longest_s:g}", 0),
            down_s=_span(metadata, "scaleDownStabilization", longest_s, f"{spanned}, {longest_s:g}", 0),
            interval_s=interval,
            size=size,
            activation=metadata.number("activationLagSeconds", 0, default=0) if ages else float(trigger.activation),
            ages=ages,
            allow_idle=trigger.allow_idle,
        ),
    )


def cluster(servers: str) -> str:
    """The one way of writing the addresses ``servers``, whatever their order: what stands for the cluster."""
    return ",".join(sorted(part.strip() for part in servers.split(",")))


def _name(metadata: Metadata, field: str, resolved: bool) -> str:
    """What ``field`` names. One that Kafka's client can't take would end the reading of all others on the cluster."""
    named = metadata.named(field)
    value = named.literal or named.variable
    allows, allowed = _NAMES[field]
    if not named.given:
        metadata.refuse(field, f"a value, here or by {field}FromEnv from a variable that the target's container has")
    elif (named.literal or resolved) and not allows(value):
        metadata.refuse(field if named.literal else f"{field}FromEnv", allowed)
    return value


def _servers(value: str) -> bool:
    found = [_SERVER.fullmatch(part.strip()) for part in value.split(",")]
    return all(server is not None and 0 < int(server[2]) < 65_536 for server in found)


_NAMES: dict[str, tuple[Callable[[str], object], str]] = {
    "bootstrapServers": (_servers, "HOST:PORT, with a comma between two"),
    "consumerGroup": (
        lambda value: value.isprintable() and len(value) <= LONGEST_GROUP,
        f"{LONGEST_GROUP} printable characters at most",
    ),
    "topic": (kafka.TOPIC.fullmatch, "a topic's name: up to 249 of A-Z a-z 0-9 . _ -"),
}


def _span(metadata: Metadata, field: str, most: float, allowed: str, default: int | None = None) -> int:
    """The seconds in ``field``, at most ``most``, which ``allowed`` says in words."""
    span = metadata.whole(field, 0, LONGEST_S, default)
    if span > most:
        metadata.refuse(field, allowed)
    return span


def _in_seconds(metadata: Metadata) -> bool:
    """Whether the threshold is an age."""
    ages = bool(metadata.content.get("lagSeconds"))
    if ages == bool(metadata.content.get("lagThreshold")):
        metadata.refuse("lagThreshold", "either lagThreshold (messages) or lagSeconds (age of the oldest), and not both")
    threshold, other = ("lagSeconds", "activationLagThreshold") if ages else ("lagThreshold", "activationLagSeconds")
    if metadata.content.get(other):
        metadata.refuse(other, f"nothing beside {threshold}, whose unit is another")
    return ages
