"""Surge as it is computed: a zone's multiplier by the rides asked for and the drivers seen there. Pure.

A zone's *demand* is the share of its events that ask for a ride; the others are drivers who say where they are. It lives
``HOLD_S`` seconds, by the seed. A dashboard counts a window of ``WINDOW_S`` seconds, and takes that share's tier.

Why these numbers. The next tier is 0.2 off: three standard deviations (0.5 / sqrt(n)) from n = 56 on. Of 140 events/s
15.6 are in each of six zones: 56 take 3.6 s, so the window has 4 s. A change shows after 2.3 s, and leads to
another tier two times of three. A dashboard that is 3 s late is wrong for (3 + 2.3) x 2/3 of a life: less than 5 % from 71 s
on, so a demand lives 75 s.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lab.inputs.profile import Profile
from lab.kafka import event
from tests.scenarios.ride_hailing.programs.city import draw

REQUEST, DRIVER, TRIP = KINDS = ("ride-request", "driver-location", "trip-complete")
DEMANDS = (0.1, 0.5, 0.9)  # the share of a zone's requests
MULTIPLIERS = (1.0, 1.5, 2.5)  # of each demand
EDGES = (0.3, 0.7)  # between the demands
ZONES, HOLD_S, WINDOW_S = 6, 75.0, 4.0
TRIPS = 1 / 3  # of all events, as in the text: neither requests nor drivers
BLOCK = 10**12  # ids of one kind


def multiplier(requests: float, drivers: float) -> float | None:
    """The multiplier of a zone with so many requests and drivers in the window; None without any."""
    seen = requests + drivers
    return MULTIPLIERS[int(np.searchsorted(EDGES, requests / seen, side="right"))] if seen else None


@dataclass(frozen=True)
class Demand:
    """The demand of each zone over time, as the seed decides it. Times are s after the profile's start."""

    seed: int
    zones: int = ZONES
    hold_s: float = HOLD_S

    def tier(self, zone: int, seconds: float) -> int:
        """Which of DEMANDS ``zone`` has. Zones change at times of their own."""
        phase = draw(self.seed, b"phase", zone) / 2**64 * self.hold_s
        return draw(self.seed, b"demand", zone, int((seconds + phase) // self.hold_s)) % len(DEMANDS)

    def multiplier(self, zone: int, seconds: float) -> float:
        """The true multiplier of ``zone``."""
        return MULTIPLIERS[self.tier(zone, seconds)]


class Rides:
    """The events of a profile by their seq: each is a trip, a driver or a request in some zone, by the demand at its due time.

    ``kinds`` are indexes of KINDS; ``zones`` are zones. They depend on the seed and the profile alone.
    """

    def __init__(self, seed: int, profile: Profile) -> None:
        demand, times = Demand(seed), profile.times(0, profile.total)
        kind_at, zone_at, share_at = np.random.default_rng([seed, 2]).random((3, profile.total))
        self.zones: npt.NDArray[np.int64] = (zone_at * demand.zones).astype(np.int64)
        tiers = [demand.tier(zone, at) for zone, at in zip(self.zones.tolist(), times.tolist(), strict=True)]
        asked = share_at < np.array(DEMANDS)[tiers]
        trip, request, driver = (KINDS.index(kind) for kind in (TRIP, REQUEST, DRIVER))
        self.kinds: npt.NDArray[np.int64] = np.where(kind_at < TRIPS, trip, np.where(asked, request, driver))

    def entities(self, first: int, count: int) -> npt.NDArray[np.uint64]:
        """The entity ids of ``count`` events: a ride or a driver is an entity of its own."""
        seqs = np.arange(first, first + count)
        return ((self.kinds[first : first + count] + 1) * BLOCK + seqs).astype(np.uint64)

    def payloads(self, first: int, count: int) -> npt.NDArray[np.void]:
        """Their payloads."""
        rows = zip(self.kinds[first : first + count].tolist(), self.zones[first : first + count].tolist(), strict=True)
        return np.array([payload(KINDS[kind], zone) for kind, zone in rows], dtype=f"V{event.PAYLOAD}")


def payload(kind: str, zone: int) -> bytes:
    """What an event says as its payload: JSON, filled up with spaces."""
    return json.dumps({"kind": kind, "zone": zone}, separators=(",", ":")).encode().ljust(event.PAYLOAD)
