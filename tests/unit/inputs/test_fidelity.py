"""A scale that can't stand for a policy's times refuses the policy, and says which scale can."""

import math
from dataclasses import replace

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from lab import paths, yamlfile
from lab.inputs import fidelity, scaledobject
from lab.inputs import policy as policies
from lab.inputs import scale as scales
from lab.inputs.own_consumer import BLACK_BOX
from lab.inputs.scale import Scale
from lab.inputs.workload import Workload
from lab.trial.user_files import UserFiles
from tests.unit.inputs.written import KAFKA, PROMETHEUS, refused, scaled, trial

LAG_4500 = paths.MANIFESTS / "scaledobjects" / "lag-4500.yaml"
METADATA = "spec.triggers[0].metadata"
BEHAVIOR = "spec.advanced.horizontalPodAutoscalerConfig.behavior"


QUICK, MEDIUM = scales.load("quick"), scales.load("medium")


def lag_4500(metadata=None, **spec):
    """Policy lag-4500 with fields of its spec, and of its trigger's metadata, changed."""
    content = yamlfile.load(LAG_4500.read_text())
    content["spec"] |= spec
    content["spec"]["triggers"][0]["metadata"] |= metadata or {}
    return scaledobject.parse(content, "my.yaml")


def lagging(threshold, **metadata):
    """Policy lag-4500 with another lagThreshold, and other metadata."""
    return lag_4500({"lagThreshold": str(threshold)} | metadata)


@pytest.mark.parametrize("path", sorted((paths.MANIFESTS / "scaledobjects").glob("*.yaml")), ids=lambda path: path.stem)
def test_policies_of_the_experiments_fit_quick(path):
    """The experiments run at quick."""
    assert fidelity.is_faithful(policies.load(path), QUICK)


@pytest.mark.parametrize("path", sorted((paths.MANIFESTS / "payments").glob("*.yaml")), ids=lambda path: path.stem)
def test_policies_of_the_payments_text_fit_medium_and_not_quick(path):
    """Their author polls every 15 s; a thirtieth of that is half a second, which KEDA can't take."""
    policy = policies.load(path)
    assert fidelity.is_faithful(policy, MEDIUM)
    assert not fidelity.is_faithful(policy, QUICK)


def test_the_line_names_file_field_value_and_the_scales_that_fit():
    """Before anything starts; a default that the file does not write is checked too: Kubernetes' rules have periods of 15 s."""
    line = "my.yaml: spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleUp.policies[0].periodSeconds: '15 s' |"
    assert refused(fidelity.check, lag_4500(advanced={}), QUICK, "my.yaml").startswith(line)
    assert refused(fidelity.check, lag_4500(pollingInterval=15), QUICK, "my.yaml", scales.declared()) == (
        "my.yaml: spec.pollingInterval: '15 s' | at scale quick (time / 30) within 10% of a multiple of "
        "30 s: whole seconds make this one 30 s; or --scale medium or standard or close or real"
    )


def test_a_trial_keeps_what_was_written_beside_what_was_applied():
    """Of every time; the record has them."""
    chosen = trial()
    kept = {one.field: (one.written_s, one.applied_s) for one in chosen.policy_times}
    assert kept["spec.pollingInterval"] == (60, 2)
    assert kept[f"{BEHAVIOR}.scaleDown.stabilizationWindowSeconds"] == (300, 10)
    assert len(kept) == 7
    kept = {one.field: (one.written, one.applied) for one in chosen.policy_lags}
    assert kept == {f"{METADATA}.lagThreshold": (4500, 150), f"{METADATA}.activationLagThreshold": (0, 0)}


def test_a_trial_refuses_the_policy_and_what_stands_beside():
    """Both decide replicas."""
    file = paths.MANIFESTS / "payments" / "scaledobject.yaml"
    assert "pollingInterval: '15 s' |" in refused(trial, policy=file)
    assert "periodSeconds: '15 s' |" in refused(trial, beside=("ridehailing/driver-matching",))


def test_a_scaledobject_of_ones_own_gets_the_most_compressed_scale_that_fits(tmp_path):
    """A session that names no scale is not refused for it.

    The default pod does 1,000 messages/s: at quick 6,500 are in flight, at medium 5,750, and 5,050 at real time.
    """
    file = tmp_path / "my.yaml"
    file.write_text(yaml.safe_dump(lagging(6000).content))
    assert UserFiles(scaledobject=file).scale() == MEDIUM
    orders = paths.PROJECT / "docs" / "examples" / "orders.yaml"
    assert UserFiles(scaledobject=LAG_4500).scale() == QUICK
    assert UserFiles(scaledobject=orders).scale() == MEDIUM
    assert UserFiles().scale() == QUICK


def test_a_formula_is_tried_at_real_time(tmp_path):
    """No scale divides the numbers in it: a session that names none takes real, and one that names another is told."""
    policy = scaled([KAFKA | {"name": "lag"}], advanced={"scalingModifiers": {"formula": "max(lag - 50, 0)", "target": "10"}})
    file = tmp_path / "my.yaml"
    file.write_text(yaml.safe_dump(policy.content))
    assert UserFiles(scaledobject=file).scale().name == "real"
    said = refused(fidelity.check, policy, QUICK, "my.yaml", scales.declared())
    line = "none at scale quick: it divides lag, and not the numbers in a formula; or --scale real"
    assert said == f"my.yaml: spec.advanced.scalingModifiers.formula: 'max(lag - 50, 0)' | {line}"


@given(polling=st.integers(1, 3600), time=st.floats(1, 100))
def test_faithful_means_within_a_tenth(polling, time):
    """Whatever the compression; real time is always faithful."""
    scale = Scale("any", time, 1)
    (one,) = (one for one in fidelity.times(lag_4500(pollingInterval=polling), scale) if one.field == "spec.pollingInterval")
    assert one.applied_s >= 1
    error = abs(one.applied_s * time / polling - 1)
    if not math.isclose(error, fidelity.TOLERANCE):
        assert one.faithful(scale) is (error < fidelity.TOLERANCE)
    assert fidelity.is_faithful(lag_4500(pollingInterval=polling), fidelity.REAL)


def test_a_lag_that_whole_messages_change_is_refused():
    """50 / 30 is 1.7 messages: 2 stand for 60."""
    assert refused(fidelity.check, lagging(50), QUICK, "my.yaml", scales.declared()) == (
        f"my.yaml: {METADATA}.lagThreshold: '50 messages' | at scale quick (time / 30) within 10% of a "
        "multiple of 30 messages: whole messages make this one 60; or --scale medium or standard or close or real"
    )


@pytest.mark.parametrize("scale", scales.declared(), ids=lambda one: one.name)
@given(threshold=st.integers(1, 10**6))
def test_a_faithful_lag_stands_for_what_is_written(scale, threshold):
    """Messages come at ``rate`` times their rate for a ``time``-th of the time; at real time nothing is rounded."""
    (one,) = (one for one in fidelity.lags(lagging(threshold), scale) if one.rounded)
    assert one.applied >= 1
    error = abs(one.applied / scale.rate * scale.time / threshold - 1)
    if not math.isclose(error, fidelity.TOLERANCE):
        assert one.faithful(scale) is (error < fidelity.TOLERANCE)
    if scale.time == 1:
        assert one.applied == threshold * scale.rate


@given(activation=st.integers(0, 1000), lag=st.integers(0, 40))
@example(activation=16, lag=1)  # rounded to the nearest it would be 1, and a lag of 1 stands for 30
def test_an_activation_is_rounded_down_which_changes_no_decision(activation, lag):
    """A whole lag is above the activation / 30 exactly when it is above that rounded down; so none is refused."""
    lags = fidelity.lags(lagging(4500, activationLagThreshold=str(activation)), QUICK)
    (one,) = (one for one in lags if not one.rounded)
    assert one.faithful(QUICK)
    assert (lag > one.applied) is (lag * 30 > activation)


def test_a_lag_below_what_is_in_flight_at_this_scale_alone_is_noted(caplog):
    """A pod of 100/s polls 5 messages, which stand for 150 at quick, and commits every 5 s: 650 at quick, 505 at real time."""
    workload = Workload(process_ms="10", concurrency=1)
    assert fidelity.in_flight(workload, QUICK) == pytest.approx(650)
    assert fidelity.in_flight(workload, fidelity.REAL) == pytest.approx(505)
    own = Workload(process_ms="10", concurrency=1, command="mine", rung=BLACK_BOX)
    assert fidelity.in_flight(own, QUICK) == pytest.approx(150 + 15_000)  # its commits stay 5 s apart
    told = replace(own, env="COMMITS=$(COMMIT_INTERVAL_MS)")
    assert fidelity.in_flight(told, QUICK) == pytest.approx(650)
    assert not list(fidelity.notes(lagging(450), QUICK, workload))  # below both: real time has the same noise
    assert not list(fidelity.notes(lagging(660), QUICK, workload))
    assert not list(fidelity.notes(lagging(600), scales.load("real"), workload))
    trial(workload=Workload(process_ms="20", concurrency=1, poll_ms=3000))  # experiment 6 takes seconds of work at a poll
    assert f"{LAG_4500}: {METADATA}.lagThreshold: a pod has up to " in caplog.text
    (note,) = fidelity.notes(lagging(600), QUICK, workload)
    assert note == (
        f"{METADATA}.lagThreshold: a pod has up to 650 messages in flight at scale quick and 505 at real time: "
        "only at the scale they exceed 600"
    )


def test_a_threshold_of_a_query_is_noted():
    """It may be a lag, which should be divided, or anything else; at real time nothing is."""
    policy = scaled([KAFKA, PROMETHEUS])
    (note,) = fidelity.notes(policy, QUICK, Workload())
    assert note.startswith("spec.triggers[1].metadata.threshold: 100 is not divided, as the query may be of anything;")
    assert not list(fidelity.notes(policy, scales.load("real"), Workload()))


def test_the_range_of_a_query_is_noted():
    """Two minutes of rates are an hour of the traffic at quick; a class of characters is no range."""
    query = 'sum(rate(x{topic=~"[0-9]+"}[2m]))'
    policy = scaled([KAFKA, PROMETHEUS | {"metadata": PROMETHEUS["metadata"] | {"query": query}}])
    (note,) = fidelity.notes(policy, QUICK, Workload())
    assert note.endswith("; its range [2m] spans 30 times as much of the traffic")


def test_the_lag_that_a_controller_goes_by_is_checked_too():
    """It is no ScaledObject."""
    content = yamlfile.load((paths.MANIFESTS / "controllers" / "controller-4500.yaml").read_text())
    content["spec"]["lagThreshold"] = 50
    said = refused(fidelity.check, policies.parse(content, "my.yaml"), QUICK, "my.yaml")
    assert said.startswith("my.yaml: spec.lagThreshold: '50 messages' | at scale quick")
