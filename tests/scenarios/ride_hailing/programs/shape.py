"""How many Locust users make a profile's rate, and when each of their requests is due: pure.

Users who wait for their answer, think, and ask again are a closed loop. By Little's law a rate takes rate x cycle users, the
cycle being think time and answer time together. What such users then really make is recorded. Paced users ask when the profile
says: their cycle has to have room for the answer, and how late they are is recorded.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator

from lab.inputs.profile import Profile

THINK_S = (0.05, 0.2)  # the text's wait_time
CYCLE_S = sum(THINK_S) / 2  # of a user whose answers take no time
SPAWN_RATE = 100.0  # users/s, the text's
BLOCK = 10_000  # times at once: one by one they take longer


def rate_at(profile: Profile, seconds: float) -> float:
    """The rate due ``seconds`` after the profile's start, events/s; before it that of its first step."""
    index = bisect_right([step.at for step in profile.steps], seconds) - 1
    return profile.steps[max(0, index)].rate


def users_at(profile: Profile, seconds: float, cycle_s: float = CYCLE_S) -> int | None:
    """The users that make the rate due then; None once the profile is over."""
    if seconds >= profile.duration:
        return None
    return math.ceil(rate_at(profile, seconds) * cycle_s)


def schedule(profile: Profile) -> Iterator[float]:
    """When each request is due, s after the profile's start: the times at which the lab's producer sends its events."""
    for first in range(0, profile.total, BLOCK):
        yield from profile.times(first, min(first + BLOCK, profile.total)).tolist()
