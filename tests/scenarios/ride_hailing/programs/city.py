"""The city that the traffic is about: drivers, trips, zones and what a ride costs in each, a pure function of a seed.

So the surge multiplier of any zone at any time can be computed again from a record: it is the ground truth of the dashboard.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Any

DRIVER, TRIP, SURGE, MATCH = "driver-location", "trip-complete", "surge-update", "match"
WEIGHTS = {DRIVER: 5, TRIP: 3, SURGE: 1}  # the text's Locust tasks

# The text holds that a dashboard at most 3 s old has the right multiplier for more than 95 % of zones. A multiplier that lives
# H seconds and is seen s seconds late is wrong for s / H of its time, so both claims hold together from H = 3 / 0.05 = 60 on.
HOLD_S = 60.0
LEAST, STEP, LEVELS = 1.0, 0.1, 21  # multipliers 1.0, 1.1 ... 3.0
CENTRE = (40.7128, -74.0060)
GRID = 100  # the text's: a hundred places, 0.001 degrees apart


def draw(seed: int, what: bytes, *numbers: int) -> int:
    """64 bits that depend on the ``seed``, on ``what`` they are for, and on ``numbers``."""
    packed = struct.pack(f">{len(numbers) + 1}q", seed, *numbers)
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8, person=what).digest())


@dataclass(frozen=True)
class City:
    """``zones`` zones and ``drivers`` drivers; a zone's multiplier lives for ``hold_s`` seconds."""

    seed: int
    zones: int = 200
    drivers: int = 5000
    hold_s: float = HOLD_S

    def multiplier(self, zone: int, seconds: float) -> float:
        """The true surge multiplier of ``zone``, ``seconds`` after the traffic's start. Zones change at times of their own."""
        phase = draw(self.seed, b"phase", zone) / 2**64 * self.hold_s
        epoch = int((seconds + phase) // self.hold_s)
        return round(LEAST + STEP * (draw(self.seed, b"multiplier", zone, epoch) % LEVELS), 1)

    def driver_location(self, number: int, at_ms: int) -> dict[str, Any]:
        """Event ``number`` as a driver's position: any driver, anywhere on the text's diagonal of places."""
        place = draw(self.seed, b"place", number) % GRID * 0.001
        return {
            "driver_id": f"driver-{draw(self.seed, b'driver', number) % self.drivers}",
            "lat": round(CENTRE[0] + place, 4),
            "lng": round(CENTRE[1] + place, 4),
            "timestamp": at_ms,
        }

    def trip_complete(self, number: int, at_ms: int) -> dict[str, Any]:
        """Event ``number`` as a completed trip, around the text's 8.3 km, 22 minutes and 24.50."""
        share = 0.5 + draw(self.seed, b"trip", number) / 2**64
        return {
            "trip_id": f"trip-{number}",
            "fare": round(24.50 * share, 2),
            "distance_km": round(8.3 * share, 1),
            "duration_min": round(22 * share),
            "timestamp": at_ms,
        }

    def surge_update(self, turn: int, seconds: float, at_ms: int) -> dict[str, Any]:
        """The ``turn``-th surge update, ``seconds`` after the traffic's start: zones take turns to tell the truth."""
        zone = turn % self.zones
        multiplier = self.multiplier(zone, seconds)
        score = round(100 * (multiplier - LEAST) / (STEP * (LEVELS - 1)))
        return {"zone_id": f"zone-{zone}", "multiplier": multiplier, "demand_score": score, "timestamp": at_ms}
