"""The two sides of a duet: what drives them is one, each has an id of its own, and a machine carries both or says so."""

import dataclasses
import json

import pytest

from lab import paths
from lab.errors import InputError
from lab.inputs import duet
from lab.inputs import scale as scales
from lab.inputs.duet import RATES, USED, carried, cores, sides, slowed
from lab.inputs.duet import busy as busy_cores
from lab.inputs.events import Brokers, Grow, Kill
from lab.inputs.inputs import Inputs, Side
from lab.inputs.variant import policy
from lab.inputs.workload import Workload
from tests.experiments.workloads import busy, light, slim
from tests.unit.inputs.written import refused, trial


def read(policy="lag-4500", profile="plateau", workload=None, **how):
    """The inputs of a trial at quick scale."""
    return trial(profile, policy, workload or light(), **{"until": "replayed"} | how)


GROWN = {"profile": "repartition", "during": {"repartition": [Grow(48), Kill()]}}
LAG, CPU = read(workload=slim()), read("cpu", workload=slim())


def test_sides_have_ids_of_their_own():
    """Neither is that of the trial by itself; they depend on what the other side is."""
    lag, cpu = sides(LAG, CPU)
    again, other = sides(LAG, read(policy("lag-4500", lag_threshold=150)))
    assert lag.side == Side("a", CPU.id, 1.0)
    assert cpu.side == Side("b", LAG.id, 1.0)
    assert len({one.id for one in (LAG, CPU, lag, cpu, again, other)}) == 6
    assert sides(LAG, CPU)[0].id == lag.id


def test_a_side_comes_back_from_plain_data_with_its_id():
    """As trial.json keeps it."""
    for one in sides(LAG, CPU, 0.5):
        stored = json.loads(json.dumps(one.to_dict()))
        assert Inputs.from_dict(stored, "a test").id == one.id
        assert Inputs.from_dict(stored, "a test").side == one.side
    assert "side" not in LAG.identity()


@pytest.mark.parametrize("side", [3, {"name": "a"}, {"name": "a", "other": "x", "rate": 1, "more": 1}])
def test_a_side_that_no_trial_wrote_is_refused(side):
    """By name."""
    with pytest.raises(InputError, match=r"inputs\.side"):
        Inputs.from_dict(LAG.to_dict() | {"side": side}, "a test")


@pytest.mark.parametrize(
    ("other", "field"),
    [
        (read(seed=2), "seed"),
        (read(profile="bursty"), "profile_name"),
        (read(partitions=12), "partitions"),
        (read(until="drained"), "until"),
        (read(repetition=2), "repetition"),
        (read(workload=slim(entities=1000)), "entities"),
        (read(workload=slim(topics=2)), "topics"),
        (read("up-and-down"), "policy"),
        (read(workload=slim(), brokers=Brokers()), "brokers"),
        (dataclasses.replace(LAG, during=(("spike", Kill()),)), "during"),
        (dataclasses.replace(LAG, runtime="kind"), "runtime"),
        (dataclasses.replace(LAG, scale=scales.load("standard")), "scale"),
    ],
)
def test_what_drives_both_sides_is_one(other, field):
    """Steps by decree are taken together, and each side would kill a broker of the other's."""
    assert refused(sides, LAG, other).startswith(f"duet: {field}: ")


def test_what_is_a_sides_own_may_differ():
    """Policy, client and kill; the topic grows for both."""
    for other in (read("two-pods"), read(workload=light(balancer="range"))):
        assert len(sides(LAG, other)) == 2
    assert sides(read(**GROWN), read(policy("lag-4500", lag_threshold=150), **GROWN))[1].partitions_after == 48


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ({"driver": "ridehailing/locust"}, "driver: 'ridehailing/locust' | a manifest with the annotation elastic-lab/duet"),
        ({"beside": ("ridehailing/pipeline", "ridehailing/ingestion")}, "beside: 'ridehailing/ingestion' | a manifest with"),
    ],
)
def test_a_manifest_that_serves_one_group_is_for_no_duet(how, line):
    """Locust asks the pods of one side, and these produce to its topic."""
    one = dataclasses.replace(LAG, **how)
    assert refused(sides, one, one).startswith(f"duet: {line}")


def test_a_manifest_that_says_so_serves_two_sides():
    """Each has the pods beside it, and they cost what they request."""
    one = dataclasses.replace(LAG, beside=("ridehailing/pipeline",), driver="ridehailing/rides")
    assert [side.beside for side in sides(one, one)] == [("ridehailing/pipeline",)] * 2
    assert cores(one, one) == pytest.approx(cores(LAG, LAG) + 2 * 0.3)
    assert carried(one, one, 4)[0].side.rate == 1
    wide = dataclasses.replace(one, workload=light())  # 24 pods a side that request 70m each
    assert "duet: cpu_request_m: (70, 70) | at most 65, so that 48 pods" in refused(carried, wide, wide, 4)
    alone = dataclasses.replace(LAG, workload=light())
    assert "| at most 36, so that 48 pods" in refused(carried, alone, alone, 2)
    assert carried(alone, alone, 4)[0].side.rate == 1


@pytest.mark.parametrize("work", [light(), busy(burn=50), Workload(), light(process_ms="6")])
@pytest.mark.parametrize("rate", RATES[1:])
def test_a_slower_trial_keeps_its_shape(work, rate):
    """Traffic, pods and thresholds of lag keep their ratios; times and counts of pods are as they were."""
    whole = read(workload=work)
    slow = slowed(whole, rate)
    assert [step.rate for step in slow.profile.steps] == [step.rate * rate for step in whole.profile.steps]
    assert slow.profile.duration == whole.profile.duration
    assert slow.pod_rate == pytest.approx(whole.pod_rate * rate)
    assert slow.policy.lag_threshold == pytest.approx(whole.policy.lag_threshold * rate, abs=0.5)
    assert (slow.policy.min_replicas, slow.policy.max_replicas) == (whole.policy.min_replicas, whole.policy.max_replicas)
    assert slow.policy.content["spec"]["advanced"] == whole.policy.content["spec"]["advanced"]
    assert slow.policy.content["spec"]["pollingInterval"] == whole.policy.content["spec"]["pollingInterval"]
    assert slow.workload.burn == round(work.burn * rate)
    assert slow.workload.concurrency == work.concurrency
    assert slowed(whole, 1) is whole


def test_two_sides_cost_what_each_does():
    """More pods, more traffic and pods that compute cost more; half the rate costs less."""
    assert cores(LAG, LAG) < cores(LAG, read("lag", "step-10x", Workload()))
    assert cores(LAG, LAG) < cores(LAG, read("past-p", workload=slim()))
    assert cores(LAG, LAG) < cores(LAG, read(workload=light(burn=50)))
    heavy = read("lag", "step-10x", Workload(), until="drained")
    costs = [cores(*sides(heavy, heavy, rate)) for rate in RATES]
    assert costs == sorted(costs, reverse=True)


def test_what_a_machine_carries_is_left_as_it_is(caplog):
    """And nothing is said: three cores carry 24 pods of 100/s beside 12, and two a third of the pods."""
    assert [one.side.rate for one in carried(LAG, CPU, 3)] == [1.0, 1.0]
    few = read("up-and-down", workload=slim())
    assert [one.side.rate for one in carried(few, few, 2)] == [1.0, 1.0]
    assert caplog.text == ""


def test_a_rate_that_it_does_not_carry_is_halved_and_said_in_one_line(caplog):
    """The rate that was applied is in the inputs, and so in the records and in their ids."""
    heavy = read("lag", "step-10x", Workload(), until="drained")
    one, other = carried(heavy, heavy, 3)
    assert one.side.rate == other.side.rate < 1
    assert cores(one, other) <= USED * 3 < cores(*sides(heavy, heavy, one.side.rate * 2))
    (said,) = caplog.messages
    assert f"traffic and pods run at {one.side.rate:g} of their rate" in said
    assert carried(heavy, heavy, 16)[0].side.rate == 1


def test_pods_that_no_rate_makes_fewer_are_refused():
    """48 pods a side keep two cores busy by being there."""
    many = read("past-p", "overload", slim(cpu_request_m=15))
    assert "duet: maxReplicaCount of past-p and past-p: (48, 48) | fewer pods" in refused(carried, many, many, 2)
    assert "duet: seed: " in refused(carried, many, read("past-p", "overload", slim(), seed=2), 0)


def test_the_costs_are_those_that_are_published():
    """docs/options.md has what a message costs in the lab's own programs."""
    options = (paths.PROJECT / "docs" / "options.md").read_text()
    assert f"{duet.PRODUCED * 1e6:g} µs of CPU a message" in options
    assert f"{duet.CONSUMED * 1e6:g} µs of CPU a message" in options


# CPU of a duet's own processes in steady windows of 8 s and more, load.parquet of duets on two cores (2026-11-22, quick scale):
# traffic in messages/s, pods of each side, the messages/s that each took, and the cores that were busy.
@pytest.mark.parametrize(
    ("traffic", "pods", "rate", "recorded"),
    [
        (1800, 24, 97, 1.87),  # plateau, both sides caught up
        (1800, 24, 92, 1.73),  # an earlier session
        (1800, 2, 100, 1.19),  # both behind
        (140, 2, 100, 0.57),  # its lull
        (0, 7, 286, 0.80),  # saturate, on a backlog
    ],
)
def test_the_estimate_is_that_of_recorded_duets(traffic, pods, rate, recorded):
    """Within a quarter, which is what 80 % of the cores leave."""
    assert busy_cores(traffic, [(pods, pods, rate)] * 2) == pytest.approx(recorded, rel=0.25)


def test_jvms_cost_a_duet_more_cores():
    """Experiment 19's steps on two cores are carried at a quarter of the rate; 24 JVMs a side at none."""
    python, java = (read("three-up-and-down", "saturate", busy(client=client)) for client in ("python", "java"))
    assert cores(java, python) - cores(python, python) == pytest.approx(8 * 0.047)
    assert [carried(one, python, 2)[0].side.rate for one in (java, python)] == [0.25, 0.5]
    many = read(workload=slim(client="java"))
    assert "| fewer pods" in refused(carried, many, many, 2)
