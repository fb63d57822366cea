"""TLS and SASL settings of Kafka's client library, as a user or a pod gives them: never shown."""

from __future__ import annotations

from confluent_kafka import KafkaException, Producer

from lab.errors import InputError
from lab.kafka.login import FIELD, HIDDEN, read


def client_settings(text: str) -> dict[str, str]:
    """The settings in ``text``, a JSON object of strings or the name of a file of it; none where it is empty.

    Raises :class:`InputError` where they can't be used, never showing a value of theirs.
    """
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
