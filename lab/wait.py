"""Waiting, with a stated deadline, for something that can only be asked; a watch or callback is used where there is one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from lab.errors import LabFault


def until(
    condition: Callable[[], bool], deadline_s: float, what: str, check: Callable[[], None] | None = None, every_s: float = 0.1
) -> float:
    """Ask ``condition`` until it holds; returns the seconds it took.

    ``check`` may raise when waiting has become pointless (a component died). Raises :class:`LabFault` naming ``what`` when
    the deadline passes.
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
