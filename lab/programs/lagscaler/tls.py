"""TLS between KEDA and the scaler: the server's certificate, and the only authority whose clients it answers."""

from __future__ import annotations

from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from lab.errors import InputError

_WHERE = "command line"


def credentials(cert: str, key: str, client_ca: str) -> grpc.ServerCredentials | None:
    """The server's credentials; None, for plaintext, where nothing is given. Each value is PEM, or the name of a file of it.

    With ``client_ca`` a client must hold a certificate of that authority. Raises :class:`InputError` naming the flag.
    """
    given = {"--tls-cert": cert, "--tls-key": key}
    if not any((*given.values(), client_ca)):
        return None
    for flag, value in given.items():
        if not value:
            raise InputError(_WHERE, flag, value, "PEM or a file of it, where another --tls flag is given")
    chain, secret = _pem("--tls-cert", cert), _pem("--tls-key", key)
    try:
        public = x509.load_pem_x509_certificates(chain)[0].public_key()
    except ValueError:
        raise InputError(_WHERE, "--tls-cert", _told(cert), "a certificate, PEM") from None
    try:
        matches = load_pem_private_key(secret, None).public_key() == public
    except (ValueError, TypeError):
        raise InputError(_WHERE, "--tls-key", "(not shown)", "a private key without a password, PEM") from None
    if not matches:
        raise InputError(_WHERE, "--tls-key", "(not shown)", "the key of --tls-cert")
    authority = _pem("--tls-client-ca", client_ca) if client_ca else None
    if authority is not None:
        try:
            x509.load_pem_x509_certificates(authority)
        except ValueError:
            raise InputError(_WHERE, "--tls-client-ca", _told(client_ca), "certificates, PEM") from None
    return grpc.ssl_server_credentials([(secret, chain)], authority, require_client_auth=authority is not None)


def _pem(flag: str, value: str) -> bytes:
    if value.lstrip().startswith("-----BEGIN"):
        return value.encode()
    try:
        return Path(value).read_bytes()
    except OSError as error:
        raise InputError(_WHERE, flag, value, f"PEM or a readable file of it ({error.strerror})") from None


def _told(value: str) -> str:
    """The value, cut to what fits in one line."""
    return value if len(value) < 100 else f"{value[:27]}..."
