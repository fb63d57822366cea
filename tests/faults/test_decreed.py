"""What the lab gives and does to a running group: steps by decree, two topics. Real, and short."""

import dataclasses

import pytest

from lab.inputs import inputs, steps
from lab.inputs import scale as scales
from lab.inputs.inputs import REPLAYED
from lab.measure.delivery import unaccounted
from lab.measure.dip import dips, median_step
from lab.measure.prediction import agreement
from lab.measure.throughput import Throughput
from tests.experiments.workloads import busy, slim
from tests.scenarios.zero_loss.measure.deadletters import dead_letters

pytestmark = pytest.mark.services

TWO_STEPS = {
    "kind": "ReplicaSteps",
    "metadata": {"name": "short"},
    "spec": {"replicas": 2, "holdSeconds": 2, "steps": [{"replicas": 3}, {"bystanders": 1}, {"replicas": 2}]},
}


def test_a_group_is_taken_through_its_steps(run):
    """Up, a control beside the group, and down: each is timed, moves what it should, and is measured at saturation."""
    read = inputs.read("saturate", "up-and-down", busy(), 1, scales.load("quick"), "binary", until=REPLAYED)
    (record,) = run(dataclasses.replace(read, policy=steps.parse(TWO_STEPS, "here")))
    taken = record.trial.steps
    assert [(step.kind, step.before, step.after) for step in taken] == [("up", 2, 3), ("control", 3, 3), ("down", 3, 2)]
    assert all(step.t < step.settled < step.until for step in taken)
    found = dips(record)
    assert all(one.depth is not None for one in found)
    assert [median_step(found, kind).steps.number for kind in ("up", "control", "down")] == [1, 1, 1]
    up, control, down = found
    assert up.moved >= 8
    assert down.moved >= 8
    assert control.moved == 0
    done = Throughput(record.receipts)
    assert done.rate(up.until - 1.5, up.until) > 1.3 * done.rate(up.t - 2, up.t)
    assert record.reconciliation.doubled_messages == record.reconciliation.lost_messages == 0


@pytest.mark.nightly
def test_a_group_of_two_topics_is_scaled_by_both_and_settled_by_number(run):
    """KEDA reads each topic for a trigger of its own, and each event is processed or dead by the number of its partition."""
    failing = slim(topics=2, fail_rate=0.01, poison_rate=0.002)
    read = inputs.read("short-step", "topics-4500", failing, 1, scales.load("quick"), "binary")
    calm = tuple(dataclasses.replace(step, rate=step.rate / 5) for step in read.profile.steps)
    (record,) = run(dataclasses.replace(read, profile=dataclasses.replace(read.profile, steps=calm)))
    assert (record.trial.ended, record.trial.missing) == ("complete", {})
    assert record.reconciliation.exact
    assert unaccounted(record).value == 0
    found = dead_letters(record)
    assert found.dead.value == found.injected.value > 0
    assert (found.unaccounted.value, found.unreasoned.value, found.stray.value) == (0, 0, 0)
    numbers = set(range(24))
    assert set(record.produced["partition"]) == set(record.receipts["partition"]) == set(record.offsets) == numbers
    assert set(record.partition_lag["partition"]) == numbers
    assert {number for one in record.handovers for number in one.partitions} == numbers
    made, after = record.trial.topic_ids
    assert made == after
    assert len(set(made.split(","))) == 2
    metrics = record.hpa_statuses[-1].object["spec"]["metrics"]
    names = [one["external"]["metric"]["name"] for one in metrics]
    assert [name.partition("-")[0] for name in names] == ["s0", "s1"]
    assert names[1].removeprefix("s1-") == names[0].removeprefix("s0-") + "-2"
    assert record.scalings
    assert agreement(record).agreement.value == 100
