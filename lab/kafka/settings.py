"""TLS and SASL settings of Kafka's client library, as a user or a pod gives them. Their values are never shown."""

from __future__ import annotations

from lab.errors import InputError
from lab.flags import Flags
from lab.kafka.login import FIELD, HIDDEN, read


def client_settings(text: str) -> dict[str, str]:
    """The settings in ``text``, a JSON object of strings or the name of a file of it; none where it is empty.

    Raises :class:`InputError` where they can't be used; the error shows none of their values.
    """
    from confluent_kafka import KafkaException, Producer  # a command that asks no Kafka needs no client of it

    where = "command line"
    try:
        given = read(text)
    except ValueError as error:
        raise InputError(where, FIELD, HIDDEN, str(error)) from None
    try:
        if given:
            Producer({"log_level": 2, **given})  # without a server it asks no one
    except KafkaException as error:
        raise InputError(where, FIELD, HIDDEN, f"settings of librdkafka ({error.args[0].str()})") from None
    return given


def kafka_flags(parser: Flags) -> None:
    """Add where Kafka is, and how to log in where it asks for that."""
    parser.flag("bootstrap-servers", str, None, "Kafka's address")
    text = "TLS and SASL settings of Kafka's client library: a JSON object of strings, or a file of it"
    parser.flag("kafka-settings", client_settings, "", text)
