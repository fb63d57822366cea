"""The files that a trial names, the objects in them, and what these declare for the lab.

A file of the caller's own comes before one that comes with the lab. An object declares in annotations of its Deployment or Job:
``elastic-lab/pythonpath``: the folder that its pods import their programs from, seen from the manifest's own folder. Only
processes see such a folder, so the object runs on the binary runtime alone.
``elastic-lab/metrics``: names of metrics, separated by commas. A trial with the object records them beside the usual ones.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import paths, yamlfile
from lab.errors import InputError

PROFILES, MANIFESTS = "profiles", "manifests"
POLICIES = ("scaledobjects", "hpa", "controllers", "steps")
_NO_PROFILES = ("scales",)  # a file of profiles/ that says what a scale is


@dataclass(frozen=True)
class Library:
    """Looks names up in ``roots``, folders with profiles/ and manifests/ in them; the first that has a file gives it."""

    roots: tuple[Path, ...] = (paths.FILES,)

    @classmethod
    def of(cls, caller: Path) -> Library:
        """The library of a caller whose own files are in the folder ``caller``, and come first."""
        return cls(tuple(dict.fromkeys((caller.resolve(), paths.FILES))))

    def profile(self, name: str) -> Path:
        """The profile ``name``. Raises :class:`InputError` with the names that there are."""
        return self._find("profile", name, [PROFILES])

    def policy(self, name: str) -> Path:
        """The policy ``name``, whatever its kind. Raises :class:`InputError` with the names that there are."""
        return self._find("policy", name, [f"{MANIFESTS}/{kind}" for kind in POLICIES])

    def manifest(self, name: str) -> Path:
        """The manifest ``name``, "folder/file". Raises :class:`InputError` naming those of its folder, else all."""
        for root in self.roots:
            if (file := root / MANIFESTS / f"{name}.yaml").is_file():
                return file
        folder = Path(name).parent
        there = sorted(set(self._manifests(folder)) or set(self._manifests(Path())))
        raise InputError(paths.MANIFESTS, "manifest", name, f"one of {', '.join(there)}")

    def _manifests(self, folder: Path) -> Iterator[str]:
        for root in self.roots:
            for file in (root / MANIFESTS / folder).rglob("*.yaml"):
                yield str(file.relative_to(root / MANIFESTS).with_suffix(""))

    def _find(self, kind: str, name: str, folders: list[str]) -> Path:
        places = [root / folder for root in self.roots for folder in folders]
        for place in places:
            if (file := place / f"{name}.yaml").is_file():
                return file
        names = {file.stem for place in places for file in place.glob("*.yaml")}
        where = paths.PROFILES if folders == [PROFILES] else paths.MANIFESTS
        raise InputError(where, kind, name, f"one of {', '.join(sorted(names.difference(_NO_PROFILES)))}")


COMMITTED = Library()


PREFIX = "elastic-lab/"
PYTHONPATH, METRICS = f"{PREFIX}pythonpath", f"{PREFIX}metrics"
_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True)
class Declarations:
    """The folder of an object's own ``programs``, None when the lab's are all it runs, and the ``metrics`` it adds."""

    programs: Path | None = None
    metrics: tuple[str, ...] = ()


def read(item: Mapping[str, Any], file: Path) -> Declarations:
    """What ``item`` of ``file`` declares. Raises :class:`InputError` for an annotation of the lab's that can't be used."""
    where = "metadata.annotations."
    given = item.get("metadata", {}).get("annotations") or {}
    ours = {name: value for name, value in given.items() if name.startswith(PREFIX)}
    yamlfile.known(ours, (PYTHONPATH, METRICS), file, where)
    programs = None
    if PYTHONPATH in ours:
        programs = (file.parent / ours[PYTHONPATH]).resolve()
        if not programs.is_dir():
            raise InputError(file, where + PYTHONPATH, ours[PYTHONPATH], "a folder, seen from that of the file")
    metrics = tuple(name.strip() for name in ours[METRICS].split(",")) if METRICS in ours else ()
    for name in metrics:
        if not _METRIC.fullmatch(name):
            raise InputError(file, where + METRICS, name, "names of metrics, separated by commas")
    return Declarations(programs, metrics)


def with_programs(item: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """``item`` of ``file``, each of whose containers imports from the folder that it declares. Raises like :func:`read`."""
    placed, programs = copy.deepcopy(dict(item)), read(item, file).programs
    if programs is not None:
        for container in placed["spec"]["template"]["spec"]["containers"]:
            container["env"] = [*container.get("env", ()), {"name": "PYTHONPATH", "value": str(programs)}]
    return placed


def lag_scaler() -> dict[str, Any]:
    """The persistent-lag scaler's Deployment as a trial has it: of its own, one replica, so that its record is all there is."""
    file = paths.MANIFESTS / "lagscaler" / "lag-scaler.yaml"
    deployment = next(item for item in yamlfile.documents(file) if item["kind"] == "Deployment")
    del deployment["metadata"]["namespace"]
    deployment["spec"] |= {"replicas": 1, "minReadySeconds": 0}
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["requests"]["cpu"] = "50m"  # beside 24 consumers on two cores
    return deployment


def bystander(consumer: dict[str, Any]) -> dict[str, Any]:
    """The Deployment ``consumer`` again, without replicas yet, whose pods start alike but never join the group."""
    twin = copy.deepcopy(consumer)
    twin["metadata"] = {"name": "bystander", "labels": {"app": "bystander"}}
    twin["spec"]["replicas"] = 0
    twin["spec"]["selector"]["matchLabels"] = {"app": "bystander"}
    twin["spec"]["template"]["metadata"]["labels"] = {"app": "bystander"}
    twin["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "JOIN", "value": "off"})
    return twin
