"""The seal of a record: the SHA-256 of each of its files, which trial.json has in ``files``.

It guards against accidents and not against forgery, since a forger can change trial.json too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

FILE = "trial.json"  # has the seal
DERIVED = "measures.json"  # computed from the rest, and written anew whenever a record is judged


def checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of the record in ``folder``, by its path there; hidden files are none of a record."""
    return {name: checksum(folder / name) for name in sorted(_names(folder))}


def damage(folder: Path, files: Mapping[str, str]) -> list[str]:
    """What is wrong with the record in ``folder``, whose files had the checksums ``files``: "receipts.parquet is gone"."""
    there = set(_names(folder))
    wrong = [f"{name} is gone" for name in sorted(files.keys() - there)]
    wrong += [f"{name} is changed" for name in sorted(files.keys() & there) if checksum(folder / name) != files[name]]
    return wrong + [f"{name} is added" for name in sorted(there - files.keys())]


def _names(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_file() and str(name) not in (FILE, DERIVED) and not any(part.startswith(".") for part in name.parts):
            yield name.as_posix()


def checksum(file: Path) -> str:
    """The SHA-256 of ``file``, in hexadecimal."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
