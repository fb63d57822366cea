"""A scale that can't stand for a policy's times refuses the policy, and says which scale can."""

import math

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from lab import paths, yamlfile
from lab.errors import InputError
from lab.inputs import fidelity, inputs, scaledobject
from lab.inputs import policy as policies
from lab.inputs import scale as scales
from lab.inputs.scale import Scale
from lab.inputs.workload import Workload
from lab.trial.user_files import UserFiles
from tests.unit.inputs.written import refused

LAG_4500 = paths.MANIFESTS / "scaledobjects" / "lag-4500.yaml"
METADATA = "spec.triggers[0].metadata"
BEHAVIOR = "spec.advanced.horizontalPodAutoscalerConfig.behavior"


def lag_4500(**spec):
    """Policy lag-4500 with fields of its spec changed."""
    content = yamlfile.load(LAG_4500.read_text())
    content["spec"] |= spec
    return scaledobject.parse(content, "lag-4500.yaml")


def lagging(threshold, **metadata):
    """Policy lag-4500 with another lagThreshold, and other metadata."""
    content = yamlfile.load(LAG_4500.read_text())
    content["spec"]["triggers"][0]["metadata"] |= {"lagThreshold": str(threshold)} | metadata
    return scaledobject.parse(content, "my.yaml")


def at(scale):
    """The scale of this name."""
    return scales.load(scale)


@pytest.mark.parametrize("path", sorted((paths.MANIFESTS / "scaledobjects").glob("*.yaml")), ids=lambda path: path.stem)
def test_policies_of_the_experiments_fit_quick(path):
    """The experiments run at quick."""
    assert fidelity.is_faithful(policies.load(path), at("quick"))


@pytest.mark.parametrize("path", sorted((paths.MANIFESTS / "payments").glob("*.yaml")), ids=lambda path: path.stem)
def test_policies_of_the_payments_text_fit_medium_and_not_quick(path):
    """Their author polls every 15 s; a thirtieth of that is half a second, which KEDA can't take."""
    policy = policies.load(path)
    assert fidelity.is_faithful(policy, at("medium"))
    assert not fidelity.is_faithful(policy, at("quick"))


def test_the_line_names_file_field_value_and_the_scales_that_fit():
    """Before anything starts."""
    assert refused(fidelity.check, lag_4500(pollingInterval=15), at("quick"), "my.yaml", scales.declared()) == (
        "my.yaml: spec.pollingInterval: '15 s' | at scale quick (time / 30) within 10% of a multiple of "
        "30 s: whole seconds make this one 30 s; or --scale medium or standard or close or real"
    )


def test_a_default_that_the_file_does_not_write_is_checked_too():
    """Kubernetes' own rules have periods of 15 s."""
    with pytest.raises(InputError, match=r"behavior.scaleUp.policies\[0\].periodSeconds: '15 s' is not allowed"):
        fidelity.check(lag_4500(advanced={}), at("quick"), "my.yaml")


def test_a_trial_keeps_what_was_written_beside_what_was_applied():
    """Of every time; the record has them."""
    chosen = inputs.read("plateau", "lag-4500", Workload(), 1, at("quick"), "binary")
    kept = {one.field: (one.written_s, one.applied_s) for one in chosen.policy_times}
    assert kept["spec.pollingInterval"] == (60, 2)
    assert kept[f"{BEHAVIOR}.scaleDown.stabilizationWindowSeconds"] == (300, 10)
    assert len(kept) == 7
    kept = {one.field: (one.written, one.applied) for one in chosen.policy_lags}
    assert kept == {f"{METADATA}.lagThreshold": (4500, 150), f"{METADATA}.activationLagThreshold": (0, 0)}


def test_a_trial_refuses_the_policy_and_what_stands_beside():
    """Both decide replicas."""
    with pytest.raises(InputError, match="pollingInterval: '15 s' is not allowed"):
        inputs.read("plateau", paths.MANIFESTS / "payments" / "scaledobject.yaml", Workload(), 1, at("quick"), "binary")
    with pytest.raises(InputError, match="periodSeconds: '15 s' is not allowed"):
        inputs.read("plateau", "lag-4500", Workload(), 1, at("quick"), "binary", beside=("ridehailing/driver-matching",))


def test_a_scaledobject_of_ones_own_gets_the_most_compressed_scale_that_fits():
    """A session that names no scale is not refused for it."""
    orders = paths.PROJECT / "docs" / "examples" / "orders.yaml"
    assert UserFiles(scaledobject=LAG_4500).scale() == at("quick")
    assert UserFiles(scaledobject=orders).scale() == at("medium")
    assert UserFiles().scale() == at("quick")


def test_the_scale_that_fits_keeps_the_lag_above_what_is_in_flight(tmp_path):
    """The default pod does 1,000 messages/s: at quick 6,500 are in flight, at medium 5,750, and 5,050 at real time."""
    file = tmp_path / "my.yaml"
    file.write_text(yaml.safe_dump(lagging(6000).content))
    assert UserFiles(scaledobject=file).scale() == at("medium")


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
    assert refused(fidelity.check, lagging(50), at("quick"), "my.yaml", scales.declared()) == (
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
    (one,) = (
        one for one in fidelity.lags(lagging(4500, activationLagThreshold=str(activation)), at("quick")) if not one.rounded
    )
    assert one.faithful(at("quick"))
    assert (lag > one.applied) is (lag * 30 > activation)


def test_a_lag_below_what_is_in_flight_at_this_scale_alone_is_noted():
    """A pod of 100/s polls 5 messages, which stand for 150 at quick, and commits every 5 s: 650 at quick, 505 at real time."""
    workload = Workload(process_ms="10", concurrency=1)
    assert fidelity.in_flight(workload, at("quick")) == pytest.approx(650)
    assert fidelity.in_flight(workload, fidelity.REAL) == pytest.approx(505)
    assert not list(fidelity.notes(lagging(450), at("quick"), workload))  # below both: real time has the same noise
    assert not list(fidelity.notes(lagging(660), at("quick"), workload))
    assert not list(fidelity.notes(lagging(600), at("real"), workload))
    (note,) = fidelity.notes(lagging(600), at("quick"), workload)
    assert note == (
        f"{METADATA}.lagThreshold: a pod has up to 650 messages in flight at scale quick and 505 at real time: "
        "only at the scale they exceed 600"
    )


def test_a_threshold_of_a_query_is_noted():
    """It may be a lag, which should be divided, or anything else; at real time nothing is."""
    content = yamlfile.load(LAG_4500.read_text())
    query = {"serverAddress": "http://prometheus:9090", "query": "sum(waiting)", "threshold": "100"}
    content["spec"]["triggers"].append({"type": "prometheus", "metadata": query})
    policy = scaledobject.parse(content, "my.yaml")
    (note,) = fidelity.notes(policy, at("quick"), Workload())
    assert note.startswith("spec.triggers[1].metadata.threshold: 100 is not divided, as the query may be of anything;")
    assert not list(fidelity.notes(policy, at("real"), Workload()))


def test_what_is_noted_is_told_before_the_trial(caplog):
    """In one line that names the file: experiment 6 takes seconds of work at a poll, and is about that."""
    inputs.read("plateau", "lag-4500", Workload(process_ms="20", concurrency=1, poll_ms=3000), 1, at("quick"), "binary")
    (line,) = [one.getMessage() for one in caplog.records if "in flight" in one.getMessage()]
    assert line.startswith(f"{LAG_4500}: {METADATA}.lagThreshold: a pod has up to ")


def test_the_lag_that_a_controller_goes_by_is_checked_too():
    """It is no ScaledObject."""
    content = yamlfile.load((paths.MANIFESTS / "controllers" / "controller-4500.yaml").read_text())
    content["spec"]["lagThreshold"] = 50
    with pytest.raises(InputError, match=r"spec\.lagThreshold: '50 messages' is not allowed; allowed: at scale quick"):
        fidelity.check(policies.parse(content, "my.yaml"), at("quick"), "my.yaml")


def test_the_interval_between_commits_is_compressed_with_the_lag():
    """What is not committed yet counts as lag, so the ratio of both is that of real time."""
    assert Workload().environment(at("quick"))["COMMIT_INTERVAL_MS"] == "167"
    assert Workload().environment(at("medium"))["COMMIT_INTERVAL_MS"] == "333"
    assert Workload().environment(fidelity.REAL)["COMMIT_INTERVAL_MS"] == "5000"
