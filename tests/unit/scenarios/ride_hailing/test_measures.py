"""The scenario's measures on records written by hand, where every number is known."""

import json

import pandas as pd
import pytest

from lab.errors import NoData
from lab.measure import lateness
from lab.measure.lag import growth, moments
from tests.scenarios.ride_hailing.measure import dashboard, fleet, load
from tests.scenarios.ride_hailing.measure.evening import off_rows
from tests.scenarios.ride_hailing.programs.message import entity
from tests.unit.measure import built
from tests.unit.measure.conftest import report


def ledger(folder, *rows):
    """Events of (partition, offset, entity_id, seconds)."""
    (folder / "ledger" / "events").mkdir(parents=True)
    table = [
        {"partition": part, "offset": offset, "entity_id": one, "seq": number, "ts": int(at * 1e9), "crc": 0}
        for number, (part, offset, one, at) in enumerate(rows)
    ]
    pd.DataFrame(table).to_parquet(folder / "ledger" / "events" / "part.parquet")


def produced(t, messages):
    """A bin of 0.2 s of what was produced."""
    return {"bin_s": 0.2, "t": float(t), "series": "produced", "pod": "", "messages": float(messages)}


@pytest.fixture
def evening(tmp_path):
    """Baseline from 100 s, traffic from 110 at a scale of 30; lag grows by 50/s."""
    content, told = built.profile(100, 30, (0, "baseline"), (10, "spike"), (20, "drain"))
    return built.record(
        tmp_path,
        inputs={**content, "scale": {"time": 30}},
        times={"settling": 90, "ended": 135},
        group_events=told,
        transitions=built.replicas((95, 2, 2), (112, 7, 2), (114, 7, 7)),
        samples=built.lags({100: 10, 110: 10, 120: 510, 130: 10}),
        rates=[produced(108 + n * 0.2, 80 if n < 10 else 160) for n in range(60)],
    )


def test_moments_are_in_real_time(evening):
    """T+60 at time / 30 is two seconds later as seen; lag is stretched by the same factor."""
    start, later = moments(evening, [0, 60])
    assert (start.lag.value, start.wanted.value, start.ready.value) == (10, 2, 2)
    assert start.rate.value == pytest.approx(400)
    assert later.rate.value == pytest.approx(800)
    assert later.lag.value == pytest.approx(110)
    assert later.real_lag.value == pytest.approx(3300)
    assert (later.wanted.value, later.ready.value) == (7, 2)


def test_what_users_make_is_held_against_the_profile(tmp_path):
    """Ten seconds at one event a second: two of them came in the phase, and none before it counts."""
    content, told = built.profile(100, 30, (0, "baseline"), (10, "spike"), (20, "drain"))
    ledger(tmp_path, (0, 0, 1, 105), (0, 1, 1, 110), (0, 2, 1, 119), (0, 3, 1, 125))
    record = built.record(tmp_path, inputs=content, group_events=told)
    assert load.offered(record, "spike").value == pytest.approx(0.2)
    assert "no phase burst" in load.offered(record, "burst").why


def test_replicas_are_held_against_rows(evening):
    """The row that is furthest off counts; one after the record's end is no data."""
    assert off_rows(evening, [(0, 2), (60, 15)]).value == 8
    assert off_rows(evening, [(0, 2), (60, 7)]).value == 0
    assert "asked for 800 s" in off_rows(evening, [(0, 2), (800, 2)]).why


def test_a_moment_after_the_record_is_no_data(evening):
    """It is not the last one there is, and takes no other moment with it."""
    start, later = moments(evening, [0, 800])
    assert (start.lag.value, later.lag.value) == (10, None)
    assert "asked for 800 s" in later.lag.why


def test_growth_is_the_slope_of_lag(evening):
    """Two samples are too few to tell."""
    assert "2 samples" in growth(evening, "spike").why
    assert "no phase burst" in growth(evening, "burst").why


def test_growth_by_least_squares(tmp_path):
    """50 messages/s; of a lag that rises and falls none over all of it, and the fall over its last half."""
    content, told = built.profile(100, 30, (0, "baseline"), (10, "spike"), (20, "drain"))
    lag = {t: 50 * (t - 110) for t in range(110, 121)}
    falling = {t: 50 * min(t - 110, 120 - t) for t in range(110, 121)}
    record = built.record(tmp_path, inputs=content, group_events=told, samples=built.lags(lag))
    assert growth(record, "spike").value == pytest.approx(50)
    (tmp_path / "fell").mkdir()
    record = built.record(tmp_path / "fell", inputs=content, group_events=told, samples=built.lags(falling))
    assert growth(record, "spike").value == pytest.approx(0)
    assert growth(record, "spike", last=0.5).value == pytest.approx(-50)


def test_the_first_event_waited_until_its_own_receipt(tmp_path):
    """3 s, though an event that came later was processed sooner."""
    ledger(tmp_path, (0, 0, 1, 10.0), (0, 1, 1, 11.0), (1, 0, 1, 12.0))
    receipts = [built.receipt("a", 12.9, 13.0, 2) | {"first": 0, "last": 1, "checksum": 0}]
    receipts += [built.receipt("a", 12.4, 12.5, 1, 1) | {"first": 0, "last": 0, "checksum": 0}]
    record = built.record(tmp_path, times={"settling": 0, "ended": 18}, receipts=receipts)
    assert lateness.first(record).value == lateness.oldest(record).value == pytest.approx(3.0)


def batch(t, number, offsets, zones, **more):
    """A report of a batch that was available at ``t``."""
    return report(t, "analytics", "table", batch=number, available=t, rows=1, offsets=offsets, zones=zones, batch_s=0.5, **more)


@pytest.fixture
def board(tmp_path):
    """Traffic from 110 to 130; two events a zone, tables at 112 and 121; one event never came into it."""
    content, told = built.profile(100, 30, (0, "baseline"), (10, "spike"))
    told += [batch(112, 0, {"0": 2}, {"zone-0": 1.0}), batch(121, 1, {"0": 3, "1": 1}, {"zone-0": 1.0, "zone-1": 2.0})]
    zone = [entity("surge-update", number) for number in range(2)]
    events = [(0, 0, zone[0], 105), (0, 1, zone[0], 110), (0, 2, zone[1], 119)]
    ledger(tmp_path, *events, (1, 0, zone[1], 120), (1, 1, 5, 124), (1, 2, 5, 126))
    return built.record(tmp_path, inputs=content, group_events=told)


def test_staleness_is_event_time_to_the_batch_that_covers_it(board):
    """2, 2 and 1 s; the event of the baseline and that of the last 5 s are not judged, one that never came is counted."""
    found = dashboard.staleness(board)
    assert (found.median.value, found.worst.value, found.left_out.value) == (2.0, 2.0, 1)


def test_accuracy_against_the_truth(board):
    """Zone 0 is true from 112 on, zone 1 from 121, of 20 s each: 27 of 40 s; without delay it were 20 + 11."""

    def update(one):
        return one - entity("surge-update", 0) if one >= entity("surge-update", 0) else None

    found = dashboard.accuracy(board, 2, lambda zone, _: 1.0 + zone, update)
    assert found.table.value == pytest.approx(100 * 27 / 40)
    assert found.at_best.value == pytest.approx(100 * 31 / 40)
    whole = dashboard.accuracy(board, 2, lambda zone, _: 1.0 + zone, update, "spike")
    assert whole == found  # the only phase but the baseline
    baseline = dashboard.accuracy(board, 2, lambda zone, _: 1.0 + zone, update, "baseline")
    assert (baseline.table.value, baseline.at_best.value) == (0, pytest.approx(100 * 5 / 20))
    assert "no phase drain" in dashboard.staleness(board, "drain").p99.why
    wrong = dashboard.accuracy(board, 2, lambda _zone, _t: 3.0, update)
    assert wrong.table.value == 0


def test_without_a_batch_there_is_no_staleness(tmp_path):
    """No data, never a pass."""
    content, told = built.profile(100, 30, (0, "baseline"), (10, "spike"))
    assert "no batch" in dashboard.staleness(built.record(tmp_path, inputs=content, group_events=told)).left_out.why


@pytest.mark.parametrize(("events", "uncounted"), [((2, 4), 0), ((2, 3), 1), ((1, 4), 1), ((2, 6), -2)])
def test_what_is_covered_is_counted(tmp_path, events, uncounted):
    """Two and then four events are covered: one that the watermark dropped is missing, one counted twice is too many."""
    first = batch(112, 0, {"0": 2}, {}, events=events[0])
    second = batch(121, 1, {"0": 3, "1": 1}, {}, events=events[1])
    record = built.record(tmp_path, group_events=[first, second])
    assert dashboard.uncounted(record).value == uncounted


def test_a_table_that_did_not_say_its_events_is_no_data(tmp_path):
    """Its offsets alone don't tell what it counts."""
    found = dashboard.uncounted(built.record(tmp_path, group_events=[batch(112, 0, {"0": 2}, {})]))
    assert "how many events" in found.why


STATS = (
    "Type,Name,Request Count,Failure Count,Median Response Time,Requests/s,50%,99%\n"
    "POST,/api/events/trip-complete,30,0,8,3,8,20\nPOST,/api/events/surge-update,10,1,8,1,9,30\n,Aggregated,40,1,8,4,8,25\n"
)


def test_load_is_locusts(tmp_path):
    """Its aggregated row, its shares and its most users; a file that came in parts is one."""
    history = "Timestamp,User Count,Type,Name\n1,5,,Aggregated\n2,18,,Aggregated\n"
    told = [
        *(report(1, "driver", "csv", name="stats", text=text) for text in (STATS[:70], STATS[70:])),
        report(1, "driver", "csv", name="stats_history", text=history),
    ]
    record = built.record(tmp_path, group_events=told)
    whole = load.Load(requests=40, failures=1, rate=4.0, median_ms=8.0, p99_ms=25.0, users=18)
    assert load.load(record) == whole
    assert load.shares(record) == {"/api/events/trip-complete": 0.75, "/api/events/surge-update": 0.25}
    assert "/api/match" in load.load(record, "/api/match").failures.why
    weights = {"/api/events/trip-complete": 3, "/api/events/surge-update": 1, "/api/events/none": 1}
    assert load.off_weight(record, weights).value == pytest.approx(20)  # none of it, and a fifth was due
    with pytest.raises(NoData, match="no Locust failures"):
        load.csv(record, "failures")


def hpa(t, current, wanted, average, *conditions):
    """A watch event of an HPA on an external metric."""
    metrics = [{"type": "External", "external": {"metric": {"name": "s0"}, "current": {"averageValue": average}}}]
    status = {"currentReplicas": current, "desiredReplicas": wanted, "currentMetrics": metrics}
    status["conditions"] = [dict(zip(("type", "status", "reason", "message"), one, strict=True)) for one in conditions]
    target = {"type": "AverageValue", "averageValue": "100"}
    spec = {"minReplicas": 3, "maxReplicas": 30}
    spec["metrics"] = [{"type": "External", "external": {"metric": {"name": "s0"}, "target": target}}]
    item = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}}
    item |= {"spec": spec, "status": status}
    return {"t": float(t), "kind": "HorizontalPodAutoscaler", "name": "h", "event": "MODIFIED", "object": json.dumps(item)}


def test_what_an_hpa_reported_beside_the_formula(tmp_path):
    """490 pending over 3 pods ask for 5; within tolerance the replicas stay; the bounds hold."""
    told = [hpa(1, 3, 5, "163334m"), hpa(2, 5, 5, "104"), hpa(3, 5, 3, "2"), hpa(4, 0, 3, "2")]
    found = fleet.statuses(built.record(tmp_path, transitions=told), "h")
    assert [(one.current, one.wanted, one.formula) for one in found] == [(3, 5, 5), (5, 5, 5), (5, 3, 3)]
    assert found[0].total == pytest.approx(490, abs=0.01)


def test_an_hpa_at_rest_is_that_of_the_last_third(tmp_path):
    """From 120 to 130 s: the last replicas, the mean of what was pending, and the furthest off the formula."""
    content, told = built.profile(100, 30, (0, "baseline"), (15, "spike"))
    rows = [hpa(124, 3, 3, "400"), hpa(126, 5, 6, "100"), hpa(129, 5, 5, "96"), hpa(131, 5, 3, "2")]
    record = built.record(tmp_path, inputs=content, group_events=told, transitions=rows)
    found = fleet.at_rest(record, "h", "spike")
    assert (found.replicas.value, found.total.value, found.off_formula.value) == (5, 490, 1)
    assert "other reported nothing" in fleet.at_rest(record, "other", "spike").replicas.why


def test_the_replicas_of_another_deployment(tmp_path):
    """The most it was asked for, and how often that changed."""
    rows = built.replicas((1, 2, 0), (2, 2, 2), (3, 4, 2), (4, 3, 3))
    record = built.record(tmp_path, transitions=rows)
    found = fleet.replicas(record, "consumer")
    assert (found.most.value, found.changes.value) == (4, 2)
    assert "other Deployment was never seen" in fleet.replicas(record, "other").most.why


def test_conditions_are_told_once(tmp_path):
    """In the API's own words."""
    one = ("ScalingActive", "False", "AmbiguousSelector", "pods by selector app=x are controlled by multiple HPAs")
    record = built.record(tmp_path, transitions=[hpa(1, 2, 2, "1", one), hpa(2, 2, 2, "1", one)])
    assert fleet.conditions(record, "h") == [one]
    assert fleet.ambiguous(record, ["h", "other"]).value == 1


def test_pod_minutes_of_another_deployment(tmp_path):
    """From the profile's start to gone, or to the trial's end."""
    rows = [built.pod(0, "x", "ADDED"), built.pod(70, "x", "DELETED"), built.pod(40, "y", "ADDED")]
    told = [report(5, "producer", "profile", start=10.0)]
    record = built.record(tmp_path, times={"settling": 0, "ended": 100}, transitions=rows, group_events=told)
    assert fleet.pod_minutes(record, "consumer").value == pytest.approx(2.0)
    assert "no pod of other" in fleet.pod_minutes(record, "other").why
