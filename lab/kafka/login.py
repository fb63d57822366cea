"""The settings with which clients of Kafka connect and log in, by librdkafka's names; :mod:`lab.kafka.forms` has other forms.

A user or a pod gives them; for a broker of the lab's own they are made here. A client without a login has none. A pod gets them
as ``KAFKA_SETTINGS``, from a Secret. Their values are never shown.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from lab.errors import InputError
from lab.flags import Flags


def client_settings(text: str) -> dict[str, str]:
    """The settings in ``text``, a JSON object of strings or the name of a file of it; none where it is empty.

    Raises :class:`InputError`, which shows none of their values, where they can't be used.
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


FIELD, HIDDEN = "--kafka-settings", "(not shown)"
ALLOWED = "a JSON object of strings, or a file of it"
_USER, _MECHANISM, _PROTOCOL = "lab", "PLAIN", "SASL_PLAINTEXT"
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def new() -> dict[str, str]:
    """The settings of a user whose password is random; PLAIN costs a message nothing, and it does not leave the machine."""
    return {
        "security.protocol": _PROTOCOL,
        "sasl.mechanism": _MECHANISM,
        "sasl.username": _USER,
        "sasl.password": secrets.token_urlsafe(32),
    }


def read(text: str) -> dict[str, str]:
    """Like :func:`client_settings`, without asking the library. Raises ``ValueError`` that says what is allowed."""
    if not text:
        return {}
    try:
        given = json.loads(text if text.lstrip().startswith("{") else Path(text).read_text())
    except (OSError, ValueError):
        given = None
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise ValueError(ALLOWED)
    return given


def server_properties(settings: Mapping[str, str], listeners: Iterable[str]) -> dict[str, str]:
    """What ``server.properties`` says so that each of ``listeners`` takes the user of :func:`new` alone, the broker too."""
    if not settings:
        return {}
    user, password = settings["sasl.username"], settings["sasl.password"]
    login = f"{jaas(_MODULE, user, password).removesuffix(';')} user_{user}={_quoted(password)};"
    told = {"sasl.mechanism.inter.broker.protocol": _MECHANISM, "sasl.mechanism.controller.protocol": _MECHANISM}
    for name in (f"listener.name.{listener.lower()}" for listener in listeners):
        told |= {f"{name}.sasl.enabled.mechanisms": _MECHANISM, f"{name}.plain.sasl.jaas.config": login}
    return told


def protocol(settings: Mapping[str, str]) -> str:
    """The security protocol of a listener that takes clients with ``settings``."""
    return settings.get("security.protocol", "PLAINTEXT")


def jaas(module: str, user: str, password: str) -> str:
    """A login as Java's client takes it, by its login ``module``."""
    return f"{module} required username={_quoted(user)} password={_quoted(password)};"


def _quoted(text: str) -> str:
    """``text`` as JAAS quotes it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
