"""A login to Kafka in the forms that other clients take: Java's for Spark, a trigger's parameters for KEDA. Pure.

Settings are librdkafka's, as a user gives them (:mod:`lab.kafka.login`). Sources: Kafka's "Security" (JAAS, PEM stores) and
KEDA's "Apache Kafka" scaler, "Authentication Parameters". No error shows a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.errors import InputError
from lab.kafka.login import FIELD, HIDDEN, jaas

_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
# By SASL mechanism: KEDA's name, and Java's login module.
MECHANISMS = {
    "PLAIN": ("plaintext", "org.apache.kafka.common.security.plain.PlainLoginModule"),
    "SCRAM-SHA-256": ("scram_sha256", _SCRAM),
    "SCRAM-SHA-512": ("scram_sha512", _SCRAM),
}
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
# By librdkafka's name: KEDA's, and Java's where it takes the text as it is.
_PEMS = {
    "ssl.ca.pem": ("ca", "ssl.truststore.certificates"),
    "ssl.certificate.pem": ("cert", "ssl.keystore.certificate.chain"),
    "ssl.key.pem": ("key", "ssl.keystore.key"),
    "ssl.key.password": ("keyPassword", "ssl.key.password"),
}
_STORES = {"ssl.ca.pem": "ssl.truststore.type", "ssl.certificate.pem": "ssl.keystore.type"}
_USER, _PASSWORD, _PROTOCOL = "sasl.username", "sasl.password", "security.protocol"
_MECHANISM = ("sasl.mechanism", "sasl.mechanisms")  # librdkafka takes either


def inline(settings: Mapping[str, str]) -> dict[str, str]:
    """``settings`` with each file's text in place of its name. Raises :class:`InputError` where one can't be read."""
    found = {}
    for name, value in settings.items():
        pem = name.removesuffix(".location") + ".pem"
        if name.endswith(".location") and pem in _PEMS:
            try:
                found[pem] = Path(value).read_text()
            except OSError:
                raise InputError("command line", FIELD, HIDDEN, f"a file that can be read in {name}") from None
        else:
            found[name] = value
    return found


def spark(settings: Mapping[str, str]) -> dict[str, str]:
    """Options of Spark's connector. Raises :class:`InputError` for settings that have no such form."""
    if not settings:
        return {}
    parts = _parts(settings)
    options = {_PROTOCOL: parts.protocol}
    if parts.mechanism:
        _, module = MECHANISMS[parts.mechanism]
        options |= {"sasl.mechanism": parts.mechanism, "sasl.jaas.config": jaas(module, *parts.user)}
    for name, text in parts.pems.items():
        options |= {_PEMS[name][1]: text} | ({_STORES[name]: "PEM"} if name in _STORES else {})
    return {f"kafka.{name}": value for name, value in options.items()}


def keda(settings: Mapping[str, str]) -> dict[str, str]:
    """Parameters of KEDA's kafka scalers. Raises :class:`InputError` for settings that have no such form."""
    parts = _parts(settings)
    found: dict[str, str] = {}
    if parts.mechanism:
        user, password = parts.user
        found |= {"sasl": MECHANISMS[parts.mechanism][0], "username": user, "password": password}
    if parts.protocol.endswith("SSL"):
        found |= {"tls": "enable"} | {_PEMS[name][0]: text for name, text in parts.pems.items()}
    return found


@dataclass(frozen=True)
class _Parts:
    """What a login is made of; "" is no mechanism."""

    protocol: str
    mechanism: str
    user: tuple[str, str]
    pems: Mapping[str, str]


def _parts(settings: Mapping[str, str]) -> _Parts:
    protocol = settings.get(_PROTOCOL, PROTOCOLS[0]).upper()
    if protocol not in PROTOCOLS:
        raise InputError("command line", FIELD, HIDDEN, f"{_PROTOCOL} {' or '.join(PROTOCOLS)}")
    mechanism = next((settings[name] for name in _MECHANISM if name in settings), "")
    known = {_PROTOCOL, *(_PEMS if protocol.endswith("SSL") else ())}
    if protocol.startswith("SASL"):
        known |= {*_MECHANISM, _USER, _PASSWORD}
        if mechanism not in MECHANISMS:
            raise InputError("command line", FIELD, HIDDEN, f"sasl.mechanism {' or '.join(MECHANISMS)}")
        if not {_USER, _PASSWORD} <= settings.keys():
            raise InputError("command line", FIELD, HIDDEN, f"{_USER} and {_PASSWORD} beside {mechanism}")
    if other := sorted(settings.keys() - known):
        allowed = (
            f"{', '.join(sorted(known))} with {_PROTOCOL} {protocol}: neither KEDA nor Spark is told of {', '.join(other)}"
        )
        raise InputError("command line", FIELD, HIDDEN, allowed)
    user = (settings.get(_USER, ""), settings.get(_PASSWORD, ""))
    return _Parts(
        protocol, mechanism if protocol.startswith("SASL") else "", user, {k: settings[k] for k in _PEMS if k in settings}
    )
