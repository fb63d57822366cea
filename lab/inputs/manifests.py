"""The files that a trial names, the objects in them, and what these declare for the lab.

A file of the caller's own comes before one that comes with the lab. An object declares in annotations of its Deployment or Job:
``elastic-lab/pythonpath``: the folder that its pods import their programs from, seen from the manifest's own folder. Only
processes see such a folder, so the object runs on the binary runtime alone.
``elastic-lab/duet``: "yes" where each side of a duet may have the object beside it, or where the Job's events are for both
sides: it asks nothing of the pods of one.
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
from lab.errors import InputError, closest
from lab.inputs import anchor, fidelity
from lab.inputs import policy as policies
from lab.inputs import scale as scales
from lab.inputs.scale import Scale

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
            if _is_file(file := root / MANIFESTS / f"{name}.yaml"):
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
            if _is_file(file := place / f"{name}.yaml"):
                return file
        names = sorted({file.stem for place in places for file in place.glob("*.yaml")}.difference(_NO_PROFILES))
        where = paths.PROFILES if folders == [PROFILES] else paths.MANIFESTS
        raise InputError(where, kind, name, f"one of {', '.join(names)}", closest(name, names))


def _is_file(file: Path) -> bool:
    """Whether there is such a file; a name that is too long for one is none."""
    try:
        return file.is_file()
    except OSError:
        return False


COMMITTED = Library()
PREFIX = "elastic-lab/"
PYTHONPATH, METRICS, DUET = f"{PREFIX}pythonpath", f"{PREFIX}metrics", f"{PREFIX}duet"
_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True)
class Declarations:
    """The folder of an object's ``programs`` (None: the lab's), ``metrics`` that it adds, and whether it serves a ``duet``."""

    programs: Path | None = None
    metrics: tuple[str, ...] = ()
    duet: bool = False


def read(item: Mapping[str, Any], file: Path) -> Declarations:
    """What ``item`` of ``file`` declares. Raises :class:`InputError` for an annotation of the lab's that can't be used."""
    annotations = item.get("metadata", {}).get("annotations") or {}
    ours = {name: value for name, value in annotations.items() if name.startswith(PREFIX)}
    given = yamlfile.Fields(ours, file, "metadata.annotations.")
    given.known(PYTHONPATH, METRICS, DUET)
    programs = (file.parent / ours[PYTHONPATH]).resolve() if PYTHONPATH in ours else None
    if programs is not None and not programs.is_dir():
        raise given.error(PYTHONPATH, "a folder, seen from that of the file")
    metrics = tuple(name.strip() for name in ours[METRICS].split(",")) if METRICS in ours else ()
    if not all(map(_METRIC.fullmatch, metrics)):
        raise given.error(METRICS, "names of metrics, separated by commas")
    if ours.get(DUET, "no") not in ("yes", "no"):
        raise given.error(DUET, "yes or no, in quotes")
    return Declarations(programs, metrics, ours.get(DUET) == "yes")


def declarations(file: Path) -> list[Declarations]:
    """What the objects in the manifest ``file`` declare for the lab, one each."""
    return [read(item, file) for item in yamlfile.documents(file)]


def beside(file: Path, scale: Scale) -> list[dict[str, Any]]:
    """The objects in ``file``; what decides replicas is compressed. Raises :class:`InputError` for one that can't be used."""
    made = []
    for item in yamlfile.documents(file):
        if item.get("kind") not in policies.KINDS:
            made.append(with_programs(item, file))
            continue
        policy = policies.parse(item, file)
        if anchor.crons(policy):
            allowed = "any other trigger beside a trial: only the trial's own policy is anchored"
            raise InputError(file, "spec.triggers", "cron", allowed)
        fidelity.check(policy, scale, file, scales.declared())
        made.append(policy.compressed(scale).content)
    return made


def with_programs(item: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """``item`` of ``file``, each of whose containers imports from the folder that it declares. Raises like :func:`read`."""
    placed, programs = copy.deepcopy(dict(item)), read(item, file).programs
    if programs is not None:
        for container in placed["spec"]["template"]["spec"]["containers"]:
            container["env"] = [*container.get("env", ()), {"name": "PYTHONPATH", "value": str(programs)}]
    return placed
