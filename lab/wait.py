"""Waiting with a stated deadline, and log lines that show that a wait goes on."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lab.errors import LabFault


def until(
    condition: Callable[[], bool], deadline_s: float, what: str, check: Callable[[], None] | None = None, every_s: float = 0.1
) -> float:
    """Ask ``condition`` until it holds; returns the seconds it took. ``check`` may raise when waiting has become pointless.

    Raises :class:`LabFault` naming ``what`` when the deadline passes.
    """
    begun = time.monotonic()
    pause = threading.Event()
    while not condition():
        if check is not None:
            check()
        if time.monotonic() - begun > deadline_s:
            raise LabFault(f"{what}: not within {deadline_s:g} s")
        pause.wait(every_s)
    return time.monotonic() - begun


log = logging.getLogger("lab")


@contextmanager
def reporting(what: Callable[[], str], every_s: float = 10.0) -> Iterator[None]:
    """Log ``what()`` with the elapsed seconds every ``every_s`` seconds until the block ends."""
    done = threading.Event()
    begun = time.monotonic()

    def tick() -> None:
        while not done.wait(every_s):
            log.info("%s, %.0f s", what(), time.monotonic() - begun)

    thread = threading.Thread(target=tick, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
