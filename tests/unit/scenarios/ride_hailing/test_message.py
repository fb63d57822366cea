"""What the city makes is a function of its seed; what ingestion takes of it is an event of 256 bytes, else refused by field."""

import json
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import InputError
from lab.kafka import event
from tests.scenarios.ride_hailing.programs import message
from tests.scenarios.ride_hailing.programs.city import DRIVER, HOLD_S, SURGE, TRIP, WEIGHTS, City

BODIES = {
    DRIVER: {"driver_id": "driver-7", "lat": 40.7, "lng": -74.0, "timestamp": 1},
    TRIP: {"trip_id": "trip-9", "fare": 24.5, "distance_km": 8.3, "duration_min": 22, "timestamp": 1},
    SURGE: {"zone_id": "zone-3", "multiplier": 1.8, "demand_score": 85, "timestamp": 1},
}


@given(
    st.integers(0, 2**62),
    st.integers(0, 10**11),
    st.floats(0, 1e5),
    st.integers(0, message.MOST_MS),
    st.sampled_from([*WEIGHTS]),
)
def test_every_event_of_the_city_is_taken(seed, number, at, at_ms, kind):
    """Whatever the generator makes is an event: its id, number and time in the header, its fields in the payload."""
    city = City(seed)
    bodies = {DRIVER: city.driver_location(number, at_ms), TRIP: city.trip_complete(number, at_ms)}
    body = (bodies | {SURGE: city.surge_update(number, at, at_ms)})[kind]
    assert kind != SURGE or body["zone_id"] == f"zone-{number % city.zones}"  # zones take turns
    made = message.read(kind, body, str(number))
    decoded = event.decode(made.value)
    assert (decoded.seq, decoded.ts) == (number, at_ms * 1_000_000)
    assert made.key == event.KEY.pack(decoded.entity_id)
    assert message.named(decoded.entity_id)[0] == kind
    said = json.loads(decoded.payload)
    assert said.pop("kind") == kind
    assert said == {name: value for name, value in body.items() if name != "timestamp"}


@pytest.mark.parametrize(
    ("kind", "change", "named"),
    [
        (DRIVER, {"lat": 91}, "lat"),
        (DRIVER, {"lat": "40"}, "lat"),
        (DRIVER, {"lng": float("nan")}, "lng"),
        (DRIVER, {"driver_id": "trip-7"}, "driver_id"),
        (DRIVER, {"driver_id": 7}, "driver_id"),
        (DRIVER, {"driver_id": "driver-1234567890123"}, "driver_id"),
        (DRIVER, {"timestamp": -1}, "timestamp"),
        (DRIVER, {"timestamp": 9_223_372_036_855}, "timestamp"),
        (DRIVER, {"timestamp": None}, "timestamp"),
        (DRIVER, {"speed": 3}, "speed"),
        (TRIP, {"fare": -1}, "fare"),
        (SURGE, {"multiplier": 0.5}, "multiplier"),
        (SURGE, {"demand_score": True}, "demand_score"),
    ],
)
def test_a_field_that_cannot_be_used_is_named(kind, change, named):
    """The path, the field, its value and what is allowed, in one line."""
    with pytest.raises(InputError) as refused:
        message.read(kind, BODIES[kind] | change, "1")
    assert refused.value.field == named
    assert str(refused.value).startswith(f"/api/events/{kind}: {named}: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("seq", [None, "", "-1", "1.5", str(2**63), "x"])
def test_an_event_without_a_number_is_refused(seq):
    """It could not be told from its repetition; so is a body that is no object, and a kind that there is not."""
    wrong = [(DRIVER, BODIES[DRIVER], seq, "Event-Seq"), ("payment", {}, "1", "one of driver-location")]
    for kind, body, number, line in [*wrong, *((DRIVER, body, "1", "a JSON object") for body in (None, [], "x", 3))]:
        with pytest.raises(InputError, match=line):
            message.read(kind, body, number)


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
