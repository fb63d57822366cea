"""Topics of a trial, made before it and deleted after it, and its group's settings. ``settings`` log a client in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from lab.errors import LabFault, NoAnswer
from lab.wait import until

LED_S = 30  # some ms on a quiet machine
ANSWER_S = 30
UNANSWERED = (KafkaError._DESTROY_BROKER, KafkaError._TRANSPORT)  # librdkafka let go of the broker that it had asked


def create(
    bootstrap: str,
    partitions: Mapping[str, int],
    settings: Mapping[str, str] | None = None,
    *,
    copies: int = 1,
    min_insync: int | None = None,
) -> None:
    """Create each topic with its number of partitions on ``copies`` brokers; one that exists is left as it is.

    A write with acks=all waits for ``min_insync`` of them; None: as the broker says. Returns when each partition's leader
    answers. Raises :class:`LabFault` where it does not within 30 s, or Kafka refuses.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2, **(settings or {})})
    own = {} if min_insync is None else {"min.insync.replicas": str(min_insync)}
    wanted = [NewTopic(name, num_partitions=count, replication_factor=copies, config=own) for name, count in partitions.items()]
    _ask(lambda: admin.create_topics(wanted, operation_timeout=ANSWER_S), "created", KafkaError.TOPIC_ALREADY_EXISTS)
    until(lambda: _led(admin, partitions), LED_S, f"leaders of the topics {', '.join(partitions)}", every_s=0.02)


def _led(admin: AdminClient, names: Iterable[str]) -> bool:
    """Whether the leader of every partition of ``names`` answers: a broker describes a topic before it leads its partitions."""
    described = admin.describe_topics(TopicCollection(list(names)), request_timeout=10)
    if any(future.exception(timeout=15) is not None for future in described.values()):
        return False
    parts = [TopicPartition(name, one.id) for name, future in described.items() for one in future.result().partitions]
    ends = admin.list_offsets(dict.fromkeys(parts, OffsetSpec.latest()), request_timeout=10)
    return all(future.exception(timeout=15) is None for future in ends.values())


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
    _ask(lambda: admin.create_partitions([NewPartitions(name, partitions)]), f"given {partitions} partitions")


def configure_group(bootstrap: str, group: str, values: Mapping[str, str], settings: Mapping[str, str] | None = None) -> None:
    """Set ``values`` of ``group`` on the broker, as strings by name. Raises :class:`LabFault` when Kafka refuses."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **(settings or {})})
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in values.items()]
    (answer,) = admin.incremental_alter_configs(
        [ConfigResource(ConfigResource.Type.GROUP, group, incremental_configs=entries)]
    ).values()
    if error := _error(answer):
        raise LabFault(f"group {group} could not be given {dict(values)}: {error.str()}")


def delete(bootstrap: str, names: Iterable[str], settings: Mapping[str, str] | None = None) -> None:
    """Delete topics; one that is not there is no fault."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **(settings or {})})
    asked = list(names)
    _ask(lambda: admin.delete_topics(asked, operation_timeout=ANSWER_S), "deleted", KafkaError.UNKNOWN_TOPIC_OR_PART)


def _ask(request: Callable[[], Mapping[str, Future[None]]], what: str, harmless: int | None = None) -> None:
    """Wait for what ``request`` asks of each topic. It is asked again, for 30 s, where librdkafka let go of the broker.

    ``harmless`` is the error which says that it was done before; without one it is asked once. Raises :class:`LabFault` for any
    other error.
    """

    def answered() -> bool:
        errors = {name: error for name, future in request().items() if (error := _error(future)) and error.code() != harmless}
        said = "; ".join(f"topic {name} could not be {what}: {error.str()}" for name, error in errors.items())
        if harmless is not None and any(error.code() in UNANSWERED for error in errors.values()):
            raise NoAnswer(said)
        if errors:
            raise LabFault(said)
        return True

    until(answered, ANSWER_S, f"topics {what}")


def _error(future: Future[None]) -> KafkaError | None:
    """The error with which ``future`` ends, if it ends with one. No answer within 30 s is an error, too."""
    try:
        future.result(timeout=ANSWER_S)
    except KafkaException as error:
        return error.args[0]  # type: ignore[no-any-return]
    except TimeoutError:
        return KafkaError(KafkaError._TIMED_OUT, f"no answer within {ANSWER_S} s")
    return None
