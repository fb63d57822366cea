"""Reads a kubeconfig into the server's address and a TLS context."""

from __future__ import annotations

import base64
import contextlib
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from lab.errors import InputError
from lab.kubelet.podspec import Json


def read(file: Path) -> tuple[str, ssl.SSLContext]:
    """The server and the TLS context of the current context. Raises :class:`InputError` for a file that can't be used."""
    try:
        config = yaml.safe_load(file.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise InputError(file, "kubeconfig", str(error).splitlines()[0], "a readable kubeconfig") from error
    if not isinstance(config, dict):
        raise InputError(file, "kubeconfig", type(config).__name__, "a mapping")
    context = _named(config, file, "contexts", "context", config.get("current-context"))
    cluster = _named(config, file, "clusters", "cluster", context.get("cluster"))
    user = _named(config, file, "users", "user", context.get("user"))
    server = cluster.get("server", "")
    if not str(server).startswith("https://"):
        raise InputError(file, "server", server, "an https:// address")
    try:
        with _as_file(cluster, "certificate-authority", file) as authority:
            tls = ssl.create_default_context(cafile=authority)
        with _as_file(user, "client-certificate", file) as certificate, _as_file(user, "client-key", file) as key:
            tls.load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:
        raise InputError(file, "certificates", str(error), "a CA, a client certificate and its key, in PEM") from error
    return str(server).rstrip("/"), tls


def _named(config: Json, file: Path, section: str, key: str, name: object) -> Json:
    for entry in config.get(section) or ():
        if entry.get("name") == name:
            return dict(entry.get(key) or {})
    known = ", ".join(str(entry.get("name")) for entry in config.get(section) or ()) or "none"
    raise InputError(file, key, name, f"one of the file's {section}: {known}")


@contextlib.contextmanager
def _as_file(entry: Json, key: str, kubeconfig: Path) -> Iterator[Path]:
    """The path of a named file, or of a private copy of inline data, because :mod:`ssl` takes only files."""
    inline = entry.get(f"{key}-data")
    if inline is None:
        if not entry.get(key):
            raise InputError(kubeconfig, key, None, f"a file, or {key}-data")
        yield kubeconfig.parent / entry[key]
        return
    with tempfile.NamedTemporaryFile(suffix=".pem") as copy:
        copy.write(base64.b64decode(inline))
        copy.flush()
        yield Path(copy.name)
