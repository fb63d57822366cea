"""A scale that can't stand for a policy's times refuses the policy, and says which scale can."""

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lab import paths
from lab.errors import InputError
from lab.spec import fidelity, inputs, scaledobject
from lab.spec import policy as policies
from lab.spec import scale as scales
from lab.spec.scale import Scale
from lab.spec.workload import Workload
from lab.trial.own import Own

LAG_150 = paths.MANIFESTS / "scaledobjects" / "lag-150.yaml"
BEHAVIOR = "spec.advanced.horizontalPodAutoscalerConfig.behavior"


def lag_150(**spec):
    """Policy lag-150 with fields of its spec changed."""
    content = yaml.safe_load(LAG_150.read_text())
    content["spec"] |= spec
    return scaledobject.parse(content, "lag-150.yaml")


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
    with pytest.raises(InputError) as refused:
        fidelity.check(lag_150(pollingInterval=15), at("quick"), "my.yaml", scales.declared())
    assert str(refused.value) == (
        "my.yaml: spec.pollingInterval: '15 s' is not allowed; allowed: at scale quick (time / 30) within 10% of a multiple of "
        "30 s: whole seconds make this one 30 s; or --scale medium or standard or close or real or full"
    )


def test_a_default_that_the_file_does_not_write_is_checked_too():
    """Kubernetes' own rules have periods of 15 s."""
    with pytest.raises(InputError, match=r"behavior.scaleUp.policies\[0\].periodSeconds: '15 s' is not allowed"):
        fidelity.check(lag_150(advanced={}), at("quick"), "my.yaml")


def test_a_trial_keeps_what_was_written_beside_what_was_applied():
    """Of every time; the record has them."""
    chosen = inputs.read("plateau", "lag-150", Workload(), 1, at("quick"), "binary")
    kept = {one.field: (one.written_s, one.applied_s) for one in chosen.policy_times}
    assert kept["spec.pollingInterval"] == (60, 2)
    assert kept[f"{BEHAVIOR}.scaleDown.stabilizationWindowSeconds"] == (300, 10)
    assert len(kept) == 7


def test_a_trial_refuses_the_policy_and_what_stands_beside():
    """Both decide replicas."""
    with pytest.raises(InputError, match="pollingInterval: '15 s' is not allowed"):
        inputs.read("plateau", paths.MANIFESTS / "payments" / "scaledobject.yaml", Workload(), 1, at("quick"), "binary")
    with pytest.raises(InputError, match="periodSeconds: '15 s' is not allowed"):
        inputs.read("plateau", "lag-150", Workload(), 1, at("quick"), "binary", beside=("ridehailing/driver-matching",))


def test_a_scaledobject_of_ones_own_gets_the_most_compressed_scale_that_fits():
    """A session that names no scale is not refused for it."""
    orders = paths.PROJECT / "docs" / "examples" / "orders.yaml"
    assert Own(scaledobject=LAG_150).scale() == at("quick")
    assert Own(scaledobject=orders).scale() == at("medium")
    assert Own().scale() == at("quick")


@given(polling=st.integers(1, 3600), time=st.floats(1, 100))
def test_faithful_means_within_a_tenth(polling, time):
    """Whatever the compression; real time is always faithful."""
    scale = Scale("any", time, 1)
    (one,) = (one for one in fidelity.times(lag_150(pollingInterval=polling), scale) if one.field == "spec.pollingInterval")
    assert one.applied_s >= 1
    error = abs(one.applied_s * time / polling - 1)
    if not math.isclose(error, fidelity.TOLERANCE):
        assert one.faithful(scale) is (error < fidelity.TOLERANCE)
    assert fidelity.is_faithful(lag_150(pollingInterval=polling), fidelity.REAL)
