"""Measures of what held traffic does to a group: on records in which every number is known."""

import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.events import Grow
from lab.inputs.faults import Injection
from lab.inputs.workload import Workload
from lab.measure.drain import drain_time
from lab.measure.lag import growth, hold, moment
from lab.measure.scaling import plateau
from lab.measure.throughput import GRID_S, Throughput
from lab.record.trial import Offsets
from tests.experiments.measure.repartition import repartition

from . import built, whole
from .built import assigned, lags, receipt, sealed
from .conftest import deployment, report

# Profile overload at quick scale: baseline for 3 s, 3,000/s for 3 s, then 1,800/s for 26 s; P x lagThreshold = 24 x 300.
BEGUN, SPIKE, DRAIN = 1000.0, 1003.0, 1006.0
TOLD = [
    report(999, "producer", "profile", start=BEGUN, total=1),
    report(BEGUN, "producer", "phase", phase="baseline", at=BEGUN),
    report(SPIKE, "producer", "phase", phase="spike", at=SPIKE),
    report(DRAIN, "producer", "phase", phase="drain", at=DRAIN),
]
REPLICAS = [deployment(990, 2, 2), deployment(1004, 22, 2), deployment(1007, 22, 22), deployment(1020, 25, 22)]


def build(folder, *, policy="capped", replicas=REPLICAS, told=TOLD, lag=(), rate=2200.0, **how):
    """A record of profile overload (or another) whose group processes ``rate`` messages/s from 1007 s on."""
    profile = how.pop("profile", "overload")
    chosen = inputs.read(profile, policy, Workload(), 1, scales.load("quick"), "binary", **how)
    times = {"driving": 999.0, "ended": 1030.0} | ({"repartitioned": 1011.0} if how else {})
    tables = {"transitions": replicas, "group_events": told, "samples": lags(dict(lag))}
    tables["receipts"] = [receipt("a", 1007, 1027, rate * 20)]
    return built.record(folder, inputs=chosen, id=chosen.id, times=times, **tables)


FALLING = [(t, 20_000 - 1_000 * (t - 1006)) for t in range(1006, 1027)]
SEEN = [(1005 + n / 10, 2_500 + 100 * n) for n in range(11)]
UNSETTLED = {"lag": FALLING, "replicas": REPLICAS[:2]}


def test_the_cap_is_where_the_group_stands_longest(tmp_path):
    """22 replicas from 1007 s, when they are Ready, to the first sample that is not above 7,200, at 1019 s."""
    found = plateau(build(tmp_path, lag=FALLING))
    assert (found.standing_at.value, found.standing_s.value, found.lag.value) == (22, 12.0, 19_000)
    assert found.rate.value == pytest.approx(2200)


def test_the_cap_counts_only_while_lag_is_above_it(tmp_path):
    """Above 400 from 10 s to 20 s and from 100 s to 120 s: in between nothing asks for more than the 4 pods."""
    seen = lags({0: 0, 10: 500, 20: 0, 100: 600, 110: 500, 120: 0})
    tables = {"transitions": built.replicas((0, 4, 4)), "samples": seen, "receipts": [receipt("a", 0, 130, 1300)]}
    found = plateau(built.record(tmp_path, inputs={"policy": whole.scaled(100)}, times={"driving": 0, "ended": 130}, **tables))
    assert (found.standing_at.value, found.standing_s.value, found.lag.value) == (4, 20, 600)
    assert found.rate.value == pytest.approx(10)


@pytest.mark.parametrize(
    ("at", "lag"), [(-3, 0), (-7, None), (2, 500), (3, None), (5, None), (6, 900), (17.5, 2000), (21, None)]
)
def test_lag_at_a_moment_is_between_the_samples_around_it(tmp_path, at, lag):
    """Seen each second from 1000 s to 1020 s, and not from 1005 s to 1009 s: further from a sample nobody knows it."""
    content, told = built.profile(1000, 30, (0, "baseline"), (3, "spike"))
    seen = lags({1000 + n: 100 * n for n in range(21) if not 5 < n < 9})
    rates = [{"bin_s": 0.2, "t": 1000.0, "series": "produced", "pod": "", "messages": 1.0}]
    tables = {"transitions": built.replicas((990, 2, 2)), "group_events": told, "samples": seen, "rates": rates}
    found = moment(built.record(tmp_path, inputs=content, times={"settling": 990, "ended": 1030}, **tables), at)
    assert (found.lag.value, "lag was not seen" in found.lag.why) == (lag, lag is None)


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (SEEN, ""),
        ([one for one in SEEN if one[0] < 1005.45], "lag was not seen for 6 times as long"),
        ([one for one in SEEN if one[0] > 1005.55], "lag was not seen for 6 times as long"),
        ([one for one in SEEN if not 1005.3 < one[0] < 1005.75], "lag was not seen for 5 times as long"),
    ],
)
def test_under_faults_lag_that_was_not_seen_has_no_growth(tmp_path, seen, why):
    """Neither at the beginning, nor in between, nor at the end. The spike's last second is judged."""
    kill = Injection(1.0, "lag-exporter", "sigkill", 0.0, 0.0)
    found = growth(build(tmp_path, lag=seen, faults=[kill]), "spike", 1 / 3)
    assert (why in found.why, found.value is None) == (True, bool(why))


def test_growth_is_that_of_the_last_third(tmp_path):
    """In the last second of the spike lag grows by 1,000/s."""
    lag = [(1003.5, 0), *((1005 + n / 10, 2_500 + 100 * n) for n in range(11)), (1020, 100)]
    found = hold(build(tmp_path, lag=lag))
    assert found.growth.value == pytest.approx(1_000)
    assert (found.replicas.value, found.peak_lag.value) == (22, 3_500)


@pytest.mark.parametrize(
    ("measured", "how", "why"),
    [
        (
            lambda one: plateau(one).standing_at,
            {"lag": [(1006, 7_200), (1007, 100)]},
            "lag never was above P x lagThreshold, 7200",
        ),
        (lambda one: plateau(one).lag, UNSETTLED, "the group never stood still while lag was above the cap"),
        (lambda one: hold(one).growth, {"lag": [(1005, 1), (1006, 2)]}, "2 samples of lag in 1.0 s"),
        (drain_time, {"told": TOLD[:3], "lag": [(1004, 5)]}, "the producer ended in phase 'spike'"),
        (lambda one: repartition(one).consumed_s, {}, "no partitions were added"),
    ],
)
def test_without_what_it_needs_a_measure_has_no_data(tmp_path, measured, how, why):
    """A lag that never asked for all of P, a slope of two points, a trial cut short in its spike, a topic left alone."""
    assert measured(build(tmp_path, **how)).why == why


def test_caught_up_counts_from_the_last_bursts_end(tmp_path):
    """At 1006 s traffic falls; 300 messages are reached 6 s later."""
    lag = [(1000, 5), (1006, 9_000), (1011, 400), (1012, 300), (1013, 9_000)]
    assert drain_time(build(tmp_path, lag=lag)).value == 6.0


def grown(folder, *, receipts, lost=(), unseen=()):
    """A record of profile repartition whose new partitions 24..47 have these receipts."""
    told = [*TOLD[:1], assigned(1001, "a", *range(24)), assigned(1013, "b", *range(24, 48))]
    record = build(folder, profile="repartition", policy="grow", told=told, during={"repartition": Grow(48)})
    rows = [{"pod": "b", "partition": p, "first": 0, "last": 9, "count": 10, "start": t - 0.1, "end": t} for p, t in receipts]
    pd.DataFrame(rows).to_parquet(folder / "receipts.parquet")
    counts = {"unseen_messages": sum(one["count"] for one in unseen)}
    (folder / "reconciliation.json").write_text(json.dumps(whole.reconciliation(**counts, lost=lost, unseen=unseen)))
    return record


def test_new_partitions_are_consumed_when_the_last_has_a_receipt(tmp_path):
    """Added at 1011, the last receipt at 1015; what was lost of the old partitions is not counted."""
    lost = [{"partition": 30, "count": 7}, {"partition": 3, "count": 100}]
    found = repartition(grown(tmp_path, receipts=[(p, 1014 + (p == 47)) for p in range(24, 48)], lost=lost))
    assert (found.added.value, found.consumed_s.value, found.unconsumed.value) == (24, 4.0, 0)
    assert (found.skipped.value, found.after.value) == (7, 25)


def test_what_is_committed_past_unprocessed_messages_is_skipped(tmp_path):
    """Five of partition 47 wait and three lie below its committed offset: these are lost, and no backlog. It has no receipt."""
    tail = {"partition": 47, "first": 0, "last": 7, "count": 8}
    made = grown(tmp_path, receipts=[(p, 1014) for p in range(24, 47)], unseen=[tail])
    found = repartition(sealed(made.folder, offsets={47: Offsets(8, 3)}))
    assert (found.consumed_s.value, found.unconsumed.value, found.skipped.value) == (None, 1, 3)


EPOCH = 1_700_000_000.0  # an epoch time as they are: a double keeps 0.2 µs of it


def receipts_of(rows):
    """Receipts of (start ms, length ms, count), a little after the whole millisecond, so that no window ends on one."""
    return pd.DataFrame(
        [receipt("a", EPOCH + (at + 0.4) / 1000, EPOCH + (at + 0.4 + takes) / 1000, n) for at, takes, n in rows]
    )


def share(one, start, end):
    """Messages of a receipt that were done from ``start`` to ``end``: the oracle."""
    if one.end == one.start:
        return one.count if start < one.start <= end else 0
    return one.count * max(0.0, min(one.end, end) - max(one.start, start)) / (one.end - one.start)


RECEIPTS = st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 1500), st.integers(1, 1000)), min_size=1, max_size=12)


@given(RECEIPTS.map(receipts_of), st.integers(-500, 3000), st.integers(0, 3000), st.sampled_from([200, 1000]))
def test_the_rolling_rate_is_that_of_each_window_alone(receipts, start, length, window):
    """The cumulative line gives every window what the shares of all receipts in it add up to."""
    begin, wide = EPOCH + start / 1000, window / 1000
    starts, rates = Throughput(receipts).rolling(begin, begin + length / 1000, wide)
    assert len(starts) == max(0, (length - window) // 50 + 1)
    assert starts == pytest.approx([begin + GRID_S * k for k in range(len(starts))])
    alone = [sum(share(one, at, at + wide) for one in receipts.itertuples()) / wide for at in starts]
    assert rates == pytest.approx(alone, rel=1e-6, abs=0.1)  # 0.2 µs of an epoch time, in a receipt of 1 ms
