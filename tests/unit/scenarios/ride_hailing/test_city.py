"""The city is a function of its seed: the same events, the same truth, however often it is asked."""

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.scenarios.ride_hailing.programs.city import HOLD_S, City

seeds = st.integers(0, 2**62)
seconds = st.floats(0, 10_000)
zones = st.integers(0, 500)


@given(seeds, zones, seconds)
def test_a_multiplier_is_one_of_the_levels_and_lives_for_its_time(seed, zone, at):
    """1.0 to 3.0 in tenths; within one life of a zone's multiplier it changes once at most."""
    city = City(seed)
    seen = [city.multiplier(zone, at + HOLD_S * part / 20) for part in range(20)]
    assert all(1.0 <= value <= 3.0 and math.isclose(value * 10, round(value * 10)) for value in seen)
    assert sum(one != other for one, other in pairwise(seen)) <= 1


def test_zones_and_drivers_are_not_all_the_same():
    """No moment at which all zones change: or accuracy would fall for all of them at once. Drivers are drawn."""
    city = City(1, zones=50, drivers=500)
    changes = [next(t for t in range(1, 121) if city.multiplier(zone, t) != city.multiplier(zone, t - 1)) for zone in range(50)]
    assert len(set(changes)) > 20
    assert len({city.driver_location(number, 0)["driver_id"] for number in range(1000)}) > 350
