"""The repository in whose history the records of the archive's sessions are: taken out, put in."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

from lab import paths
from lab.archive import lock, table
from lab.archive.lock import FOLDER, HEADS, LOCK, TABLE, VERDICTS, Lock
from lab.errors import InputError, LabFault
from lab.record import seal

RECORDS = "records"
PARTS = (RECORDS, VERDICTS)  # of what a session leaves, in the archive
GIT_S = 600.0  # the longest that one command of git may take; a fetch of 22 MB takes seconds


class Repository:
    """A clone of the lab's repository, at ``root``. Raises :class:`InputError` where there is none."""

    def __init__(self, root: Path = paths.PROJECT) -> None:
        if not (root / ".git").exists():
            allowed = "a clone of the lab's repository: the records are in its history"
            raise InputError("evidence", "--repository", str(root), allowed)
        self.root, self.folder = root, root / FOLDER

    @property
    def lock(self) -> Lock:
        """The lock as it is in the checkout."""
        return lock.read(self.folder)

    def fetch(self, name: str, output: Path | None = None) -> Path:
        """Take session ``name`` out of its commit into ``output``, by default into the cache; returns the folder.

        A clone that lacks the commit, or its files, gets them from its remote. Raises :class:`InputError` for a session that
        is not in the archive, for an ``output`` that has files, and where the remote does not give the commit;
        :class:`LabFault` where the files are not those that were locked.
        """
        entry = self.lock.entry(name)
        target = output or paths.cache_dir() / "archive" / f"{name}-{entry.sha256[:12]}"
        if output is None and target.is_dir():
            return target
        if target.exists() and any(target.iterdir()):
            raise InputError("evidence", "--output", str(target), "a folder that is empty or not there")
        self._obtain(entry.commit)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=target.parent) as scratch:
            made = Path(scratch, "session")
            made.mkdir()
            self._export(f"{entry.commit}:{FOLDER}/{name}", made)
            for path in made.iterdir():  # the commits of before the archive have pages beside the records
                if path.name not in PARTS:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            if wrong := lock.differences(entry, made):
                raise LabFault(f"evidence {name} is not what was locked: {'; '.join(wrong)}")
            for file in (made / RECORDS).glob(f"*/{seal.FILE}"):
                seal.adopt(file.parent)
            if target.exists():
                target.rmdir()
            made.replace(target)
        return target

    def add(self, session: Path, name: str, rows: list[table.Row]) -> None:
        """Put the records and verdicts in ``session`` into the archive as ``name``, with the ``rows`` of the table.

        They are committed, locked, and removed in the next commit, so that no checkout from then on has them. Raises
        :class:`InputError` for a name that is there, and where the checkout has changes that are not committed.
        """
        if name in self.lock.sessions or (self.folder / name).exists():
            raise InputError("evidence", "NAME", name, "a name that no session of the archive has")
        place = self._place(name)
        shutil.copytree(session / RECORDS, place / RECORDS)
        shutil.copyfile(session / VERDICTS, place / VERDICTS)
        commit = self._commit(name, "its records")
        entry = lock.measured(place, date.today().isoformat(), commit)
        table.write([*table.read(self.folder), *rows], self.folder)
        found = self.lock.model_copy(update={"sessions": self.lock.sessions | {name: entry}})
        self._lock(name, found, f"{entry.files} files, {entry.bytes:,} bytes")

    def add_faults(self, name: str, heads: Sequence[Mapping[str, Any]], tally: Mapping[str, Any]) -> None:
        """Commit the ``heads`` of trials with faults, lock them with their ``tally`` as ``name``, and remove them.

        A ``name`` that is there is counted anew. Raises :class:`InputError` where the checkout has changes that are not
        committed.
        """
        place = self._place(name)
        content = json.dumps(list(heads), indent=0)
        (place / HEADS).write_text(content)
        commit = self._commit(name, "the heads of its trials")
        entry = {"commit": commit, "heads": hashlib.sha256(content.encode()).hexdigest(), **tally}
        found = self.lock.model_copy(update={"faults": self.lock.faults | {name: entry}})
        self._lock(name, found, f"{len(heads)} trials with faults")

    def heads(self, name: str) -> list[dict[str, Any]]:
        """The heads of the trials by which the faults of session ``name`` were counted.

        Raises :class:`LabFault` where they are not what was locked.
        """
        entry = self.lock.faults[name]
        self._obtain(entry["commit"])
        content = self._git("show", f"{entry['commit']}:{FOLDER}/{name}/{HEADS}")
        if hashlib.sha256(content.encode()).hexdigest() != entry["heads"]:
            raise LabFault(f"the heads of {name} are not what was locked")
        found: list[dict[str, Any]] = json.loads(content)
        return found

    def _place(self, name: str) -> Path:
        """A new folder for what is committed as ``name``. Raises :class:`InputError` for a checkout with changes."""
        if changes := self._git("status", "--porcelain", "--untracked-files=no"):
            raise InputError(self.root, "changes", changes.splitlines()[0].strip(), "a checkout whose changes are committed")
        (place := self.folder / name).mkdir()
        return place

    def _commit(self, name: str, what: str) -> str:
        """Commit the folder of ``name``, which has ``what``; returns the commit."""
        self._git("add", "--force", f"{FOLDER}/{name}")
        self._git("commit", "--quiet", "--message", f"Evidence {name}: {what}, which the next commit locks and removes")
        return self._git("rev-parse", "HEAD")

    def _lock(self, name: str, found: Lock, what: str) -> None:
        """Commit the lock as ``found``, without the folder of ``name``."""
        lock.write(found, self.folder)
        self._git("rm", "-r", "--quiet", f"{FOLDER}/{name}")
        self._git("add", f"{FOLDER}/{LOCK}", f"{FOLDER}/{TABLE}")
        self._git("commit", "--quiet", "--message", f"Evidence {name} is locked: {what}")

    def _obtain(self, commit: str) -> None:
        """Make sure that ``commit`` is here: a shallow clone asks its remote for it."""
        with suppress(LabFault):
            # Without the remote: a clone without blobs would ask it for the commit, and wait.
            self._git("cat-file", "-e", f"{commit}^{{commit}}", GIT_NO_LAZY_FETCH="1")
            return
        try:
            self._git("fetch", "--quiet", "--depth=1", "--filter=blob:none", "origin", commit)
        except LabFault as refused:
            line = f"a clone that has it, by: git -C {self.root} fetch --unshallow ({refused})"
            raise InputError("evidence", "commit", commit, line) from None

    def _export(self, tree: str, target: Path) -> None:
        """Write the files of ``tree`` into ``target``; what a clone without blobs lacks comes in one request."""
        with tempfile.TemporaryDirectory(prefix="elastic-lab-index-") as scratch:
            place = {"GIT_INDEX_FILE": str(Path(scratch, "index")), "GIT_WORK_TREE": str(target)}
            self._git("read-tree", "-m", "-u", tree, GIT_DIR=self._git("rev-parse", "--absolute-git-dir"), **place)

    def _git(self, *words: str, **environment: str) -> str:
        """What git prints. Raises :class:`LabFault` with its last line where it fails or takes longer than GIT_S."""
        command = ["git", "-C", str(self.root), *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_S, env=os.environ | environment)
        except subprocess.TimeoutExpired:
            raise LabFault(f"git {words[0]} took more than {GIT_S:g} s") from None
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise LabFault(f"git {words[0]}: {last}")
        return done.stdout.strip()
