"""The schedule of a session: its tests, how long their trials take, and when it ends. Times in s."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from lab.inputs import scale as scales
from lab.inputs.scale import Scale
from lab.number_format import duration

CLUSTER_S = 15.0  # a cluster's start and end


@dataclass(frozen=True)
class Planned:
    """A test that judges trials: ``seconds`` are those of its trials, run once at the scale ``at``; None where nobody knows."""

    id: str
    title: str
    seconds: float | None = None
    at: str = scales.QUICK

    def takes(self, scale: Scale, repeat: int) -> float:
        """The seconds of ``repeat`` runs in a session at ``scale``; its own is no more compressed."""
        own = scales.load(self.at).time
        return (self.seconds or 0.0) * repeat * own / min(own, scale.time)


@dataclass(frozen=True)
class Schedule:
    """The ``tests`` of a session at ``scale`` in their order, with ``repeat`` runs of each trial."""

    tests: Sequence[Planned]
    scale: Scale
    repeat: int

    @property
    def seconds(self) -> float:
        """How long the session takes, as far as that is known."""
        clusters = {min(self.scale.time, scales.load(one.at).time) for one in self.tests}
        return sum(one.takes(self.scale, self.repeat) for one in self.tests) + CLUSTER_S * len(clusters)

    @property
    def lines(self) -> list[str]:
        """What the session will do, before it does it."""
        known = [one for one in self.tests if one.seconds is not None]
        count = f"plan: {len(self.tests)} test{'s' * (len(self.tests) != 1)}"
        if not known:
            return [f"{count}; their time is not known"]
        rest = len(self.tests) - len(known)
        more = f"; the time of {rest} is not known" if rest else ""
        rows = [f"  {duration(one.takes(self.scale, self.repeat)):>12}  {one.title}" for one in known]
        return [f"{count}, about {duration(self.seconds)}{more}", *rows]

    def progress(self, ended: Collection[str], elapsed: float) -> str:
        """How many tests have ended after ``elapsed`` seconds, and how long the others take at the same speed."""
        planned = sum(one.takes(self.scale, self.repeat) for one in self.tests if one.id in ended)
        left = sum(one.takes(self.scale, self.repeat) for one in self.tests if one.id not in ended)
        slower = max(1.0, elapsed / (planned + CLUSTER_S)) if planned else 1.0
        said = f"{len(ended)} of {len(self.tests)} tests have ended after {duration(elapsed)}"
        return f"{said}; about {duration(left * slower)} to go" if left else said


class Progress:
    """Says the plan of a ``schedule``, and as a plugin of pytest after each of its tests how long the rest takes."""

    def __init__(self, schedule: Schedule, say: Callable[[str], object]) -> None:
        self._schedule, self._say = schedule, say
        self._ended: set[str] = set()
        self._begun = time.monotonic()
        for line in schedule.lines:
            say(line)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Called when a test has ended; the summary is one without trials."""
        if any(one.id == nodeid for one in self._schedule.tests):
            self._ended.add(nodeid)
            self._say(self._schedule.progress(self._ended, time.monotonic() - self._begun))
