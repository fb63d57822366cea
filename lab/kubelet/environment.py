"""The environment of a container's process: variables, references and ``$(VAR)`` expansion, as a kubelet does them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from lab.kubelet.podspec import HOST_IP, ContainerSpec, Json, PodSpec

FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels['<key>']", "metadata.annotations['<key>']",
    "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

Kind = Literal["ConfigMap", "Secret"]
_REFERENCES: dict[Kind, tuple[str, str]] = {
    "ConfigMap": ("configMapRef", "configMapKeyRef"),
    "Secret": ("secretRef", "secretKeyRef"),
}


def bare(path: str, home: object) -> dict[str, str]:
    """What a process of a pod has before its manifest says anything: nothing of the environment of who started the lab."""
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "TZ": "UTC"}


@dataclass(frozen=True)
class Source:
    """A ConfigMap or Secret of the pod's namespace that a container's environment reads."""

    kind: Kind
    name: str


class Unresolved(LookupError):
    """A reference that can't be resolved now; the container waits with CreateContainerConfigError."""


def annotated(path: str) -> tuple[str, str] | None:
    """('labels' or 'annotations', key) for a field path with a subscript, else None."""
    found = re.fullmatch(r"metadata\.(labels|annotations)\['([^']+)'\]", path)
    return (found[1], found[2]) if found else None


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace ``$(NAME)`` by its value. An unknown name stays as written, and ``$$`` is a literal ``$``."""

    def replace(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else variables.get(found[0][2:-1], found[0])

    return re.sub(r"\$\$|\$\([^)]*\)", replace, text)


def sources(container: ContainerSpec) -> set[Source]:
    """The ConfigMaps and Secrets that the container's environment refers to."""
    entries = [*container.env_from, *(entry.get("valueFrom") or {} for entry in container.env)]
    return {reference[0] for entry in entries if (reference := _reference(entry))}


def service(server: str) -> dict[str, str]:
    """The variables by which a pod finds the API at ``server``, the only Service (the kubelet's ``getServiceEnvVarMap``)."""
    address = urlsplit(server)
    port = str(address.port or 443)
    ports = dict.fromkeys(("KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS"), port)
    return {"KUBERNETES_SERVICE_HOST": address.hostname or "", **ports}


def environment(
    container: ContainerSpec,
    pod: PodSpec,
    ip: str,
    home: str,
    found: Mapping[Source, Mapping[str, str] | None],
    around: Mapping[str, str],
) -> dict[str, str]:
    """The process's whole environment; ``found`` holds every source, None for one that does not exist.

    ``around`` is what every pod gets. Raises :class:`Unresolved`, with the kubelet's words, for a missing source or key.
    """
    base = bare(f"{container.folder}:{SYSTEM_PATH}", home) | {"HOSTNAME": pod.hostname}
    given: dict[str, str] = {}
    for entry in container.env_from:
        if reference := _reference(entry):
            data = _data(*reference, found)
            given.update({f"{entry.get('prefix') or ''}{key}": value for key, value in data.items()})
    for entry in container.env:
        value = _value(entry, pod, ip, {**around, **given}, found)
        if value is not None:
            given[entry["name"]] = value
    return {**base, **around, **given}


def _reference(entry: Json) -> tuple[Source, Json] | None:
    """The source that an entry of envFrom, or a valueFrom, refers to, and its reference; None where it refers to none."""
    named = ((kind, entry.get(field)) for kind, fields in _REFERENCES.items() for field in fields)
    return next(((Source(kind, reference["name"]), reference) for kind, reference in named if reference), None)


def _data(source: Source, reference: Json, found: Mapping[Source, Mapping[str, str] | None]) -> Mapping[str, str]:
    """What the source holds; nothing where it does not exist and need not."""
    data = found[source]
    if data is None and not reference.get("optional"):
        raise Unresolved(f'{source.kind.lower()} "{source.name}" not found')
    return data or {}


def _value(
    entry: Json, pod: PodSpec, ip: str, given: Mapping[str, str], found: Mapping[Source, Mapping[str, str] | None]
) -> str | None:
    value_from = entry.get("valueFrom")
    if not value_from:
        return expand(entry.get("value") or "", given)
    if reference := value_from.get("fieldRef"):
        return field(reference["fieldPath"], pod, ip)
    referred = _reference(value_from)
    assert referred is not None, "any other source is refused before"
    source, reference = referred
    value = _data(source, reference, found).get(reference["key"])
    if value is None and not reference.get("optional"):
        raise Unresolved(f"couldn't find key {reference['key']} in {source.kind} {pod.namespace}/{source.name}")
    return value


def field(path: str, pod: PodSpec, ip: str) -> str:
    """The value of a fieldRef's path."""
    subscripted = annotated(path)
    if subscripted:
        part, key = subscripted
        return str((pod.metadata.get(part) or {}).get(key, ""))
    return {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.uid,
        "spec.nodeName": pod.node,
        "spec.serviceAccountName": pod.service_account,
        "status.hostIP": HOST_IP,
        "status.hostIPs": HOST_IP,
        "status.podIP": ip,
        "status.podIPs": ip,
    }[path]
