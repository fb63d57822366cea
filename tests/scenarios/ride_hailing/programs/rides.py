"""``python -m tests.scenarios.ride_hailing.programs.rides``: the lab's producer, whose events are those of a city's rides.

It replays the profile in an open loop like :mod:`lab.programs.producer`. Its events are drawn from the demand of each zone
(:mod:`tests.scenarios.ride_hailing.programs.surge`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lab.inputs.producer import Settings
from lab.inputs.profile import Profile
from lab.programs.producer.__main__ import main
from lab.programs.producer.send import Contents, Ids
from tests.scenarios.ride_hailing.programs.surge import Rides


@dataclass
class Taken:
    """Gives the events one after the other what ``of(first, count)`` has for them."""

    of: Callable[[int, int], Any]
    first: int = 0

    def take(self, count: int) -> Any:
        """What the next ``count`` events have."""
        found = self.of(self.first, count)
        self.first += count
        return found


def rides(chosen: Settings, profile: Profile) -> tuple[Ids, Contents]:
    """The entities and the payloads of the profile's events."""
    drawn = Rides(chosen.seed, profile)
    return Taken(drawn.entities).take, Taken(drawn.payloads).take


if __name__ == "__main__":
    sys.exit(main(rides))
