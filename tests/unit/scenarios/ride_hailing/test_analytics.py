"""The dashboard's own streaming query, by a real Spark, on events as the ingestion service makes them."""

import pyarrow.parquet as pq
import pytest

from tests.scenarios.ride_hailing.programs import analytics, message
from tests.scenarios.ride_hailing.programs.city import DRIVER, SURGE, TRIP
from tests.unit.scenarios.ride_hailing.streams import Topic, configured

T0 = 1_700_000_000_000  # a whole multiple of 10 s


def made(kind, at, **body):
    """An event ``at`` ms after T0."""
    return message.read(kind, body | {"timestamp": T0 + at}, "0").value


def surge(zone, multiplier, at):
    """A surge update."""
    return made(SURGE, at, zone_id=f"zone-{zone}", multiplier=multiplier, demand_score=50)


def trip(fare, at):
    """A completed trip."""
    return made(TRIP, at, trip_id="trip-1", fare=fare, distance_km=8.3, duration_min=22)


def driver(lat, at):
    """A driver's position."""
    return made(DRIVER, at, driver_id="driver-1", lat=lat, lng=-74.0)


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
def streamed(spark, tmp_path_factory):
    """(the dashboard, its folder) after EVENTS in two micro-batches, half a minute's traffic, and an event that is too late."""
    folder = tmp_path_factory.mktemp("analytics")
    topic, table = Topic(folder / "topic"), folder / "table"
    table.mkdir()
    topic.add(*EVENTS[:5])
    topic.add(*EVENTS[5:], surge(9, 1.2, 60_000))
    topic.add(surge(9, 1.3, 61_000))
    topic.add(surge(1, 9.9, 13_000))
    board, session = analytics.Dashboard(table), spark()
    with configured(session, {"spark.sql.shuffle.partitions": str(analytics.SHUFFLE_PARTITIONS)}):
        rows = analytics.windows(topic.read(session), 10, 30)
        writer = rows.writeStream.outputMode("update").foreachBatch(board.write)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
        assert writer.start().awaitTermination(300)
    return board, table


@pytest.mark.services
def test_rows_are_windows_by_kind_and_place(streamed):
    """Counts, a zone's latest multiplier by event time, the mean fare, and the newest event, by the newest batch of each.

    A batch is a file. The dashboard's multipliers are those of each zone's newest window; what came later than the watermark
    is in none.
    """
    board, table = streamed
    rows = [row for file in sorted(table.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    newest = {(row["kind"], row["window_ms"] - T0, row["place"]): row for row in rows}
    found = {key: (row["events"], row["value"], row["newest_ms"] - T0) for key, row in newest.items()}
    assert found == {
        (SURGE, 0, "zone-1"): (2, 1.5, 9_000),
        (SURGE, 10_000, "zone-1"): (1, 3.0, 12_000),
        (SURGE, 0, "zone-2"): (1, 1.1, 0),
        (SURGE, 60_000, "zone-9"): (2, 1.3, 61_000),
        (TRIP, 0, "city"): (2, 20.0, 9_999),
        (DRIVER, 0, "40.71,-74.00"): (2, None, 6_000),
    }
    assert len(board.available) == len(list(table.glob("*.parquet"))) >= 4
    at, _, events, zones = board.available[max(board.available)]
    assert (at > 0, events, zones) == (True, len(EVENTS) + 2, {"zone-1": 3.0, "zone-2": 1.1, "zone-9": 1.3})


def test_the_newest_window_of_a_zone_counts():
    """Whatever the order of the rows."""
    table = {(SURGE, 20, "zone-1"): {"value": 2.0}, (SURGE, 10, "zone-1"): {"value": 1.0}, (TRIP, 30, "city"): {"value": 9.0}}
    assert analytics.fold(table) == {"zone-1": 2.0}
