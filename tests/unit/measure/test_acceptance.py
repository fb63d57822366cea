"""What any policy is held to, on records in which every number is known."""

import pytest

from lab.measure.drain import LEAST_DRAIN_S, best_drain
from lab.measure.scaling import policy_excess

from . import built, whole

BOUNDS = whole.scaled(minReplicaCount=2, maxReplicaCount=4)
POD = {"process_ms": "10", "concurrency": 1}  # 100 messages/s
PHASES = ((0, "baseline"), (10, "spike"), (20, "drain"))


def record(folder, *, replicas=(), backlog=(0, 0), lag=None, partitions=4, after=0.0, phases=PHASES):
    """A trial of pods of 100/s from 2 to 4: ``backlog`` by partition when the spike ends at 120 s, ``lag`` in all over time."""
    content, told = built.profile(100, 60, *phases)
    content["profile"]["steps"][-1]["rate"] = after
    inputs = content | {"policy": BOUNDS, "partitions": partitions, "workload": POD, "scale": {"time": 1, "rate": 1}}
    curve = {115: 1.0, 120: float(sum(backlog)), 130: 0.0} if lag is None else lag
    samples = built.lags(curve)
    samples += [
        built.sample(120, "kafka_consumergroup_lag", value, partition=str(number)) for number, value in enumerate(backlog)
    ]
    receipts = [built.receipt("a", 101, 102, 50, partition=number) for number in range(len(backlog))]
    transitions = built.replicas(*replicas)
    rows = {"samples": samples, "receipts": receipts, "group_events": told, "transitions": transitions}
    return built.record(folder, inputs=inputs, times={"settling": 90, "ended": 160}, **rows)


def test_a_policy_that_keeps_its_bounds(tmp_path):
    """From the floor to the ceiling and back."""
    found = policy_excess(record(tmp_path, replicas=[(100, 2, 2), (112, 4, 2), (140, 2, 4)]))
    assert found.to_dict() == {"outside_bounds": 0, "beyond_partitions": 0, "flips": 0, "above_floor_at_end": 0}


@pytest.mark.parametrize(
    ("wanted", "name", "number"),
    [
        ([2, 7, 2], "outside_bounds", 3),
        ([2, 1, 2], "outside_bounds", 1),
        ([2, 4, 2], "beyond_partitions", 1),
        ([2, 4, 3, 4, 2], "flips", 1),
        ([2, 4, 3], "above_floor_at_end", 1),
    ],
)
def test_what_is_not_kept_is_counted(tmp_path, wanted, name, number):
    """Pods above the ceiling or below the floor, beyond 3 partitions, flips, and pods that were never given back."""
    rows = [(100 + 10 * step, replicas, replicas) for step, replicas in enumerate(wanted)]
    assert getattr(policy_excess(record(tmp_path, replicas=rows, partitions=3)), name).value == number


def test_bounds_need_no_spike(tmp_path):
    """On a steady profile flips and bounds are known; without a Deployment nothing is."""
    steady = record(tmp_path, replicas=[(100, 2, 2)], phases=PHASES[:1])
    assert policy_excess(steady).flips.value == 0
    assert "Deployment" in policy_excess(record(tmp_path)).flips.why


def test_skew_bounds_the_best_drain(tmp_path):
    """The hottest partition holds 900 messages and one pod takes 100/s: 9 s; it took 10."""
    found = best_drain(record(tmp_path, backlog=(900, 100)))
    assert (found.seconds.value, found.best_s.value) == (10, pytest.approx(9))
    assert found.over_best.value == pytest.approx(10 / 9)


def test_the_ceiling_bounds_the_best_drain(tmp_path):
    """8 partitions of 400 messages, and 4 pods of 100/s for all of them: 8 s; fewer partitions than pods: 2 of 100/s."""
    assert best_drain(record(tmp_path, backlog=(400,) * 8, partitions=8)).best_s.value == pytest.approx(8)
    assert best_drain(record(tmp_path, backlog=(600, 1000), partitions=2)).best_s.value == pytest.approx(10)
    assert best_drain(record(tmp_path, backlog=(900, 900), partitions=2)).best_s.value == pytest.approx(9)


def test_what_keeps_arriving_lengthens_the_best(tmp_path):
    """100/s arrive on 8 partitions: 3,200 messages at 300/s instead of 400."""
    assert best_drain(record(tmp_path, backlog=(400,) * 8, partitions=8, after=100.0)).best_s.value == pytest.approx(3200 / 300)


def test_nothing_to_drain_is_no_division_by_nothing(tmp_path):
    """A policy that held the spike without a backlog took 0 s of the least that counts."""
    found = best_drain(record(tmp_path, lag={110: 50.0, 120: 50.0, 130: 0.0}))
    assert (found.seconds.value, found.best_s.value, found.over_best.value) == (0, LEAST_DRAIN_S, 0)


def test_a_drain_that_can_not_be_is_no_data(tmp_path):
    """As much arrives as the pods take: there is no best to compare with, so it does not pass."""
    found = best_drain(record(tmp_path, backlog=(400,) * 8, partitions=8, after=400.0)).over_best
    assert (found.value, "as much arrives" in found.why) == (None, True)


def test_a_profile_without_an_end_of_the_load_has_no_drain(tmp_path):
    """The last phase has to be one of relief."""
    assert "ended in phase 'spike'" in best_drain(record(tmp_path, phases=PHASES[:2])).over_best.why
