"""Closes a record part by part: each is whole or missing with its reason, none waits for ever, and none costs another.

A part is written into a folder of its own and comes into the record by renaming once it is complete. A part that raises, or
that its deadline passes over, is named in trial.json (``missing``) and the next one goes on.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabFault
from lab.record.store import STAGING

log = logging.getLogger("lab.trial")

CANCEL_S = 10.0


@dataclass(frozen=True)
class Part:
    """What ``write`` puts into the folder that it is given, within ``deadline_s``; ``cancel`` ends one that is late.

    ``replaces`` are files of the record that go once the part is there: what it was made of. ``resumable`` is a part that
    leaves, where it fails, what it has written, for a later session that goes on with it (:mod:`lab.record.rescue`).
    """

    name: str
    write: Callable[[Path], object]
    deadline_s: float
    cancel: Callable[[], object] = lambda: None
    replaces: tuple[str, ...] = ()
    resumable: bool = False


@dataclass(frozen=True)
class Closing:
    """The record in ``folder`` with the ``parts`` to write into it, in order.

    ``missing`` gets the reason of each that is not there after. ``note`` is called after each part: a session that is killed
    has no other chance to say how far it came.
    """

    folder: Path
    parts: Sequence[Part]
    missing: dict[str, str]
    note: Callable[[], object] = lambda: None


def close(*records: Closing) -> None:
    """Write the parts of ``records``: the first of each, then the second of each, so that what is over for one is for all.

    Raises ``KeyboardInterrupt`` when it is interrupted: the part under way and those after it are then missing.
    """
    interrupted = False
    for turn in itertools.zip_longest(*(record.parts for record in records)):
        for record, part in zip(records, turn, strict=True):
            if part is not None:
                interrupted = _one(record, part, interrupted)
                try:
                    record.note()
                except OSError as error:
                    log.warning("the record %s: what is known can't be written: %s", record.folder.name, error)
    for record in records:
        staging = record.folder / STAGING
        for part in record.parts:
            if not (part.resumable and part.name in record.missing):
                shutil.rmtree(staging / part.name, ignore_errors=True)
        with contextlib.suppress(OSError):  # what can be gone on with is left in it
            staging.rmdir()
    if interrupted:
        raise KeyboardInterrupt


def _one(record: Closing, part: Part, interrupted: bool) -> bool:
    """Write one part unless it is ``interrupted`` already; returns whether it is now."""
    missing = record.missing
    if interrupted:
        missing[part.name] = "not tried: interrupted"
        return True
    try:
        missing.pop(part.name, None)
        _write(record.folder, record.folder / STAGING / part.name, part)
    except KeyboardInterrupt:
        interrupted = True
        missing[part.name] = "interrupted"
    except Exception as error:
        missing[part.name] = reason(error)
    if part.name in missing:
        log.warning("the record %s lacks %s: %s", record.folder.name, part.name, missing[part.name])
    return interrupted


def bounded(do: Callable[[], object], deadline_s: float) -> None:
    """Do it in a thread. Raises what it raised, or :class:`LabFault` after ``deadline_s`` s; it may then go on, unseen."""
    failed: list[BaseException] = []

    def work() -> None:
        try:
            do()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, name="closing", daemon=True)
    thread.start()
    thread.join(deadline_s)
    if thread.is_alive():
        raise LabFault(f"not within {deadline_s:g} s")
    if failed:
        raise failed[0]


@contextlib.contextmanager
def logged() -> Iterator[None]:
    """Log an error that ends the block, and go on: another one is to be raised."""
    try:
        yield
    except Exception as error:
        log.warning("%s", reason(error))


@contextlib.contextmanager
def deferred(do: Callable[[], object]) -> Iterator[None]:
    """Do it when the block ends, however it ends. An error of the block, or Ctrl-C, is raised before one of this."""
    try:
        yield
    except BaseException:
        with logged():
            do()
        raise
    do()


def reason(error: BaseException) -> str:
    """Why, in one line."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def _write(folder: Path, staging: Path, part: Part) -> None:
    staging.mkdir(parents=True, exist_ok=True)
    try:
        bounded(lambda: part.write(staging), part.deadline_s)
    except BaseException:
        try:
            bounded(part.cancel, CANCEL_S)
        except Exception as error:
            log.debug("%s could not be cancelled: %s", part.name, error)
        raise
    for path in staging.iterdir():
        path.replace(folder / path.name)
    for name in part.replaces:
        (folder / name).unlink(missing_ok=True)
