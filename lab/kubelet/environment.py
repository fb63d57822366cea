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
    found = {source for entry in container.env_from if (source := _bulk(entry)[0])}
    for entry in container.env:
        value_from = entry.get("valueFrom") or {}
        if reference := value_from.get("configMapKeyRef"):
            found.add(Source("ConfigMap", reference["name"]))
        if reference := value_from.get("secretKeyRef"):
            found.add(Source("Secret", reference["name"]))
    return found


def service(server: str) -> dict[str, str]:
    """The variables by which a pod finds the API at ``server`` (the kubelet's ``getServiceEnvVarMap``); there is no other
    Service."""
    address = urlsplit(server)
    port = str(address.port or 443)
    return {
        "KUBERNETES_SERVICE_HOST": address.hostname or "",
        "KUBERNETES_SERVICE_PORT": port,
        "KUBERNETES_SERVICE_PORT_HTTPS": port,
    }


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
    base = {"PATH": f"{container.folder}:{SYSTEM_PATH}", "HOME": home, "LANG": "C.UTF-8", "TZ": "UTC", "HOSTNAME": pod.hostname}
    given: dict[str, str] = {}
    for entry in container.env_from:
        source, optional = _bulk(entry)
        if source is None:
            continue
        data = found[source]
        if data is None and not optional:
            raise Unresolved(f'{source.kind.lower()} "{source.name}" not found')
        given.update({f"{entry.get('prefix') or ''}{key}": value for key, value in (data or {}).items()})
    for entry in container.env:
        value = _value(entry, pod, ip, {**around, **given}, found)
        if value is not None:
            given[entry["name"]] = value
    return {**base, **around, **given}


def _bulk(entry: Json) -> tuple[Source | None, bool]:
    if reference := entry.get("configMapRef"):
        return Source("ConfigMap", reference["name"]), bool(reference.get("optional"))
    if reference := entry.get("secretRef"):
        return Source("Secret", reference["name"]), bool(reference.get("optional"))
    return None, True


def _value(
    entry: Json, pod: PodSpec, ip: str, given: Mapping[str, str], found: Mapping[Source, Mapping[str, str] | None]
) -> str | None:
    value_from = entry.get("valueFrom")
    if not value_from:
        return expand(entry.get("value") or "", given)
    if reference := value_from.get("fieldRef"):
        return field(reference["fieldPath"], pod, ip)
    kind: Kind = "ConfigMap" if "configMapKeyRef" in value_from else "Secret"
    reference = value_from["configMapKeyRef" if kind == "ConfigMap" else "secretKeyRef"]
    data = found[Source(kind, reference["name"])]
    if data is not None and reference["key"] in data:
        return data[reference["key"]]
    if reference.get("optional"):
        return None
    if data is None:
        raise Unresolved(f'{kind.lower()} "{reference["name"]}" not found')
    raise Unresolved(f"couldn't find key {reference['key']} in {kind} {pod.namespace}/{reference['name']}")


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
