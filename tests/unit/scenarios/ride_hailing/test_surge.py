"""Surge from counts: what a demand makes of events, and what a dashboard makes of these."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import paths
from lab.inputs import profile
from lab.kafka import event
from tests.scenarios.ride_hailing.programs import surge
from tests.scenarios.ride_hailing.programs.dashboard import Board
from tests.scenarios.ride_hailing.programs.rides import Taken
from tests.scenarios.ride_hailing.programs.surge import DEMANDS, DRIVER, KINDS, REQUEST, TRIP, ZONES, Demand, Rides

CHAIN = profile.load(paths.PROFILES / "trips-chain.yaml")


@pytest.mark.parametrize(
    ("requests", "drivers", "multiplier"),
    [(0, 1, 1.0), (2, 8, 1.0), (5, 5, 1.5), (1, 1, 1.5), (9, 1, 2.5), (1, 0, 2.5), (3, 7, 1.5), (7, 3, 2.5), (0, 0, None)],
)
def test_the_multiplier_is_that_of_the_nearest_demand(requests, drivers, multiplier):
    """By the share of requests; an edge belongs to the tier above; where nothing is seen it is not the lowest one."""
    assert surge.multiplier(requests, drivers) == multiplier


@given(st.integers(0, 2**62), st.integers(0, ZONES - 1), st.floats(0, 10_000))
def test_a_demand_lives_for_its_time(seed, zone, at):
    """Within one life a zone's demand changes once at most."""
    demand = Demand(seed)
    seen = [demand.tier(zone, at + demand.hold_s * part / 20) for part in range(20)]
    assert sum(one != other for one, other in pairwise(seen)) <= 1


@pytest.fixture(scope="module")
def rides():
    """The events of the chain's profile."""
    return Rides(1, CHAIN)


def test_the_same_seed_gives_the_same_events(rides):
    """However many are taken at a time. A payload says kind and zone, in the room that an event has."""
    again = Rides(1, CHAIN)
    assert (again.kinds.tolist(), again.zones.tolist()) == (rides.kinds.tolist(), rides.zones.tolist())
    ids, whole = Taken(rides.entities), rides.entities(0, 10)
    assert [*ids.take(3).tolist(), *ids.take(7).tolist()] == whole.tolist()
    assert len(set(rides.entities(0, CHAIN.total).tolist())) == CHAIN.total
    assert Rides(2, CHAIN).kinds.tolist() != rides.kinds.tolist()
    content = rides.payloads(7, 1)[0].tobytes()
    assert len(content) == event.PAYLOAD
    assert content.decode().strip() == f'{{"kind":"{KINDS[rides.kinds[7]]}","zone":{rides.zones[7]}}}'


def test_the_share_of_requests_is_the_demand(rides):
    """In each tier within four standard deviations, and a third of all are trips."""
    times = CHAIN.times(0, CHAIN.total)
    demand = Demand(1)
    tiers = np.array([demand.tier(zone, at) for zone, at in zip(rides.zones.tolist(), times.tolist(), strict=True)])
    asked, seen = rides.kinds == KINDS.index(REQUEST), rides.kinds != KINDS.index(TRIP)
    for tier, share in enumerate(DEMANDS):
        there = seen & (tiers == tier)
        assert asked[there].mean() == pytest.approx(share, abs=4 * 0.5 / there.sum() ** 0.5)
    assert seen.mean() == pytest.approx(2 / 3, abs=0.02)


def rows(*given):
    """Rows of the table: (second, zone, kind, partition, offset)."""
    names = ["at", "zone", "kind", "partition", "offset"]
    made = pd.DataFrame([(pd.Timestamp(at, unit="s"), *rest) for at, *rest in given], columns=names)
    return made.assign(seq=made["offset"])


def test_a_board_counts_its_window():
    """Four seconds before the newest row, whichever batch a row came in; trips count for nothing.

    It says how far its rows came: the end offset by partition, the count, the sum of the seqs, and the rows that came late.
    """
    board = Board()
    board.take(rows((100, 0, REQUEST, 0, 0), (100, 1, DRIVER, 0, 1), (100, 2, TRIP, 0, 2)))
    assert board.zones() == {"zone-0": 2.5, "zone-1": 1.0}
    board.take(rows((103, 0, DRIVER, 0, 3)))
    assert board.zones() == {"zone-0": 1.5, "zone-1": 1.0}
    board.take(rows((104.5, 3, REQUEST, 0, 4)))
    assert board.zones() == {"zone-0": 1.0, "zone-3": 2.5}
    board = Board()
    board.take(rows((100, 0, DRIVER, 0, 4), (101, 0, DRIVER, 3, 7)))
    board.take(rows((99, 0, DRIVER, 0, 5), (102, 0, DRIVER, 0, 6)))
    assert board.offsets == {0: 7, 3: 8}
    assert (board.rows, board.seqs, board.late, board.newest) == (4, 22, 1, pd.Timestamp(102, unit="s"))
