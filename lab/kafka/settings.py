"""TLS and SASL settings of Kafka's client library, as a user gives them. Their values are never shown."""

from __future__ import annotations

import json

from confluent_kafka import KafkaException

from lab.errors import InputError
from lab.kafka.lag import GroupsReader


def client_settings(text: str, servers: str) -> dict[str, str]:
    """The settings in ``text``, a JSON object of strings, for the cluster at ``servers``.

    Raises :class:`InputError` where they can't be used; the error shows none of their values.
    """
    where, field, hidden = "command line", "--kafka-settings", "(not shown)"
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise InputError(where, field, hidden, "a JSON object of strings")
    try:
        GroupsReader(servers, settings=given)
    except KafkaException as error:
        raise InputError(where, field, hidden, f"settings of librdkafka ({error.args[0].str()})") from None
    return given
