"""TLS and SASL settings of Kafka's client library, as a user gives them: never shown."""

from __future__ import annotations

from confluent_kafka import KafkaException

from lab.errors import InputError
from lab.kafka.lag import GroupsReader
from lab.kafka.login import FIELD, HIDDEN, read


def client_settings(text: str, servers: str) -> dict[str, str]:
    """The settings in ``text``, a JSON object of strings or a file of it, for the cluster at ``servers``.

    Raises :class:`InputError` where they can't be used, never showing a value of theirs.
    """
    where = "command line"
    try:
        given = read(text)
    except ValueError as error:
        raise InputError(where, FIELD, HIDDEN, str(error)) from None
    try:
        GroupsReader(servers, settings=given)
    except KafkaException as error:
        raise InputError(where, FIELD, HIDDEN, f"settings of librdkafka ({error.args[0].str()})") from None
    return given
