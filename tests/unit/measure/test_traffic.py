"""Measures of what held traffic does to a group: on records in which every number is known."""

import json

import pandas as pd
import pytest

from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.events import Grow
from lab.inputs.workload import Workload
from lab.measure.drain import drain_time
from lab.measure.lag import hold
from lab.measure.scaling import plateau
from lab.record.store import Record
from lab.record.trial import Offsets
from tests.experiments.measure.repartition import repartition

from . import whole
from .built import sealed
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
    whole.trial(chosen, id=chosen.id, times=times).write(folder)
    pd.DataFrame(replicas).to_parquet(folder / "transitions.parquet")
    pd.DataFrame(told).to_parquet(folder / "group_events.parquet")
    rows = [
        {"t": float(t), "metric": "kafka_consumergroup_lag_sum", "pod": "", "labels": "{}", "value": float(v)} for t, v in lag
    ]
    pd.DataFrame(rows, columns=["t", "metric", "pod", "labels", "value"]).to_parquet(folder / "samples.parquet")
    work = {"pod": "a", "partition": 0, "first": 0, "last": 0, "count": rate * 20, "start": 1007.0, "end": 1027.0}
    pd.DataFrame([work]).to_parquet(folder / "receipts.parquet")
    return Record(folder)


FALLING = [(t, 20_000 - 1_000 * (t - 1006)) for t in range(1006, 1027)]


def test_the_cap_is_where_the_group_stands_longest(tmp_path):
    """22 replicas from 1007 s, when they are Ready, to the last sample above 7,200, at 1018 s."""
    found = plateau(build(tmp_path, lag=FALLING))
    assert (found.standing_at.value, found.standing_s.value, found.lag.value) == (22, 11.0, 19_000)
    assert found.rate.value == pytest.approx(2200)


def test_lag_below_the_cap_is_no_stand(tmp_path):
    """A lag that never asked for all of P says nothing of the cap."""
    found = plateau(build(tmp_path, lag=[(1006, 7_200), (1007, 100)]))
    assert found.standing_at.why == "lag never was above P x lagThreshold, 7200"


def test_growth_is_that_of_the_last_third(tmp_path):
    """In the last second of the spike lag grows by 1,000/s."""
    lag = [(1003.5, 0), *((1005 + n / 10, 2_500 + 100 * n) for n in range(11)), (1020, 100)]
    found = hold(build(tmp_path, lag=lag))
    assert found.growth.value == pytest.approx(1_000)
    assert (found.replicas.value, found.peak_lag.value) == (22, 3_500)


def test_too_few_samples_are_no_growth(tmp_path):
    """A slope through two points of lag would be an accident."""
    assert hold(build(tmp_path, lag=[(1005, 1), (1006, 2)])).growth.why == "2 samples of lag in 1.0 s"


def test_caught_up_counts_from_the_last_bursts_end(tmp_path):
    """At 1006 s traffic falls; 300 messages are reached 6 s later."""
    lag = [(1000, 5), (1006, 9_000), (1011, 400), (1012, 300), (1013, 9_000)]
    assert drain_time(build(tmp_path, lag=lag)).value == 6.0


def test_a_trial_cut_short_has_not_caught_up(tmp_path):
    """The producer that ended in its spike never let go."""
    assert drain_time(build(tmp_path, told=TOLD[:3], lag=[(1004, 5)])).why == "the producer ended in phase 'spike'"


def owner(t, pod, partitions):
    """A consumer is assigned partitions."""
    return report(t, pod, "assigned", partitions=list(partitions), owned=len(partitions), seconds=0.1)


def grown(folder, *, receipts, lost=(), unseen=()):
    """A record of profile repartition whose new partitions 24..47 have these receipts."""
    told = [*TOLD[:1], owner(1001, "a", range(24)), owner(1013, "b", range(24, 48))]
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


def test_a_partition_without_a_receipt_was_never_consumed(tmp_path):
    """One of 24 missing: no time, and its messages wait: none was skipped."""
    found = repartition(grown(tmp_path, receipts=[(p, 1014) for p in range(24, 47)], unseen=[{"partition": 47, "count": 5}]))
    assert (found.consumed_s.value, found.unconsumed.value, found.skipped.value) == (None, 1, 0)


def test_what_is_committed_past_unprocessed_messages_is_skipped(tmp_path):
    """Five of partition 47 wait and three lie below its committed offset: these are lost, and no backlog."""
    tail = {"partition": 47, "first": 0, "last": 7, "count": 8}
    made = grown(tmp_path, receipts=[(p, 1014) for p in range(24, 47)], unseen=[tail])
    found = repartition(sealed(made.folder, offsets={47: Offsets(8, 3)}))
    assert found.skipped.value == 3


def test_a_topic_left_alone_has_no_repartition(tmp_path):
    """Without a change there is nothing to measure."""
    assert repartition(build(tmp_path)).consumed_s.why == "no partitions were added"
