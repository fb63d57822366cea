"""A lock between sessions, which logs a line when a session has to wait for it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from lab.errors import LabFault

log = logging.getLogger("lab")


@contextmanager
def held(file: Path, work: str) -> Iterator[None]:
    """Hold the lock ``file``. When another session holds it, log once that ``work`` is waited for, and wait.

    Raises :class:`LabFault` when the file can't be made.
    """
    lock = FileLock(file)
    try:
        try:
            lock.acquire(blocking=False)
        except Timeout:
            log.info("waiting for another session: %s (it holds %s)", work, file)
            lock.acquire()
    except OSError as error:
        raise LabFault(f"the lock {file} can't be taken: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()
