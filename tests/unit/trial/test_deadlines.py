"""Deadlines follow from what a trial is told to do, compressed as it is applied."""

import dataclasses

import pytest

from lab import paths
from lab.inputs import inputs
from lab.inputs import policy as policies
from lab.inputs import scale as scales
from lab.inputs.workload import Workload
from lab.programs.producer.send import configuration
from lab.trial.deadlines import END_S, deadlines

OWN = {"command": "true", "rung": "black-box"}
QUICK, REAL = scales.load("quick"), scales.load("real")


def trial(scale=REAL, policy="lag", profile="step-10x", **workload):
    """Inputs of a trial."""
    return inputs.read(profile, policy, Workload(**workload), 1, scale, "binary")


def end_s(chosen, **spec):
    """The last deadline of ``chosen`` when its ScaledObject says this instead."""
    content = dict(chosen.policy.content)
    content["spec"] = content["spec"] | spec
    return deadlines(dataclasses.replace(chosen, policy=policies.parse(content, "test"))).end_s


@pytest.mark.parametrize(
    ("spec", "more"),
    [
        ({"pollingInterval": 600}, 2 * (600 - 30)),
        ({"cooldownPeriod": 900}, 900),
        ({"cooldownPeriod": 900, "initialCooldownPeriod": 100}, 1000),
    ],
)
def test_periods_of_keda_count(spec, more):
    """Each by what it may hold a change up."""
    chosen, base = trial(), {"minReplicaCount": 0, "pollingInterval": 30, "cooldownPeriod": 0}
    assert end_s(chosen, **(base | spec)) - end_s(chosen, **base) == pytest.approx(more)


def behavior(window, *policies, select="Max"):
    """A ScaledObject's ``advanced`` with this scale-down."""
    rows = [dict(zip(("type", "value", "periodSeconds"), row, strict=True)) for row in policies]
    down = {"stabilizationWindowSeconds": window, "policies": rows, "selectPolicy": select}
    return {"horizontalPodAutoscalerConfig": {"behavior": {"scaleDown": down}}}


def test_windows_and_slow_steps_down_count():
    """One pod in ten minutes, 20 times; the slower of two policies where Min is chosen; none where it is Disabled.

    Kubernetes' own window of 300 s counts in full at real time.
    """
    assert deadlines(trial(REAL)).end_s > END_S + 300
    chosen = trial()
    least, most = chosen.policy.min_replicas, chosen.policy.max_replicas
    at_once = end_s(chosen, advanced=behavior(0, ("Percent", 100, 15)))
    assert end_s(chosen, advanced=behavior(1200, ("Percent", 100, 15))) - at_once == 1200
    slow = end_s(chosen, advanced=behavior(0, ("Pods", 1, 600)))
    assert slow - at_once == (most - least) * 600 - 15
    both = ("Pods", 1, 600), ("Percent", 100, 15)
    assert end_s(chosen, advanced=behavior(0, *both, select="Min")) == slow
    assert end_s(chosen, advanced=behavior(0, *both)) == at_once
    assert end_s(chosen, advanced=behavior(0, *both, select="Disabled")) == at_once - 15


def test_grace_backlog_and_retries_count():
    """A pod's own time to end, a slower group, messages that are tried again one after the other."""
    plain = deadlines(trial())
    assert deadlines(trial(grace_s=630)).end_s - plain.end_s == 600
    assert deadlines(trial(process_ms="60")).end_s > plain.end_s + 100
    assert deadlines(trial(fail_rate=0.001)).end_s > plain.end_s + 100
    assert plain.ledger_s > deadlines(trial(QUICK)).ledger_s


def test_a_start_that_no_scale_divides_is_waited_for():
    """Your own consumer starts as it does at real time, unless it is told."""
    starts = [deadlines(trial(QUICK, **work)).settle_s for work in ({}, {"start_s": 300}, OWN | {"start_s": 300})]
    assert starts[1] - starts[0] == 2 * 300 / QUICK.time
    assert starts[2] - starts[0] == 2 * 300
    assert deadlines(trial(QUICK, **OWN, start_s=300, env="WARM=$(START_S)")).settle_s == starts[1]


def test_a_late_event_is_waited_for_as_long_as_the_producer_keeps_it():
    """The producer reports the fate of the last event before the deadline. A slow broker has five minutes to take it."""
    kept_s = configuration("127.0.0.1:9092", "producer")["delivery.timeout.ms"] / 1000
    chosen = trial(QUICK)
    assert kept_s >= 300, "librdkafka's own default"
    assert deadlines(chosen).replay_s > chosen.profile.duration + kept_s


def test_every_committed_policy_has_deadlines():
    """None is below what a machine needs, whatever decides."""
    for kind in ("scaledobjects", "hpa", "controllers", "steps"):
        for file in (paths.MANIFESTS / kind).glob("*.yaml"):
            profile = "spike-announced" if file.stem.endswith("-cron") else "step-10x"  # a window needs a time of day
            found = deadlines(trial(QUICK, file.stem, profile, topics=2 if file.stem.startswith("topics-") else 1))
            assert 120 <= found.end_s < 1000, (file.stem, found)
            assert found.settle_s >= 90
