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
from tests.unit.measure import built, whole
from tests.unit.measure.conftest import report


def ledger(folder, *rows):
    """Events of (partition, offset, entity_id, seconds)."""
    (folder / "ledger" / "events").mkdir(parents=True)
    names = ("partition", "offset", "entity_id", "ts")
    table = pd.DataFrame([(*row, round(at * 1e9)) for *row, at in rows], columns=names)
    table.assign(seq=range(len(rows)), crc=0).to_parquet(folder / "ledger" / "events" / "part.parquet")


def phased(folder, *phases, **more):
    """A record whose profile of 30 s began at 100 s with a baseline, and went on with these phases (at, name)."""
    content, told = built.profile(100, 30, (0, "baseline"), *phases)
    more["inputs"] = content | more.get("inputs", {})
    more["group_events"] = [*told, *more.get("group_events", ())]
    return built.record(folder, **more)


PHASES = ((10, "spike"), (20, "drain"))


@pytest.fixture
def evening(tmp_path):
    """Baseline from 100 s, traffic from 110 at a scale of 30; lag grows by 50/s."""
    bins = [(108 + n * 0.2, 80.0 if n < 10 else 160.0) for n in range(60)]
    return phased(
        tmp_path,
        *PHASES,
        inputs={"scale": {"time": 30}},
        times={"settling": 90, "ended": 135},
        transitions=built.replicas((95, 2, 2), (112, 7, 2), (114, 7, 7)),
        samples=built.lags({100: 10, 110: 10, 120: 510, 130: 10}),
        rates=[{"bin_s": 0.2, "t": t, "series": "produced", "pod": "", "messages": messages} for t, messages in bins],
    )


def test_moments_are_in_real_time(evening):
    """T+60 at time / 30 is two seconds later as seen; lag is stretched by the same factor. Then the record is over.

    Of rows that replicas are held against the one that is furthest off counts.
    """
    start, later, after = moments(evening, [0, 60, 800])
    assert (start.lag.value, start.wanted.value, start.ready.value) == (10, 2, 2)
    assert (start.rate.value, later.rate.value) == (pytest.approx(400), pytest.approx(800))
    assert (later.lag.value, later.real_lag.value) == (pytest.approx(110), pytest.approx(3300))
    assert (later.wanted.value, later.ready.value, after.lag.value) == (7, 2, None)
    assert [off_rows(evening, [(0, 2), (60, wanted)]).value for wanted in (15, 7)] == [8, 0]
    for measured in (after.lag, off_rows(evening, [(0, 2), (800, 2)])):
        assert "asked for 800 s" in measured.why


def test_what_users_make_is_held_against_the_profile(tmp_path):
    """Ten seconds at one event a second: two of them came in the phase, and none before it counts."""
    ledger(tmp_path, (0, 0, 1, 105), (0, 1, 1, 110), (0, 2, 1, 119), (0, 3, 1, 125))
    record = phased(tmp_path, *PHASES)
    assert load.offered(record, "spike").value == pytest.approx(0.2)
    assert "no phase burst" in load.offered(record, "burst").why


def test_growth_by_least_squares(tmp_path, evening):
    """50 messages/s; of a lag that rises and falls none over all of it, and the fall over its last half."""
    rising = {t: 50 * (t - 110) for t in range(110, 121)}
    falling = {t: 50 * min(t - 110, 120 - t) for t in rising}
    steady, fell = (phased(tmp_path / name, *PHASES, samples=built.lags(lag)) for name, lag in (("a", rising), ("b", falling)))
    assert growth(steady, "spike").value == pytest.approx(50)
    assert growth(fell, "spike").value == pytest.approx(0)
    assert growth(fell, "spike", last=0.5).value == pytest.approx(-50)
    assert "2 samples" in growth(evening, "spike").why
    assert "no phase burst" in growth(evening, "burst").why


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
    told = [batch(112, 0, {"0": 2}, {"zone-0": 1.0}), batch(121, 1, {"0": 3, "1": 1}, {"zone-0": 1.0, "zone-1": 2.0})]
    zone = [entity("surge-update", number) for number in range(2)]
    events = [(0, 0, zone[0], 105), (0, 1, zone[0], 110), (0, 2, zone[1], 119)]
    ledger(tmp_path, *events, (1, 0, zone[1], 120), (1, 1, 5, 124), (1, 2, 5, 126))
    return phased(tmp_path, PHASES[0], group_events=told)


def test_staleness_is_event_time_to_the_batch_that_covers_it(board, tmp_path):
    """2, 2 and 1 s; the event of the baseline and that of the last 5 s are not judged, one that never came is counted."""
    found = dashboard.staleness(board)
    assert (found.median.value, found.worst.value, found.left_out.value) == (2.0, 2.0, 1)
    assert "no phase drain" in dashboard.staleness(board, "drain").p99.why
    assert "no batch" in dashboard.staleness(phased(tmp_path / "none", PHASES[0])).left_out.why


def test_accuracy_against_the_truth(board):
    """Zone 0 is true from 112 on, zone 1 from 121, of 20 s each: 27 of 40 s; without delay it were 20 + 11."""

    def update(one):
        return one - entity("surge-update", 0) if one >= entity("surge-update", 0) else None

    def accuracy(*phase, truth=lambda zone, _: 1.0 + zone):
        return dashboard.accuracy(board, 2, truth, update, *phase)

    found = accuracy()
    assert found.table.value == pytest.approx(100 * 27 / 40)
    assert found.at_best.value == pytest.approx(100 * 31 / 40)
    assert accuracy("spike") == found  # the only phase but the baseline
    baseline = accuracy("baseline")
    assert (baseline.table.value, baseline.at_best.value) == (0, pytest.approx(100 * 5 / 20))
    assert accuracy(truth=lambda _zone, _t: 3.0).table.value == 0


@pytest.mark.parametrize(("events", "uncounted"), [((2, 4), 0), ((2, 3), 1), ((1, 4), 1), ((2, 6), -2)])
def test_what_is_covered_is_counted(tmp_path, events, uncounted):
    """Two and then four events are covered: one that the watermark dropped is missing, one counted twice is too many."""
    first = batch(112, 0, {"0": 2}, {}, events=events[0])
    second = batch(121, 1, {"0": 3, "1": 1}, {}, events=events[1])
    assert dashboard.uncounted(built.record(tmp_path, group_events=[first, second])).value == uncounted
    silent = built.record(tmp_path / "silent", group_events=[batch(112, 0, {"0": 2}, {})])
    assert "how many events" in dashboard.uncounted(silent).why  # its offsets alone don't tell


STATS = (
    "Type,Name,Request Count,Failure Count,Median Response Time,Requests/s,50%,99%\n"
    "POST,/api/events/trip-complete,30,0,8,3,8,20\nPOST,/api/events/surge-update,10,1,8,1,9,30\n,Aggregated,40,1,8,4,8,25\n"
)


def test_load_is_locusts(tmp_path):
    """Its aggregated row, its shares and its most users; a file that came in parts is one."""
    history = "Timestamp,User Count,Type,Name\n1,5,,Aggregated\n2,18,,Aggregated\n"
    told = [report(1, "driver", "csv", name="stats", text=text) for text in (STATS[:70], STATS[70:])]
    told.append(report(1, "driver", "csv", name="stats_history", text=history))
    record = built.record(tmp_path, group_events=told)
    every = load.Load(requests=40, failures=1, rate=4.0, median_ms=8.0, p99_ms=25.0, users=18)
    assert load.load(record) == every
    assert load.shares(record) == {"/api/events/trip-complete": 0.75, "/api/events/surge-update": 0.25}
    assert "/api/match" in load.load(record, "/api/match").failures.why
    weights = {"/api/events/trip-complete": 3, "/api/events/surge-update": 1, "/api/events/none": 1}
    assert load.off_weight(record, weights).value == pytest.approx(20)  # none of it, and a fifth was due
    with pytest.raises(NoData, match="no Locust failures"):
        load.csv(record, "failures")


def hpa(t, current, wanted, average, *conditions):
    """A watch event of an HPA on an external metric."""
    name, target = {"metric": {"name": "s0"}}, {"type": "AverageValue", "averageValue": "100"}
    metrics = [{"type": "External", "external": name | {"current": {"averageValue": average}}}]
    status = {"currentReplicas": current, "desiredReplicas": wanted, "currentMetrics": metrics}
    status["conditions"] = [dict(zip(("type", "status", "reason", "message"), one, strict=True)) for one in conditions]
    item = whole.hpa(3, 30) | {"status": status}
    item["spec"]["metrics"] = [{"type": "External", "external": name | {"target": target}}]
    return {"t": float(t), "kind": "HorizontalPodAutoscaler", "name": "h", "event": "MODIFIED", "object": json.dumps(item)}


def test_what_an_hpa_reported_beside_the_formula(tmp_path):
    """490 pending over 3 pods ask for 5; within tolerance the replicas stay; the bounds hold.

    At rest, from 120 to 130 s: the last replicas, the mean of what was pending, and the furthest off the formula.
    Conditions are told once, in the API's own words.
    """
    told = [hpa(1, 3, 5, "163334m"), hpa(2, 5, 5, "104"), hpa(3, 5, 3, "2"), hpa(4, 0, 3, "2")]
    found = fleet.statuses(built.record(tmp_path, transitions=told), "h")
    assert [(one.current, one.wanted, one.formula) for one in found] == [(3, 5, 5), (5, 5, 5), (5, 3, 3)]
    assert found[0].total == pytest.approx(490, abs=0.01)
    rows = [hpa(124, 3, 3, "400"), hpa(126, 5, 6, "100"), hpa(129, 5, 5, "96"), hpa(131, 5, 3, "2")]
    record = phased(tmp_path / "rest", (15, "spike"), transitions=rows)
    rest = fleet.at_rest(record, "h", "spike")
    assert (rest.replicas.value, rest.total.value, rest.off_formula.value) == (5, 490, 1)
    one = ("ScalingActive", "False", "AmbiguousSelector", "pods by selector app=x are controlled by multiple HPAs")
    told = built.record(tmp_path / "conditions", transitions=[hpa(1, 2, 2, "1", one), hpa(2, 2, 2, "1", one)])
    assert fleet.conditions(told, "h") == [one]
    assert fleet.ambiguous(told, ["h", "other"]).value == 1
    assert "other reported nothing" in fleet.at_rest(record, "other", "spike").replicas.why


def test_another_deployment_has_replicas_and_pod_minutes(tmp_path):
    """The most it was asked for, how often that changed, and its pods from the profile's start to gone, or the trial's end."""
    rows = [built.pod(0, "x", "ADDED"), built.pod(70, "x", "DELETED"), built.pod(40, "y", "ADDED")]
    rows += built.replicas((1, 2, 0), (2, 2, 2), (3, 4, 2), (4, 3, 3))
    told = [report(5, "producer", "profile", start=10.0)]
    record = built.record(tmp_path, times={"settling": 0, "ended": 100}, transitions=rows, group_events=told)
    found = fleet.replicas(record, "consumer")
    assert (found.most.value, found.changes.value, fleet.pod_minutes(record, "consumer").value) == (4, 2, pytest.approx(2.0))
    assert "other Deployment was never seen" in fleet.replicas(record, "other").most.why
    assert "no pod of other" in fleet.pod_minutes(record, "other").why
