"""The differences between the runtimes in a workload's manifest, in one place. Pure: experiments don't know their runtime."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.cluster.images import catalog

_POD: dict[str, Any] = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
_DROPPED = {"drop": ["ALL"]}
_CONTAINER = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": _DROPPED}
_TMP = "tmp"  # a JVM unpacks the libraries of its codecs there


@dataclass(frozen=True)
class Fit:
    """A runtime's image of the lab's programs, its other images, a container's limits; ``shared`` if a pod's processes are.

    ``clients`` are the images of consumers on other clients, by their names in manifests.
    """

    pods: str | None = None
    images: Mapping[str, str] = field(default_factory=dict)
    pod: Mapping[str, Any] = field(default_factory=dict)
    container: Mapping[str, Any] = field(default_factory=dict)
    shared: bool = False
    clients: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """``item`` as this runtime takes it; an object that is not a workload stays as it is."""
        fitted = copy.deepcopy(dict(item))
        for container in catalog.containers(fitted):
            if not catalog.is_lab(container["image"]):
                container["image"] = self.images.get(container["image"], container["image"])
                continue
            if client := self.clients.get(container["image"]):
                fitted["spec"]["template"]["spec"]["volumes"] = [{"name": _TMP, "emptyDir": {}}]
                container["volumeMounts"] = [{"name": _TMP, "mountPath": "/tmp"}]
            container["image"] = client or self.pods or container["image"]
            if self.shared:
                fitted["spec"]["template"]["spec"].setdefault("shareProcessNamespace", True)
            if self.container:
                container.setdefault("securityContext", dict(self.container))
                fitted["spec"]["template"]["spec"].setdefault("securityContext", dict(self.pod))
        return fitted


# The process node runs commands, not images, and refuses limits that it can't enforce on a process.
BINARY = Fit()


def containers(pods: str, images: Mapping[str, str], *, shared: bool = False) -> Fit:
    """The fit of containers: numeric user, read-only root, no capability."""
    return Fit(pods, images, _POD, _CONTAINER, shared)
