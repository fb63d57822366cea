"""The hand-rolled controller's policy and decision: its hysteresis, its bounds; in all else it decides as the HPA does."""

import copy
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lab import paths, yamlfile
from lab.errors import InputError
from lab.inputs import controller, policy
from lab.inputs import scale as scales
from lab.inputs.controller import LagController
from lab.model import hpa, keda
from lab.model.hpa import State, decide_on_lag

FOLDER = paths.MANIFESTS / "controllers"
EVEN = yamlfile.read(FOLDER / "controller-4500.yaml")
LAGS = st.lists(st.integers(0, 150_000), min_size=1, max_size=40)


def parsed(**changes):
    """The committed policy with fields of its spec changed."""
    content = copy.deepcopy(EVEN)
    content["spec"] |= changes
    return controller.parse(content, "policy.yaml")


def walk(chosen, replicas, lags, every=15.0):
    """(replicas before, lag, replicas after) of each sync of a walk."""
    state, steps = State(), []
    for index, lag in enumerate(lags):
        decision, state = decide_on_lag(chosen, state, replicas, lag, index * every)
        steps.append((replicas, lag, decision.desired))
        replicas = decision.desired
    return steps


class TestDecision:
    """What a sync makes of a lag."""

    def test_it_scales_up_by_the_policies_and_says_why(self):
        """24 are wanted; the larger of 200 % and 8 pods from 4 allows 12, and the reasons say each step."""
        decision, _ = decide_on_lag(parsed(), State(), 4, 24 * 4500, 0.0)
        assert decision.desired == 12
        assert decision.limited == "ScaleUpLimit"
        text = "; ".join(decision.reasons)
        assert "108000 / (4500 x 4) = 6" in text
        assert "ceil(108000 / 4500) = 24" in text
        assert "ScaleUpLimit: 24 -> 12" in text

    @pytest.mark.parametrize(("down_at", "after"), [(0.9, [12, 12, 6]), (0.1, [12, 12, 12])])
    def test_a_busy_pod_is_no_surplus(self, down_at, after):
        """12,000 messages in flight on 12 pods are 0.22 of their threshold: surplus to a downAt of 0.9, work to one of 0.1."""
        steps = walk(parsed(downAt=down_at), 12, [12 * 4500, 12_000, 12_000], every=299.0)
        assert [desired for *_, desired in steps] == after

    def test_an_idle_group_is_given_back_after_the_window(self):
        """1,800 messages on 24 pods are 0.017: nothing for 300 s since there was work, then half, and half again 60 s later."""
        steps = walk(parsed(downAt=0.1), 24, [15_000] + [1_800] * 25)
        assert [desired for *_, desired in steps][:25] == [24] * 20 + [12] * 4 + [6]

    def test_a_deployment_at_0_is_left_there(self):
        """Whoever set it to 0 meant it; the HPA leaves it alone too."""
        assert decide_on_lag(parsed(), State(), 0, 300_000, 0.0)[0].desired == 0

    @pytest.mark.parametrize(("replicas", "desired"), [(30, 24), (2, 4)])
    def test_replicas_out_of_bounds_are_brought_back(self, replicas, desired):
        """Another hand's change is brought within minReplicas and maxReplicas at once."""
        assert decide_on_lag(parsed(), State(), replicas, 10 * 4500, 0.0)[0].desired == desired


class TestProperties:
    """What holds for every policy, start and walk."""

    @given(st.floats(1, 3), st.floats(0, 1), st.integers(4, 24), LAGS)
    def test_the_hysteresis_is_honoured(self, up_at, down_at, replicas, lags):
        """Up only above upAt, down only below downAt; between them nothing changes."""
        chosen = parsed(upAt=up_at, downAt=down_at)
        for before, lag, after in walk(chosen, replicas, lags):
            ratio = lag / (4500 * before)
            assume(abs(ratio - up_at) > 1e-6)  # a tolerance is a quantity: 1e-9 is its last digit
            assume(abs(ratio - down_at) > 1e-6)
            if after > before:
                assert ratio > up_at
            if after < before:
                assert ratio < down_at
            if down_at < ratio < up_at:
                assert after == before

    @given(st.integers(1, 40), st.integers(0, 40), st.integers(1, 100), LAGS)
    def test_replicas_stay_within_their_bounds(self, least, more, replicas, lags):
        """From wherever it starts, every sync asks for minReplicas to maxReplicas."""
        chosen = parsed(minReplicas=least, maxReplicas=least + more)
        assert all(least <= after <= least + more for *_, after in walk(chosen, replicas, lags))

    @given(st.integers(4, 24), LAGS, st.sampled_from([0.5, 15.0, 40.0]))
    def test_with_the_hpas_hysteresis_it_decides_as_kedas_hpa(self, replicas, lags, every):
        """Policy controller-4500 is lag-4500 by another hand: the same replicas at every sync, on the HPA that KEDA makes."""
        made = keda.hpa(policy.load(paths.MANIFESTS / "scaledobjects" / "lag-4500.yaml"), {"TOPIC": "events"})
        spec, state, current, expected = hpa.parse(made, "lag-4500"), State(), replicas, []
        for index, lag in enumerate(lags):
            decision, state = hpa.decide(spec, state, current, [hpa.external(lag)], index * every)
            current = decision.desired
            expected.append(current)
        assert [after for *_, after in walk(parsed(), replicas, lags, every)] == expected


class TestPolicy:
    """The YAML: read strictly, compressed by a scale."""

    def test_what_it_says_is_what_is_known(self):
        """Bounds, threshold, sync and target; no HPA acts for it."""
        given = policy.load(FOLDER / "controller-4500.yaml")
        assert isinstance(given, LagController)
        assert (given.min_replicas, given.max_replicas, given.start, given.hpa) == (4, 24, 4, None)
        assert (given.lag_threshold, given.sync_s, given.target, given.name) == (4500, 15.0, "consumer", "controller-4500")

    def test_a_scale_compresses_its_times_and_no_ratio(self):
        """At quick scale a sync of 15 s is one of 0.5 s, and 300 s of window are 10 s."""
        small: Any = policy.load(FOLDER / "controller-4500-held.yaml").compressed(scales.load("quick"))
        spec = small.content["spec"]
        assert (spec["syncSeconds"], spec["upAt"], spec["downAt"], spec["lagThreshold"]) == (0.5, 1.1, 0.06, 150)
        assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 10
        assert small.spec.behavior.up.policies[1].period_s == 1
        dense: Any = policy.load(FOLDER / "controller-4500.yaml").compressed(scales.Scale("dense", time=1, rate=4))
        assert dense.lag_threshold == 18_000

    def test_without_a_behavior_it_has_the_apis_defaults(self):
        """4 pods or 100 % per 15 s up; down without a limit but the window of 300 s."""
        content = copy.deepcopy(EVEN)
        del content["spec"]["behavior"]
        assert [after for *_, after in walk(controller.parse(content, "x"), 4, [300_000] * 3)] == [8, 16, 24]
        given = controller.parse(content, "x").compressed(scales.load("quick"))
        assert given.content["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 10

    def test_committed_policies_differ_from_kedas_in_what_they_say_they_do(self):
        """Floor, ceiling, threshold and behavior are those of lag-4500; only the held one has another hysteresis."""
        keda_spec = yamlfile.read(paths.MANIFESTS / "scaledobjects" / "lag-4500.yaml")["spec"]
        held = yamlfile.read(FOLDER / "controller-4500-held.yaml")["spec"]
        assert EVEN["spec"] == held | {"downAt": 0.9}
        assert EVEN["spec"]["behavior"] == keda_spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
        assert EVEN["spec"]["minReplicas"] == keda_spec["minReplicaCount"]
        assert EVEN["spec"]["maxReplicas"] == keda_spec["maxReplicaCount"]
        assert str(EVEN["spec"]["lagThreshold"]) == keda_spec["triggers"][0]["metadata"]["lagThreshold"]

    @pytest.mark.parametrize(
        ("change", "line"),
        [
            ({"lagThreshold": 0}, "spec.lagThreshold: 0 is not allowed; allowed: a number from 1 to 1e+09"),
            ({"lagThreshold": "150"}, "spec.lagThreshold: '150' is not allowed"),
            ({"minReplicas": 25}, "spec.minReplicas: 25 is not allowed; allowed: at most maxReplicas, 24"),
            ({"minReplicas": 0}, "spec.minReplicas: 0 is not allowed; allowed: a number from 1 to 100000"),
            ({"maxReplicas": None}, "spec.maxReplicas: None is not allowed"),
            ({"syncSeconds": 0}, "spec.syncSeconds: 0 is not allowed; allowed: a number from 0.1 to 3600"),
            ({"upAt": 0.9}, "spec.upAt: 0.9 is not allowed; allowed: a number from 1 to 1000"),
            ({"downAt": 1.2}, "spec.downAt: 1.2 is not allowed; allowed: a number from 0 to 1"),
            (
                {"scaleTargetRef": {}},
                "spec.scaleTargetRef.name: None is not allowed; allowed: the name of the Deployment that is scaled",
            ),
            ({"scaleTargetRef": {"name": "x", "kind": "Job"}}, "spec.scaleTargetRef.kind: 'Job' is not allowed"),
            ({"tolerance": 0.1}, "spec.tolerance: 0.1 is not allowed; allowed: one of the fields behavior, downAt, "),
            ({"behavior": {"scaleDwn": {}}}, "spec.behavior.scaleDwn: {} is not allowed"),
            ({"behavior": []}, "spec.behavior: [] is not allowed; allowed: a mapping"),
            (
                {"behavior": {"scaleDown": {"tolerance": "0.5"}}},
                "spec.behavior.scaleDown.tolerance: '0.5' is not allowed; allowed: none: downAt says it",
            ),
        ],
    )
    def test_a_bad_field_is_one_clear_line(self, change, line):
        """File, field, value and what is allowed."""
        with pytest.raises(InputError) as error:
            parsed(**change)
        assert str(error.value).startswith("policy.yaml: ")
        assert line in str(error.value)

    def test_another_kind_or_a_stray_field_is_refused(self):
        """It is not a Kubernetes object, and says so by having no apiVersion."""
        with pytest.raises(InputError, match="kind: 'ScaledObject' is not allowed; allowed: LagController"):
            controller.parse(EVEN | {"kind": "ScaledObject"}, "x")
        with pytest.raises(
            InputError, match="apiVersion: 'v1' is not allowed; allowed: one of the fields kind, metadata, spec"
        ):
            controller.parse(EVEN | {"apiVersion": "v1"}, "x")
