"""The lock of the archive, ``docs/evidence/lock.json``: the commit of each session's records, and their checksums."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from lab import validation, wholefile
from lab.errors import InputError
from lab.record.seal import checksum

LOCK, TABLE = "lock.json", "verdicts.csv"  # in FOLDER
HEADS = "heads.json"  # in FOLDER/NAME of a commit: each trial's trial.json and what its faults did
FOLDER = "docs/evidence"  # in the repository; a session's records are in FOLDER/NAME of its commit
VERDICTS = "verdicts.json"  # in FOLDER/NAME: the rows of each test, as they were judged


class Entry(BaseModel, extra="forbid", frozen=True):
    """A session of the archive.

    ``commit`` has its files under FOLDER/NAME; they have so many ``bytes`` in so many ``files``. ``sha256`` is over the name
    and the SHA-256 of each, in the order of their names; ``verdicts`` is the SHA-256 of its verdicts.json.
    """

    date: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    commit: str = Field(pattern=r"^[0-9a-f]{40}$")
    files: int = Field(gt=0)
    bytes: int = Field(gt=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    verdicts: str = Field(pattern=r"^[0-9a-f]{64}$")


class Lock(BaseModel, extra="forbid", frozen=True):
    """All sessions of the archive, by name; and of sessions with ``faults`` what these did (:mod:`lab.measure.fault_tally`).

    A tally says in which ``commit`` the heads of its trials are, and their SHA-256, ``heads``.
    """

    sessions: dict[str, Entry]
    faults: dict[str, dict[str, Any]] = {}

    def entry(self, name: str) -> Entry:
        """The session ``name``. Raises :class:`InputError` naming all that there are."""
        if name not in self.sessions:
            raise InputError("evidence", "NAME", name, f"a session of the archive: {', '.join(self.sessions) or 'none yet'}")
        return self.sessions[name]


def read(folder: Path) -> Lock:
    """The lock in ``folder``. Raises :class:`InputError` without one, and for the first field that can't be used."""
    file = folder / LOCK
    if not file.is_file():
        raise InputError(file, "file", "none", "the lock of the archive, as a clone of the lab's repository has it")
    return validation.read_file(Lock, file)


def write(lock: Lock, folder: Path) -> None:
    """Write ``lock`` into ``folder``, sorted by name, so that a session adds lines and moves none."""
    sessions = {name: lock.sessions[name].model_dump() for name in sorted(lock.sessions)}
    tallies = {name: lock.faults[name] for name in sorted(lock.faults)}
    content = {"sessions": sessions, **({"faults": tallies} if tallies else {})}
    wholefile.write(folder / LOCK, json.dumps(content, indent=1) + "\n")


def files(folder: Path) -> list[Path]:
    """All files in ``folder``, in the order of their names."""
    return sorted((file for file in folder.rglob("*") if file.is_file()), key=lambda file: file.relative_to(folder).as_posix())


def measured(folder: Path, date: str, commit: str) -> Entry:
    """The entry of the session in ``folder``, whose files are in ``commit``. Raises :class:`InputError` without verdicts."""
    if not (folder / VERDICTS).is_file():
        raise InputError(folder, VERDICTS, "no file", "the verdicts of the session's tests")
    there = files(folder)
    lines = [f"{checksum(file)}  {file.relative_to(folder).as_posix()}\n" for file in there]
    return Entry(
        date=date,
        commit=commit,
        files=len(there),
        bytes=sum(file.stat().st_size for file in there),
        sha256=hashlib.sha256("".join(lines).encode()).hexdigest(),
        verdicts=checksum(folder / VERDICTS),
    )


def differences(locked: Entry, folder: Path) -> list[str]:
    """How the files in ``folder`` differ from what is ``locked``: a line for each of its fields."""
    there = measured(folder, locked.date, locked.commit).model_dump()
    return [
        f"{field} is {there[field]}, locked as {value}" for field, value in locked.model_dump().items() if there[field] != value
    ]
