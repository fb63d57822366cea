"""A login to Kafka in the forms that other clients take: Java's for Spark, a trigger's parameters for KEDA. Pure.

Settings are librdkafka's, as a user gives them (:mod:`lab.kafka.login`). Sources: Kafka's "Security" (JAAS, PEM stores) and
KEDA's "Apache Kafka" scaler, "Authentication Parameters". No error shows a value.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    protocol, mechanism = _checked(settings)
    options = {_PROTOCOL: protocol}
    if mechanism:
        login = jaas(MECHANISMS[mechanism][1], settings[_USER], settings[_PASSWORD])
        options |= {"sasl.mechanism": mechanism, "sasl.jaas.config": login}
    for name, (_, java) in _PEMS.items():
        if name in settings:
            options |= {java: settings[name]} | ({_STORES[name]: "PEM"} if name in _STORES else {})
    return {f"kafka.{name}": value for name, value in options.items()}


def keda(settings: Mapping[str, str]) -> dict[str, str]:
    """Parameters of KEDA's kafka scalers. Raises :class:`InputError` for settings that have no such form."""
    protocol, mechanism = _checked(settings)
    found: dict[str, str] = {}
    if mechanism:
        found |= {"sasl": MECHANISMS[mechanism][0], "username": settings[_USER], "password": settings[_PASSWORD]}
    if protocol.endswith("SSL"):
        found |= {"tls": "enable"} | {own: settings[name] for name, (own, _) in _PEMS.items() if name in settings}
    return found


def _checked(settings: Mapping[str, str]) -> tuple[str, str]:
    """The protocol and the SASL mechanism of a login that has both forms; "" is no mechanism."""
    protocol = settings.get(_PROTOCOL, PROTOCOLS[0]).upper()
    if protocol not in PROTOCOLS:
        raise InputError("command line", FIELD, HIDDEN, f"{_PROTOCOL} {' or '.join(PROTOCOLS)}")
    known, mechanism = {_PROTOCOL, *(_PEMS if protocol.endswith("SSL") else ())}, ""
    if protocol.startswith("SASL"):
        known |= {*_MECHANISM, _USER, _PASSWORD}
        mechanism = next((settings[name] for name in _MECHANISM if name in settings), "")
        if mechanism not in MECHANISMS:
            raise InputError("command line", FIELD, HIDDEN, f"sasl.mechanism {' or '.join(MECHANISMS)}")
        if not {_USER, _PASSWORD} <= settings.keys():
            raise InputError("command line", FIELD, HIDDEN, f"{_USER} and {_PASSWORD} beside {mechanism}")
    if other := sorted(settings.keys() - known):
        untold = f"neither KEDA nor Spark is told of {', '.join(other)}"
        raise InputError("command line", FIELD, HIDDEN, f"{', '.join(sorted(known))} with {_PROTOCOL} {protocol}: {untold}")
    return protocol, mechanism
