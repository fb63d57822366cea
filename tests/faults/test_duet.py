"""Duets on a real cluster: two groups get the same events at the same moment, and each leaves a record that stands alone."""

import dataclasses
import itertools

import pandas as pd
import pytest

from lab.inputs import inputs, steps
from lab.inputs import scale as scales
from lab.inputs.duet import sides
from lab.inputs.inputs import REPLAYED
from lab.measure.delivery import delivery
from lab.record.store import opened
from tests.experiments.workloads import slim

pytestmark = [pytest.mark.services, pytest.mark.nightly]

TWO_STEPS = {
    "kind": "ReplicaSteps",
    "metadata": {"name": "short"},
    "spec": {"replicas": 2, "holdSeconds": 1, "steps": [{"replicas": 3}, {"replicas": 2}]},
}


def read(policy, workload, **how):
    """The inputs of a side on the traffic of ``plateau``."""
    return inputs.read("plateau", policy, workload, 1, scales.load("quick"), "binary", **how)


def test_two_clients_share_one_topic(run):
    """Both ledgers have the same events, each settles its own receipts, and neither record needs the other."""
    stock, woken = run(*sides(read("lag-4500", slim(wake="off")), read("lag-4500", slim())))
    assert (stock.trial.ended, woken.trial.ended) == ("complete", "complete")
    assert (stock.trial.missing, woken.trial.missing) == ({}, {})
    assert (stock.trial.duet.other, woken.trial.duet.other) == (woken.name, stock.name)
    order = ["partition", "offset"]
    events = [record.produced.sort_values(order, ignore_index=True) for record in (stock, woken)]
    pd.testing.assert_frame_equal(*events)
    assert len(events[0]) == stock.profile.total
    assert stock.profile_start == woken.profile_start
    assert stock.phases_begun == woken.phases_begun
    assert not set(stock.receipts["pod"]) & set(woken.receipts["pod"])
    for record in (stock, woken):
        opened(record.folder)
        found = delivery(record)
        assert found.stored.number == found.processed.number == record.profile.total
        assert found.mismatched.number == 0
        assert record.scalings
        assert record.hpa_syncs
        assert not record.lag.empty
        assert (record.folder / "inputs" / "job-producer.yaml").exists()


def test_steps_are_taken_together(run):
    """Each side takes its own steps, and both begin each when both have come to it."""
    short = steps.parse(TWO_STEPS, "here")
    pair = [dataclasses.replace(read("up-and-down", work, until=REPLAYED), policy=short) for work in (slim(), slim(wake="off"))]
    taken = [record.trial.steps for record in run(*sides(*pair))]
    assert [[(step.before, step.after) for step in own] for own in taken] == [[(2, 3), (3, 2)]] * 2
    pairs = list(zip(*taken, strict=True))
    for pair in pairs:
        assert max(step.t for step in pair) < min(step.until for step in pair), "both are in the step at one moment"
    for earlier, later in itertools.pairwise(pairs):
        assert max(step.until for step in earlier) <= min(step.t for step in later), "each waits for the other's end"
