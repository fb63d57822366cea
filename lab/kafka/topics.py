"""Topics of a trial: made before it, deleted after it. ``settings`` are those with which a client logs in, if it has to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, TopicDescription  # type: ignore[attr-defined]

from lab.errors import LabFault
from lab.wait import until

KNOWN_S = 15  # within which the broker shows a topic that was created


def create(bootstrap: str, partitions: Mapping[str, int], settings: Mapping[str, str] | None = None) -> None:
    """Create each topic with its number of partitions, and wait until the broker shows it; one that exists is left as it is.

    The controller creates a topic a moment before the broker shows it, so a client that reads it at once may find none. Raises
    :class:`LabFault` when a topic can't be created, or is not shown within KNOWN_S.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, **(settings or {})})
    wanted = [NewTopic(name, num_partitions=count, replication_factor=1) for name, count in partitions.items()]
    for name, future in admin.create_topics(wanted, operation_timeout=30).items():
        try:
            future.result(timeout=30)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise LabFault(f"topic {name} could not be created: {error.args[0].str()}") from error
    for name in partitions:
        until(partial(_is_shown, admin, name), KNOWN_S, f"topic {name} in the broker's metadata", every_s=0.02)


def _is_shown(admin: AdminClient, name: str) -> bool:
    try:
        return bool(_described(admin, name))
    except KafkaException as error:
        if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise LabFault(f"topic {name} can't be read: {error}") from error
        return False


def _described(admin: AdminClient, name: str) -> TopicDescription:
    """What Kafka says of the topic ``name``. Raises KafkaException, or TimeoutError."""
    described: TopicDescription = admin.describe_topics(TopicCollection([name]), request_timeout=10)[name].result(timeout=15)
    return described


def identity(bootstrap: str, name: str, settings: Mapping[str, str] | None = None) -> str:
    """The id that Kafka gave the topic ``name``; one of that name that is made anew has another.

    Raises :class:`LabFault` when there is none, or Kafka does not tell.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, **(settings or {})})
    try:
        return str(_described(admin, name).topic_id)
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
