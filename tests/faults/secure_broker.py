"""A real broker as a company runs one: SCRAM over TLS on one listener, client certificates on another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined] # its types export three of them under private names only
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from lab.cluster import broker
from lab.cluster.certs import Authority
from lab.host import processes
from lab.kafka import login

USER, PASSWORD = "orders", 's3cret "word" \\ of theirs'
_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True)
class Login:
    """Where a listener is, and the settings with which its clients log in, files by their names."""

    bootstrap: str
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Secured:
    """The two listeners of a running broker, and the files that a client has of another authority."""

    scram: Login
    mutual: Login
    foreign: Mapping[str, str]


def start(run: Path) -> Secured:
    """Start the broker in ``run``. Raises :class:`lab.errors.LabFault` when it doesn't come up.

    Its own listener and the controller's take the one user of :func:`lab.kafka.login.new`, as every broker of the lab does.
    """
    own, scram, mutual, controller = (f"127.0.0.1:{port}" for port in processes.free_ports(4))
    authority, settings = Authority(run / "theirs"), login.new()
    server = authority.issue("server", "kafka", hosts=["127.0.0.1"])
    (run / "theirs" / "server.pem").write_text(server.key.read_text() + server.cert.read_text())
    bound = {"OWN": own, "SCRAM": scram, "MUTUAL": mutual}
    text = broker.properties(broker.data(run), bound, bound, controller, settings)
    broker.launch(run, own, text + _listeners(run / "theirs"), settings)
    _add_user(own, settings)
    user = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": USER, "sasl.password": PASSWORD}
    return Secured(
        Login(scram, {"security.protocol": "SASL_SSL", "ssl.ca.location": str(authority.cert), **user}),
        Login(mutual, {"security.protocol": "SSL", **_client(authority)}),
        _client(Authority(run / "foreign")),
    )


def _listeners(folder: Path) -> str:
    """What ``server.properties`` says of the two listeners; of two lines for a property Java takes the last."""
    scram, mutual = "listener.name.scram", "listener.name.mutual"
    settings = {
        "listener.security.protocol.map": "OWN:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT,SCRAM:SASL_SSL,MUTUAL:SSL",
        f"{scram}.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        f"{scram}.scram-sha-512.sasl.jaas.config": f"{_MODULE} required;",
        f"{mutual}.ssl.client.auth": "required",
    }
    for name in (scram, mutual):
        settings |= {f"{name}.ssl.keystore.type": "PEM", f"{name}.ssl.keystore.location": str(folder / "server.pem")}
        settings |= {f"{name}.ssl.truststore.type": "PEM", f"{name}.ssl.truststore.location": str(folder / "ca.crt")}
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _add_user(bootstrap: str, settings: Mapping[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **settings})
    strength = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    wanted = UserScramCredentialUpsertion(USER, strength, PASSWORD.encode())
    admin.alter_user_scram_credentials([wanted])[USER].result(timeout=120)


def _client(authority: Authority) -> dict[str, str]:
    """The authority that a client trusts, and a certificate of it with its key, as files."""
    pair = authority.issue("client", USER)
    named = {"ssl.ca.location": authority.cert, "ssl.certificate.location": pair.cert, "ssl.key.location": pair.key}
    return {name: str(file) for name, file in named.items()}
