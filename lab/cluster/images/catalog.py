"""The images that a kind cluster needs, and the names of those made here. Pure.

Only manifests name upstream's images, pinned. An image made here has a name of its own, so that it can't be mistaken for the
published one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lab.components import build

OURS = "elastic-lab"
# The node image that this kind's release notes give for this Kubernetes; kind asks for the digest.
NODE = f"kindest/node:v{build.KUBERNETES}@sha256:099e049362a1526b2db71494e1947aae99bd16290d7c895f2b7ea312e3cbfaed"
PODS_PYTHON = "3.11"  # Debian bookworm's own, so an image made here has it too
PYTHON = f"python:{PODS_PYTHON}-slim-bookworm"
PODS = f"{OURS}/pods"


def made_here(image: str) -> str:
    """The name of the image made here in place of upstream's ``image``: the last part of its name, and its tag."""
    name = image.partition("@")[0]
    return f"{OURS}/{name.rpartition('/')[2]}"


def is_lab(image: str) -> bool:
    """Whether ``image`` is the lab's own: no registry has it."""
    return image.startswith(f"{OURS}/")


def named(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """The images that the pods of ``objects`` run, each once, in order."""
    return list(dict.fromkeys(container["image"] for item in objects for container in containers(item)))


def containers(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The containers of a workload's pod template, the ones that initialize it included."""
    pod = item.get("spec", {}).get("template", {}).get("spec", {})
    yield from pod.get("initContainers", ())
    yield from pod.get("containers", ())


def version(image: str) -> str:
    """The version in an image's tag, without a leading v. ``ValueError`` when it has none."""
    found = re.search(r":v?([\w.-]+)(?:@|$)", image)
    if found is None:
        raise ValueError(f"{image} names no version")
    return found[1]
