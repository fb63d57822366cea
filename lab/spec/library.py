"""The files that a trial names: profiles, policies and manifests, first the caller's own, then those that come with the lab."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab import paths
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
