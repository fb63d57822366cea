"""Waiting with a stated deadline, which calls that a wait makes are held to, and log lines that show that a wait goes on."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lab.errors import LabFault, NoAnswer

log = logging.getLogger("lab")

_LEAST_S = 0.05
_END: ContextVar[float] = ContextVar("the end of the wait under way, monotonic s", default=math.inf)


def until(
    condition: Callable[[], bool], deadline_s: float, what: str, check: Callable[[], None] | None = None, every_s: float = 0.1
) -> float:
    """Ask ``condition`` until it holds; returns the seconds it took. ``check`` may raise when waiting has become pointless.

    A condition that raises :class:`NoAnswer` does not hold yet; one that calls a server bounds the call by :func:`within`.
    Raises :class:`LabFault` naming ``what`` when the deadline passes.
    """
    begun = time.monotonic()
    pause, unanswered = threading.Event(), ""
    outer = _END.set(min(_END.get(), begun + deadline_s))
    try:
        while True:
            try:
                if condition():
                    return time.monotonic() - begun
                unanswered = ""
            except NoAnswer as error:
                unanswered = f" ({error})"
            if check is not None:
                check()
            if time.monotonic() - begun > deadline_s:
                raise LabFault(f"{what}: not within {deadline_s:g} s{unanswered}")
            pause.wait(every_s)
    finally:
        _END.reset(outer)


def within(seconds: float) -> float:
    """How long a call may take, s: ``seconds``, or what is left of the wait that makes it."""
    return max(_LEAST_S, min(seconds, _END.get() - time.monotonic()))


@contextmanager
def reporting(what: Callable[[], str], every_s: float = 10.0) -> Iterator[None]:
    """Log ``what()`` with the elapsed seconds every ``every_s`` seconds until the block ends."""
    done = threading.Event()
    begun = time.monotonic()

    def tick() -> None:
        while not done.wait(every_s):
            try:
                log.info("%s, %.0f s", what(), time.monotonic() - begun)
            except Exception as error:  # a line that can't be made costs no later one
                log.debug("no line of progress: %r", error)

    thread = threading.Thread(target=tick, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
