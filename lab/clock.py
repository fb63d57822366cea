"""A process's time: epoch seconds that never go back.

The wall clock is read once; what comes after is monotonic time since then, so a step of it moves no duration. Other programs'
times still follow it: :meth:`Clock.moved_s` says how far it went.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable


class Clock:
    """One anchor (wall, monotonic), in seconds."""

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._monotonic = wall, monotonic
        self.anchor()

    def anchor(self) -> None:
        """Read the wall clock, and count from this reading on."""
        self._anchor = self._wall() - self._monotonic()

    def now(self) -> float:
        """Epoch seconds by the anchor."""
        return self._anchor + self._monotonic()

    def moved_s(self) -> float:
        """How far the wall clock was moved since the anchor, s; negative is back."""
        return self._wall() - self.now()


PROCESS = Clock()
os.register_at_fork(after_in_child=PROCESS.anchor)  # the wall clock may have been moved since the parent read it
now = PROCESS.now
