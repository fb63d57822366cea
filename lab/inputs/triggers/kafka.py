"""The kafka and apache-kafka triggers, as KEDA reads them (``pkg/scalers/kafka_scaler.go`` and ``apache_kafka_scaler.go``).

Both count lag alike. They differ in fields, in how they log in, and where no topic is written: see :func:`parse`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from lab.inputs.scale import Scale
from lab.inputs.triggers import common
from lab.inputs.triggers.common import Common, Unscaled
from lab.inputs.triggers.metadata import Metadata, Named

KAFKA, APACHE = "kafka", "apache-kafka"
_FLAGS = (
    *("allowIdleConsumers", "excludePersistentLag", "scaleToZeroOnInvalidOffset"),
    *("limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions"),
)
NAMED = ("bootstrapServers", "consumerGroup", "topic")
_SHARED = (
    *_FLAGS,
    *NAMED,
    *(f"{name}FromEnv" for name in NAMED),
    *("lagThreshold", "activationLagThreshold", "offsetResetPolicy", "partitionLimitation", "sasl", "tls"),
    *common.AWS_LOGIN,
)
FIELDS = {KAFKA: (*_SHARED, "fullMetadata", "version", "unsafeSsl", "saslTokenProvider"), APACHE: _SHARED}
_SECRETS = ("username", "password", "ca", "cert", "key", "keyPassword")
_TOKENS = ("scopes", "oauthTokenEndpointUri", "oauthExtensions")
_KERBEROS = ("keytab", "ccacheName", "realm", "kerberosConfig", "kerberosServiceName", "kerberosDisableFAST")
REFUSALS = {KAFKA: common.only_by_reference(*_SECRETS, *_TOKENS, *_KERBEROS), APACHE: common.only_by_reference(*_SECRETS)}
_REFUSED_PAIRS = (
    ("allowIdleConsumers", "limitToPartitionsWithLag"),
    ("limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions"),
)
_MSK_IAM = "aws_msk_iam"
_PASSWORDS = ("none", "plaintext", "scram_sha256", "scram_sha512")
_SASL = {KAFKA: (*_PASSWORDS, "oauthbearer", "gssapi"), APACHE: (*_PASSWORDS, _MSK_IAM)}
VERSION = re.compile(r"0\.\d+\.\d+\.\d+|[1-9]\d*\.\d+\.\d+")
_PART = {  # the one reads numbers, the other JSON, which has no leading zeros
    KAFKA: re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?"),
    APACHE: re.compile(r"\s*(0|[1-9]\d{0,8})\s*(?:-\s*(0|[1-9]\d{0,8})\s*)?"),
}
_MOST_PARTITIONS = 100_000
TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
_UNFILLED = re.compile(r"[<{$]")  # what a template or a person has still to fill in
_SOME = "partitions and ranges of them, such as 1,2,10-12; nothing for all"
_MOST_LAG = 10**15  # a quantity counts thousandths in 64 bits


@dataclass(frozen=True)
class Kafka(Unscaled):
    """Lag of one consumer group in messages: the HPA wants ``lag_threshold`` of it per replica. ``partitions`` are the only
    ones counted, or None for all. Without a topic the group's every topic counts."""

    common: Common
    servers: Named
    group: Named
    topic: Named
    lag_threshold: int
    activation: int
    offset_reset: str
    allow_idle: bool
    exclude_persistent: bool
    zero_on_invalid: bool
    limit_to_lagging: bool
    even: bool
    partitions: frozenset[int] | None

    @property
    def target(self) -> float:
        """What the HPA wants per replica, messages."""
        return float(self.lag_threshold)

    def compressed(self, scale: Scale) -> Self:
        """Its thresholds at ``scale``: an activation is rounded down, for a lag above both is the same lag."""
        threshold, activation = scale.messages(self.lag_threshold), scale.most_messages(self.activation)
        return replace(self, lag_threshold=threshold, activation=activation)

    def written(self, metadata: Mapping[str, str]) -> dict[str, str]:
        """With both thresholds; the activation where there is one."""
        activation = {"activationLagThreshold": str(self.activation)} if metadata.get("activationLagThreshold") else {}
        return {**metadata, "lagThreshold": str(self.lag_threshold), **activation}

    def metric(self, index: int, environment: Mapping[str, str]) -> dict[str, Any]:
        """The HPA's metric. Source: ``kafkaScaler.GetMetricSpecForScaling``."""
        topic = self.topic.of(environment)
        name = f"kafka-{topic}" if topic else f"kafka-{self.group.of(environment)}-topics"
        return common.external(index, common.normalized(name), self.common.metric_type, self.lag_threshold)


def parse(trigger: Mapping[str, Any], where: object, place: str) -> Kafka:
    """The trigger at ``place``. Raises :class:`InputError` naming the field.

    Refused of apache-kafka are no topic, with which it counts every topic of the cluster, and several. Source:
    ``kafkaMetadata.Validate``, and ``apacheKafkaMetadata.Validate`` and ``apacheKafkaScaler.getTopicPartitions``.
    """
    shared = common.read(trigger, where, place)
    metadata, kind = Metadata.read(trigger, where, place), trigger["type"]
    metadata.check(FIELDS[kind], REFUSALS[kind])
    named = {field: metadata.named(field) for field in NAMED}
    for field in ("bootstrapServers", "consumerGroup"):
        if not named[field].given:
            metadata.refuse(field, f"an address or name, here or by {field}FromEnv")
    flags = {field: metadata.flag(field) for field in _FLAGS}
    for one, other in _REFUSED_PAIRS[: 2 if kind == KAFKA else 1]:
        if flags[one] and flags[other]:
            metadata.refuse(one, f'"false" where {other} is "true": KEDA refuses the pair')
    _topic(metadata, kind, named["topic"], flags)
    _connection(metadata, kind, shared)
    return Kafka(
        common=shared,
        servers=named["bootstrapServers"],
        group=named["consumerGroup"],
        topic=named["topic"],
        lag_threshold=metadata.whole("lagThreshold", 1, _MOST_LAG, 10, "messages"),
        activation=metadata.whole("activationLagThreshold", 0, _MOST_LAG, 0, "messages"),
        offset_reset=metadata.choice("offsetResetPolicy", "latest", "earliest", default="latest"),
        allow_idle=flags["allowIdleConsumers"],
        exclude_persistent=flags["excludePersistentLag"],
        zero_on_invalid=flags["scaleToZeroOnInvalidOffset"],
        limit_to_lagging=flags["limitToPartitionsWithLag"],
        even=flags["ensureEvenDistributionOfPartitions"],
        partitions=_partitions(metadata, kind) if named["topic"].given else None,
    )


def is_topic(name: str) -> bool:
    """Whether a topic may have this ``name``, once it is filled in; "" is none."""
    return not name or bool(TOPIC.fullmatch(name) or _UNFILLED.search(name))


def _topic(metadata: Metadata, kind: str, topic: Named, flags: Mapping[str, bool]) -> None:
    """Check that there is a topic where one is needed, and not several."""
    needed = [field for field in ("limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions") if flags[field]]
    if not metadata.flag("fullMetadata", default=True):
        needed.append('fullMetadata "false"')
    if kind == KAFKA and not is_topic(topic.literal):
        metadata.refuse("topic", "a topic's name: up to 249 of A-Z a-z 0-9 . _ -; for another topic another trigger")
    if kind == APACHE and "," in topic.literal:
        metadata.refuse("topic", "one topic: what several add up to is neither run nor simulated")
    if kind == APACHE and not topic.given:
        allowed = "a topic, here or by topicFromEnv: without one apache-kafka counts every topic of the cluster"
        metadata.refuse("topic", allowed)
    if needed and not topic.given:
        metadata.refuse("topic", f"a topic, which {needed[0]} needs, here or by topicFromEnv")


def _connection(metadata: Metadata, kind: str, shared: Common) -> None:
    """Check how the brokers are reached; what is secret comes by authenticationRef."""
    metadata.flag("unsafeSsl")
    encrypted = metadata.choice("tls", "disable", "enable", default="disable") == "enable"
    if kind == KAFKA and metadata.content.get("sasl") == _MSK_IAM:
        metadata.refuse("sasl", "oauthbearer, with saslTokenProvider aws_msk_iam: aws_msk_iam itself is of type apache-kafka")
    sasl = metadata.choice("sasl", *_SASL[kind], default="none")
    provider = metadata.choice("saslTokenProvider", "bearer", _MSK_IAM, default="bearer")
    if sasl == _MSK_IAM or (sasl == "oauthbearer" and provider == _MSK_IAM):
        metadata.text("awsRegion", "the AWS region of the MSK cluster, which aws_msk_iam needs")
        if not encrypted and not shared.authenticated:
            metadata.refuse("tls", "enable, which aws_msk_iam needs")
        if not shared.authenticated and metadata.content.get("identityOwner") != "operator":
            allowed = "none without an authenticationRef that has the identity, or identityOwner operator"
            metadata.refuse("sasl" if sasl == _MSK_IAM else "saslTokenProvider", allowed)
    elif sasl != "none" and not shared.authenticated:
        metadata.refuse("sasl", "none without an authenticationRef that has the user")
    if metadata.content.get("version") and not VERSION.fullmatch(metadata.content["version"]):
        metadata.refuse("version", "a version of Kafka such as 1.0.0")


def _partitions(metadata: Metadata, kind: str) -> frozenset[int] | None:
    """The partitions ``1,2,10-12`` names; None for all. Source: ``parsePartitionLimitation``."""
    text = metadata.content.get("partitionLimitation", "")
    if not text:
        return None
    chosen: set[int] = set()
    for part in text.split(","):
        found = _PART[kind].fullmatch(part)
        numbers = range(int(found[1]), int(found[2] or found[1]) + 1) if found else None
        if numbers is None or max(len(numbers), len(chosen)) > _MOST_PARTITIONS:
            metadata.refuse("partitionLimitation", _SOME if numbers is None else f"at most {_MOST_PARTITIONS:,} partitions")
            return None
        chosen.update(numbers)  # none of a range that ends before it begins
    if not chosen:
        metadata.refuse("partitionLimitation", _SOME)
    return frozenset(chosen) or None
