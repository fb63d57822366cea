"""The seal of a record: the SHA-256 of each of its files, which trial.json has in ``files``, its own among them.

Its own is that of all its content but this checksum. The seal guards against accidents and not against forgery, since a forger
can make the checksums anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lab import wholefile

FILE = "trial.json"  # has the seal
DERIVED = "measures.json"  # computed from the rest, and written anew whenever a record is judged


def checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of the record in ``folder``, by its path there; hidden files are none of a record.

    All are on the disk by then, where a crash of the machine leaves them. The checksum of trial.json comes as that is written.
    """
    for path in (folder.parent, folder, *_content(folder)):
        wholefile.sync(path)
    return {name: checksum(folder / name) for name in sorted(_names(folder))}


def complete(content: Mapping[str, Any]) -> dict[str, Any]:
    """The ``content`` of trial.json with the checksum of its own in ``files``."""
    return {**content, "files": content["files"] | {FILE: _own(content)}}


def adopt(folder: Path) -> None:
    """Give a record that was sealed without a checksum of trial.json that checksum. The caller vouches for its content."""
    file = folder / FILE
    content = json.loads(file.read_text())
    if content.get("files") is not None and FILE not in content["files"]:
        wholefile.write(file, json.dumps(complete(content), indent=1) + "\n")


def damage(folder: Path, files: Mapping[str, str]) -> list[str]:
    """What is wrong with the record in ``folder``, whose files had the checksums ``files``: "receipts.parquet is gone"."""
    there = {*_names(folder), FILE}
    wrong = [f"{name} is gone" for name in sorted(files.keys() - there)]
    wrong += [f"{name} is changed" for name in sorted(files.keys() & there) if _checksum(folder, name) != files[name]]
    return wrong + [f"{name} {'has no checksum' if name == FILE else 'is added'}" for name in sorted(there - files.keys())]


def _checksum(folder: Path, name: str) -> str:
    return _own(json.loads((folder / name).read_text())) if name == FILE else checksum(folder / name)


def _own(content: Mapping[str, Any]) -> str:
    others = {name: value for name, value in content["files"].items() if name != FILE}
    plain = json.loads(json.dumps({**content, "files": others}))  # as it is read: a number that is a key is text
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _content(folder: Path) -> Iterator[Path]:
    """The files and folders in ``folder`` that are not hidden."""
    return (path for path in folder.rglob("*") if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def _names(folder: Path) -> Iterator[str]:
    names = (path.relative_to(folder).as_posix() for path in _content(folder) if path.is_file())
    return (name for name in names if name not in (FILE, DERIVED))


def checksum(file: Path) -> str:
    """The SHA-256 of ``file``, in hexadecimal."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
