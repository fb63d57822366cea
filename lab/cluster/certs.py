"""Certificates of one cluster, made when it starts and deleted when it ends."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAY = datetime.timedelta(days=1)
# Of a certificate's key, as x509.KeyUsage names them.
_USES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as files."""

    cert: Path
    key: Path


class Authority:
    """A certificate authority. Keys are EC P-256, which are made in a millisecond."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject("elastic-lab")
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        builder = _builder(self._name, self._name, self._key.public_key()).add_extension(constraints, critical=True)
        # Python verifies strictly from 3.13 on (RFC 5280): what an authority may do, and whose key signed.
        may = dict.fromkeys(_USES, False) | {"key_cert_sign": True, "crl_sign": True}
        builder = builder.add_extension(x509.KeyUsage(**may), critical=True)
        self.cert = self._sign("ca", builder)

    def issue(self, file: str, name: str, groups: Sequence[str] = (), hosts: Sequence[str] = ()) -> Pair:
        """A certificate of user ``name`` in ``groups``, for client and server, valid for ``hosts`` (names or addresses)."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH])
        builder = _builder(_subject(name, *groups), self._name, key.public_key()).add_extension(usage, critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        pair = Pair(self._sign(file, builder), self.folder / f"{file}.key")
        _write_key(pair.key, key)
        return pair

    def _sign(self, name: str, builder: x509.CertificateBuilder) -> Path:
        file = self.folder / f"{name}.crt"
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(signer, critical=False)
        file.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        return file

    def service_account_key(self) -> Path:
        """An RSA key that service-account tokens are signed with."""
        file = self.folder / "service-account.key"
        _write_key(file, rsa.generate_private_key(public_exponent=65537, key_size=2048))
        return file

    def kubeconfig(self, file: Path, server: str, pair: Pair) -> Path:
        """A kubeconfig that reaches ``server`` as the holder of ``pair``."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": {"server": server, "certificate-authority": str(self.cert)}}],
            "users": [{"name": "lab", "user": {"client-certificate": str(pair.cert), "client-key": str(pair.key)}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
            "current-context": "lab",
        }
        file.write_text(yaml.safe_dump(content))
        file.chmod(0o600)
        return file


def _subject(name: str, *groups: str) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name), *organizations])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + 30 * _DAY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_key(file: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    file.touch(mode=0o600)
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file.write_bytes(key.private_bytes(*form))
