"""The refusals of the process node, in one line each. Pure.

It works from lists of accepted fields, so a field that this node does not know is refused, not ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lab.kubelet.environment import FIELDS, annotated
from lab.kubelet.podspec import Images, Json, port_number

UNSUPPORTED = "Unsupported"
UNKNOWN_IMAGE = "ErrImageNeverPull"

# The scheduler, the API server and this node act on these; any other field would change what the pod is.
_POD = {
    "affinity", "automountServiceAccountToken", "containers", "dnsPolicy", "enableServiceLinks", "hostname", "hostUsers",
    "imagePullSecrets", "nodeName", "nodeSelector", "os", "preemptionPolicy", "priority", "priorityClassName",
    "restartPolicy", "schedulerName", "schedulingGates", "serviceAccount", "serviceAccountName",
    "terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints",
}  # fmt: skip
_CONTAINER = {
    "args", "command", "env", "envFrom", "image", "imagePullPolicy", "livenessProbe", "name", "ports", "readinessProbe",
    "resizePolicy", "resources", "terminationMessagePath", "terminationMessagePolicy", "workingDir",
}  # fmt: skip
_INSTEAD = {
    "activeDeadlineSeconds": "a deadline on the Job",
    "ephemeralContainers": "kubectl logs, and the machine's own tools on the pod's process",
    "hostIPC": "unset", "hostNetwork": "unset; every pod has an address of its own in 127/8", "hostPID": "unset",
    "initContainers": "containers only",
    "lifecycle": "unset; handle SIGTERM in the program",
    "securityContext": "unset; the process runs as the user who runs the lab",
    "startupProbe": "readinessProbe and livenessProbe, with initialDelaySeconds",
    "volumeMounts": "no volumes; pass settings as environment variables",
}  # fmt: skip
_ONLY = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_PROBE_SETTINGS = {
    "failureThreshold", "initialDelaySeconds", "periodSeconds", "successThreshold", "terminationGracePeriodSeconds",
    "timeoutSeconds",
}  # fmt: skip
_ACTIONS = ("httpGet", "tcpSocket", "exec")


@dataclass(frozen=True)
class Refusal:
    """One part of a pod that this node does not do: its place, its value, and the allowed values."""

    field: str
    value: str
    allowed: str
    reason: str = UNSUPPORTED

    def __str__(self) -> str:
        return f"{self.field}: {self.value} is not supported on the process node; allowed: {self.allowed}"


def refusals(pod: Json, images: Images) -> list[Refusal]:
    """Everything in ``pod`` that the process node does not do, in the order of the spec."""
    spec: Json = pod["spec"]
    found = list(_volumes(spec))
    found += [_plain(f"spec.{key}", key, spec[key]) for key in sorted(spec) if key not in _POD | {"volumes"} and spec[key]]
    if spec.get("hostUsers") is False:
        found.append(Refusal("spec.hostUsers", "False", "unset"))
    if spec.get("dnsPolicy", "ClusterFirst") not in ("ClusterFirst", "Default"):
        found.append(Refusal("spec.dnsPolicy", repr(spec["dnsPolicy"]), "unset; the machine's own resolver is used"))
    for index, container in enumerate(spec["containers"]):
        found += _container(container, f"spec.containers[{index}]", images)
    return found


def _volumes(spec: Json) -> Iterator[Refusal]:
    for index, volume in enumerate(spec.get("volumes") or ()):
        kind = next((key for key in volume if key != "name"), "emptyDir")
        allowed = "no volumes; pass settings as environment variables"
        if str(volume["name"]).startswith("kube-api-access-"):
            allowed = "no volumes; set automountServiceAccountToken: false on the pod or its service account"
        yield Refusal(f"spec.volumes[{index}].{kind}", repr(volume["name"]), allowed)


def _container(container: Json, where: str, images: Images) -> Iterator[Refusal]:
    if images.folder(container["image"]) is None:
        known = ", ".join(sorted(images.folders)) or "none"
        yield Refusal(f"{where}.image", repr(container["image"]), f"{known} (with any tag or /part)", UNKNOWN_IMAGE)
    if not container.get("command"):
        yield Refusal(f"{where}.command", "no command", "a command; an image has no entrypoint here")
    automounted = [mount for mount in container.get("volumeMounts") or () if mount["name"].startswith("kube-api-access-")]
    for key in sorted(container):
        value = container[key]
        if key == "volumeMounts" and automounted == value:
            continue  # its volume has a line already, which says what to do
        if key not in _CONTAINER and value:
            yield _plain(f"{where}.{key}", key, value)
        elif key in _ONLY and value != _ONLY[key]:
            yield Refusal(f"{where}.{key}", repr(value), _ONLY[key])
    for index, port in enumerate(container.get("ports") or ()):
        for key in ("hostIP", "hostPort"):
            if port.get(key):
                yield Refusal(f"{where}.ports[{index}].{key}", repr(port[key]), "unset; the pod's own address is reachable")
    if claims := (container.get("resources") or {}).get("claims"):
        yield _plain(f"{where}.resources.claims", "claims", claims)
    yield from _environment(container, where)
    for key in ("livenessProbe", "readinessProbe"):
        if container.get(key):
            yield from _probe(container[key], container, f"{where}.{key}")


def _environment(container: Json, where: str) -> Iterator[Refusal]:
    for index, entry in enumerate(container.get("env") or ()):
        source = entry.get("valueFrom") or {}
        place = f"{where}.env[{index}].valueFrom"
        for kind in source:
            if kind not in ("fieldRef", "configMapKeyRef", "secretKeyRef"):
                yield Refusal(f"{place}.{kind}", repr(entry["name"]), "fieldRef, configMapKeyRef, secretKeyRef")
        path = (source.get("fieldRef") or {}).get("fieldPath", "metadata.name")
        if path not in FIELDS and annotated(path) is None:
            yield Refusal(f"{place}.fieldRef.fieldPath", repr(path), ", ".join(FIELDS))
    for index, entry in enumerate(container.get("envFrom") or ()):
        for kind in entry:
            if kind not in ("prefix", "configMapRef", "secretRef"):
                yield Refusal(f"{where}.envFrom[{index}].{kind}", repr(entry[kind]), "configMapRef, secretRef")


def _probe(probe: Json, container: Json, where: str) -> Iterator[Refusal]:
    for key in sorted(probe):
        if key not in _ACTIONS and key not in _PROBE_SETTINGS:
            yield Refusal(f"{where}.{key}", repr(probe[key]), ", ".join(_ACTIONS))
    for kind in ("httpGet", "tcpSocket"):
        action = probe.get(kind)
        if action and port_number(action["port"], container) is None:
            yield Refusal(f"{where}.{kind}.port", repr(action["port"]), "a port's number, or its name in the container's ports")


def _plain(field: str, key: str, value: object) -> Refusal:
    shown = repr(value)
    return Refusal(field, shown if len(shown) <= 80 else f"{shown[:77]}...", _INSTEAD.get(key, "unset"))
