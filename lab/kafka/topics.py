"""Topics of a trial: made before it, deleted after it. ``settings`` are those with which a client logs in, if it has to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]

from lab.errors import LabFault
from lab.wait import until

KNOWN_S = 30  # some ms on a quiet machine


def create(
    bootstrap: str,
    partitions: Mapping[str, int],
    settings: Mapping[str, str] | None = None,
    *,
    copies: int = 1,
    min_insync: int | None = None,
) -> None:
    """Create each topic with its number of partitions on ``copies`` brokers; one that exists is left as it is.

    A write with acks=all waits for ``min_insync`` of them; None: as the broker says. Returns when the broker knows them.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, **(settings or {})})
    own = {} if min_insync is None else {"min.insync.replicas": str(min_insync)}
    wanted = [NewTopic(name, num_partitions=count, replication_factor=copies, config=own) for name, count in partitions.items()]
    for name, future in admin.create_topics(wanted, operation_timeout=30).items():
        try:
            future.result(timeout=30)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise LabFault(f"topic {name} could not be created: {error.args[0].str()}") from error
    until(lambda: _known(admin, partitions), KNOWN_S, f"the topics {', '.join(partitions)} known to the broker", every_s=0.02)


def _known(admin: AdminClient, names: Iterable[str]) -> bool:
    """Whether the broker describes every topic of ``names``."""
    described = admin.describe_topics(TopicCollection(list(names)), request_timeout=10)
    return all(future.exception(timeout=15) is None for future in described.values())


def identity(bootstrap: str, name: str, settings: Mapping[str, str] | None = None) -> str:
    """The id that Kafka gave the topic ``name``: made anew it has another. Raises :class:`LabFault` when there is none."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **(settings or {})})
    try:
        return str(admin.describe_topics(TopicCollection([name]), request_timeout=10)[name].result(timeout=15).topic_id)
    except (KafkaException, TimeoutError) as error:
        raise LabFault(f"the id of topic {name} can't be read: {error}") from error


def grow(bootstrap: str, name: str, partitions: int, settings: Mapping[str, str] | None = None) -> None:
    """Give a topic that is in use ``partitions`` partitions in all. Raises :class:`LabFault` when Kafka refuses."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **(settings or {})})
    future = admin.create_partitions([NewPartitions(name, partitions)])[name]
    try:
        future.result(timeout=30)
    except KafkaException as error:
        raise LabFault(f"topic {name} could not be given {partitions} partitions: {error.args[0].str()}") from error


def delete(bootstrap: str, names: Iterable[str], settings: Mapping[str, str] | None = None) -> None:
    """Delete topics; one that is not there is no fault."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **(settings or {})})
    for name, future in admin.delete_topics(list(names), operation_timeout=30).items():
        try:
            future.result(timeout=30)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise LabFault(f"topic {name} could not be deleted: {error.args[0].str()}") from error
