"""The dashboard's rows, by a real Spark, of events as the ingestion service makes them."""

import pyarrow.parquet as pq
import pytest

from tests.scenarios.ride_hailing.programs import analytics, message
from tests.scenarios.ride_hailing.programs.city import DRIVER, SURGE, TRIP

T0 = 1_700_000_000_000  # a whole multiple of 10 s


def surge(zone, multiplier, at):
    """A surge update ``at`` ms after T0."""
    body = {"zone_id": f"zone-{zone}", "multiplier": multiplier, "demand_score": 50, "timestamp": T0 + at}
    return message.read(SURGE, body, "0").value


def trip(fare, at):
    """A completed trip."""
    body = {"trip_id": "trip-1", "fare": fare, "distance_km": 8.3, "duration_min": 22, "timestamp": T0 + at}
    return message.read(TRIP, body, "0").value


def driver(lat, at):
    """A driver's position."""
    return message.read(DRIVER, {"driver_id": "driver-1", "lat": lat, "lng": -74.0, "timestamp": T0 + at}, "0").value


EVENTS = [
    surge(1, 1.5, 9_000),
    surge(1, 2.0, 1_000),  # older, though it came later
    surge(1, 3.0, 12_000),
    surge(2, 1.1, 0),
    trip(10.0, 100),
    trip(30.0, 9_999),
    driver(40.712, 5_000),
    driver(40.714, 6_000),
]


@pytest.fixture(scope="module")
def rows(spark):
    """The table of EVENTS in windows of 10 s."""
    session = spark()
    records = session.createDataFrame([(bytearray(value),) for value in EVENTS], "value binary")
    return analytics.windows(records, 10, 30)


@pytest.mark.services
def test_rows_are_windows_by_kind_and_place(rows):
    """Counts, a zone's latest multiplier by event time, the mean fare, and the newest event."""
    found = {(row.kind, row.window_ms - T0, row.place): (row.events, row.value, row.newest_ms - T0) for row in rows.collect()}
    assert found == {
        (SURGE, 0, "zone-1"): (2, 1.5, 9_000),
        (SURGE, 10_000, "zone-1"): (1, 3.0, 12_000),
        (SURGE, 0, "zone-2"): (1, 1.1, 0),
        (TRIP, 0, "city"): (2, 20.0, 9_999),
        (DRIVER, 0, "40.71,-74.00"): (2, None, 6_000),
    }


@pytest.mark.services
def test_a_batch_is_a_file_and_a_reader_sees_it(rows, tmp_path):
    """The file holds the rows with their batch; the dashboard's multipliers are those of each zone's newest window."""
    board = analytics.Dashboard(tmp_path)
    board.write(rows, 7)
    assert pq.read_table(tmp_path / "batch-00000007.parquet").num_rows == 5
    at, count, events, zones = board.available[7]
    assert (at > 0, count, events, zones) == (True, 5, len(EVENTS), {"zone-1": 3.0, "zone-2": 1.1})


def test_the_newest_window_of_a_zone_counts():
    """Whatever the order of the rows."""
    table = {
        (SURGE, 20, "zone-1"): {"value": 2.0},
        (SURGE, 10, "zone-1"): {"value": 1.0},
        (TRIP, 30, "city"): {"value": 9.0},
    }
    assert analytics.fold(table) == {"zone-1": 2.0}
