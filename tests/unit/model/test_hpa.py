"""The HPA model by itself: the documented facts, what it refuses, and what holds for every spec and every walk."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import InputError
from lab.inputs import hpa_spec
from lab.model import hpa

T = 100  # lagThreshold
LAG = {"type": "External", "external": {"metric": {"name": "lag"}, "target": {"type": "AverageValue", "averageValue": str(T)}}}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}


def yaml(metrics=(LAG,), least=1, most=100, **spec):
    """An HPA's content."""
    spec |= {"minReplicas": least, "maxReplicas": most, "metrics": list(metrics)}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": spec}


def parsed(*args, **spec):
    """The same, as the model takes it."""
    return hpa.parse(yaml(*args, **spec), "hpa.yaml")


def walk(spec, replicas, lags, every=15.0):
    """The replicas after each sync of a walk; a lag of None is a metric that can't be had."""
    state, series = hpa.State(), []
    for index, lag in enumerate(lags):
        observed = [None if lag is None else hpa.external(lag)]
        decision, state = hpa.decide(spec, state, replicas, observed, index * every)
        replicas = decision.desired
        series.append(replicas)
    return series


class TestFacts:
    """What the documentation and the source say, as numbers."""

    def test_from_2_to_24_with_the_defaults_of_a_behavior(self):
        """Max of 4 pods and 100 % per 15 s: three steps, the third 30 s after the first."""
        assert walk(parsed(behavior={}), 2, [24 * T] * 4) == [6, 12, 24, 24]

    def test_from_2_to_24_without_a_behavior(self):
        """No behavior at all is another rule, max(2 x replicas, 4): four steps."""
        assert walk(parsed(), 2, [24 * T] * 5) == [4, 8, 16, 24, 24]

    def test_with_min_0_an_hpa_puts_to_sleep_and_wakes(self):
        """No lag for a window of two syncs: to 0. One message is a pod, and more lag gets what the policies let it have."""
        down = {"stabilizationWindowSeconds": 30, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}
        spec = parsed(least=0, behavior={"scaleDown": down})
        assert walk(spec, 2, [0] * 4) == [2, 2, 1, 0]
        assert walk(spec, 1, [0, 0, 0, 0, 1, 1]) == [1, 1, 0, 0, 1, 1]
        assert walk(spec, 1, [0, 0, 0, 24 * T, 24 * T]) == [1, 1, 0, 4, 8]
        assert walk(spec, 1, [0, 0, 0, None]) == [1, 1, 0, 0]

    def test_an_hpa_wakes_only_what_it_has_put_to_sleep(self):
        """A target that begins at 0 stays there, whatever the lag: ScaledToZero is not set."""
        assert walk(parsed(least=0, behavior={}), 0, [24 * T] * 3) == [0, 0, 0]
        assert walk(parsed(behavior={}), 0, [24 * T] * 3) == [0, 0, 0]

    @pytest.mark.parametrize(("replicas", "then"), [(21, 24), (22, 22), (23, 23)])
    def test_at_the_cap_22_and_23_of_24_stand_still(self, replicas, then):
        """KEDA caps the metric at P x T; 24 / 22 = 1.09 is within the tolerance of 0.1."""
        assert walk(parsed(behavior={}), replicas, [24 * T] * 3)[-1] == then

    def test_a_scale_up_tolerance_of_0_ends_the_standstill(self):
        """The documented cure, per direction since 1.33."""
        assert walk(parsed(behavior={"scaleUp": {"tolerance": "0"}}), 22, [24 * T]) == [24]

    def test_p_plus_1(self):
        """Between P x T and (P + 1) x T the HPA asks for P + 1 from below, and the tolerance keeps it afterwards."""
        assert walk(parsed(behavior={}), 20, [24.5 * T, 24.5 * T, 24 * T]) == [25, 25, 25]

    def test_the_window_up_takes_the_smallest_recommendation(self):
        """A spike shorter than the window adds nothing; the first recommendation is what there was."""
        rules = {"scaleUp": {"stabilizationWindowSeconds": 60}}
        assert walk(parsed(behavior=rules), 2, [10 * T, 10 * T, 3 * T, 10 * T, 10 * T, 10 * T]) == [2, 2, 2, 2, 3, 3]

    def test_the_window_down_takes_the_largest_recommendation(self):
        """300 s unless told otherwise: 10 replicas stay until the sync at 300 s after the last that asked for them."""
        lags = [10 * T] * 2 + [T] * 30
        assert walk(parsed(behavior={}), 10, lags).index(1) * 15 == 315

    def test_without_a_behavior_the_windows_edge_still_counts(self):
        """``stabilizeRecommendation`` compares with Before: one sync more than with a behavior."""
        assert walk(parsed(), 10, [10 * T] * 2 + [T] * 30).index(1) * 15 == 330

    def test_without_a_behavior_the_window_also_scales_up(self):
        """The largest recommendation of the window, out of reach in one step, is followed after the lag is gone."""
        assert walk(parsed(), 2, [24 * T, T, T, T]) == [4, 8, 16, 24]
        assert walk(parsed(behavior={}), 2, [24 * T, T, T, T]) == [6, 6, 6, 6]

    def test_policies(self):
        """2 pods per 60 s, by a select policy of Min against 100 %."""
        policies = [{"type": "Pods", "value": 2, "periodSeconds": 60}, {"type": "Percent", "value": 100, "periodSeconds": 15}]
        spec = parsed(behavior={"scaleUp": {"policies": policies, "selectPolicy": "Min"}})
        assert walk(spec, 1, [50 * T] * 10) == [2, 3, 3, 3, 4, 5, 5, 5, 6, 7]

    def test_disabled(self):
        """A direction that is Disabled stays where it is."""
        spec = parsed(behavior={"scaleDown": {"selectPolicy": "Disabled", "stabilizationWindowSeconds": 0}})
        assert walk(spec, 5, [T, T, 7 * T, T]) == [5, 5, 7, 7]

    def test_a_metric_that_fails_forbids_scaling_down_only(self):
        """The others still scale up."""
        spec = parsed(metrics=(LAG, LAG), behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
        fewer, _ = hpa.decide(spec, hpa.State(), 5, [hpa.external(T), None], 0)
        more, _ = hpa.decide(spec, hpa.State(), 5, [None, hpa.external(7 * T)], 0)
        none, _ = hpa.decide(spec, hpa.State(), 5, [None, None], 0)
        assert (fewer.desired, fewer.failed) == (5, True)
        assert (more.desired, more.failed) == (7, False)
        assert (none.desired, none.failed) == (5, True)

    def test_the_largest_proposal_wins(self):
        """And each is kept."""
        decision, _ = hpa.decide(parsed(metrics=(LAG, LAG, LAG)), hpa.State(), 5, [hpa.external(n * T) for n in (3, 9, 4)], 0)
        assert (decision.desired, decision.proposals) == (9, (3, 9, 4))

    def test_outside_of_min_and_max(self):
        """The metrics are not even looked at; 0 replicas switch the HPA off."""
        spec = parsed(least=2, most=8)
        assert [walk(spec, replicas, [None])[0] for replicas in (0, 1, 2, 8, 9)] == [0, 2, 2, 8, 8]

    @pytest.mark.parametrize(
        ("spec", "replicas", "lag", "reason"),
        [
            (parsed(least=3), 5, 0, "TooFewReplicas"),
            (parsed(most=6), 5, 50 * T, "TooManyReplicas"),
            (parsed(), 5, 50 * T, "ScaleUpLimit"),
            (parsed(), 5, 6 * T, None),
            (
                parsed(behavior={"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 9}]}}),
                5,
                T,
                "ScaleDownLimit",
            ),
        ],
    )
    def test_limited(self, spec, replicas, lag, reason):
        """The reason of ScalingLimited, once nothing of the window is left."""
        _, state = hpa.decide(spec, hpa.State(), replicas, [hpa.external(lag)], 0)
        decision, _ = hpa.decide(spec, state, replicas, [hpa.external(lag)], 1000)
        assert decision.limited == reason

    def test_a_value_target_counts_ready_pods(self):
        """And a target without any pod fails the metric."""
        metric = {"type": "External", "external": {"metric": {"name": "lag"}, "target": {"type": "Value", "value": "1k"}}}
        spec = parsed(metrics=(metric,))
        pods = [hpa.Pod("a"), hpa.Pod("b"), hpa.Pod("c", ready=False), hpa.Pod("d", phase="Pending")]
        some, _ = hpa.decide(spec, hpa.State(), 4, [hpa.external(3000)], 0, pods=pods)
        none, _ = hpa.decide(spec, hpa.State(), 4, [hpa.external(3000)], 0, pods=[])
        assert (some.desired, none.failed) == (6, True)

    def test_cpu(self):
        """Missing pods count as idle on the way up, as full on the way down; pods not ready yet as idle on the way up."""
        spec = parsed(metrics=(CPU,), behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
        pods = [hpa.Pod(name) for name in "abcd"]

        def desired(pods, **milli):
            usage = {name: hpa.Usage(value, at=995) for name, value in milli.items()}
            return hpa.decide(spec, hpa.State(), 4, [usage], 1000, pods=pods)[0].desired

        assert desired(pods, a=1000, b=1000, c=1000, d=1000) == 8
        assert desired(pods, a=1000, b=1000, c=1000) == 6
        assert desired(pods, a=100, b=100, c=100, d=100) == 1
        assert desired(pods, a=100, b=100, c=100) == 3
        late = [*pods[:3], hpa.Pod("d", ready=False, started=990, ready_changed=990)]
        assert desired(late, a=1000, b=1000, c=1000, d=1000) == 6
        assert desired([], a=1000) == 4

    def test_the_log_can_be_read(self):
        """With every number that went into the decision."""
        rules = {"scaleUp": {"stabilizationWindowSeconds": 0}}
        decision, _ = hpa.decide(parsed(behavior=rules), hpa.State(), 2, [hpa.external(2400)], 0)
        assert decision.reasons == (
            "External lag: 2400 / (100 x 2) = 12, not within 0.9 to 1.1: ceil(2400 / 100) = 24",
            "scaleUp Max of Pods 4 per 15 s from 2 -> 6, Percent 100 per 15 s from 2 -> 4: 6",
            "ScaleUpLimit: 24 -> 6",
            "2 -> 6",
        )


class TestParsing:
    """The YAML, its defaults and its refusals."""

    def test_defaults(self):
        """Those of the API server: 1 replica, 80 % of the CPU, both directions of a behavior as soon as there is one."""
        spec = hpa.parse(yaml(metrics=()), "hpa.yaml")
        assert (spec.min_replicas, spec.behavior) == (1, None)
        assert spec.metrics == (hpa.Metric("Resource", "cpu", "Utilization", 80),)
        behavior = parsed(behavior={"scaleUp": None}).behavior
        assert behavior == hpa.Behavior(
            hpa.Rules(0, "Max", (hpa.Policy("Pods", 4, 15), hpa.Policy("Percent", 100, 15))),
            hpa.Rules(None, "Max", (hpa.Policy("Percent", 100, 15),)),
        )

    @pytest.mark.parametrize(
        ("content", "field", "value"),
        [
            ({"minReplicas": -1}, "spec.minReplicas", -1),
            ({"minReplicas": 0, "metrics": []}, "spec.minReplicas", 0),
            ({"minReplicas": 9, "maxReplicas": 8}, "spec.minReplicas", 9),
            ({"maxReplicas": None}, "spec.maxReplicas", None),
            ({"replicas": 3}, "spec.replicas", 3),
            ({"metrics": [{"type": "Object"}]}, "spec.metrics[0].type", "Object"),
            ({"metrics": [LAG | {"resource": {}}]}, "spec.metrics[0].resource", {}),
            ({"metrics": [{"type": "External", "external": {"target": {}}}]}, "spec.metrics[0].external.metric", None),
            ({"metrics": "lag"}, "spec.metrics", "lag"),
            ({"behavior": []}, "spec.behavior", []),
            ({"behavior": {"scaleUp": {"policies": []}}}, "spec.behavior.scaleUp.policies", []),
            ({"behavior": {"scaleUp": {"selectPolicy": "Most"}}}, "spec.behavior.scaleUp.selectPolicy", "Most"),
            ({"behavior": {"scaleDown": {"tolerance": "-0.1"}}}, "spec.behavior.scaleDown.tolerance", "-0.1"),
            ({"behavior": {"scaleDown": {"tolerance": "10%"}}}, "spec.behavior.scaleDown.tolerance", "10%"),
            (
                {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 3601}}},
                "spec.behavior.scaleDown.stabilizationWindowSeconds",
                3601,
            ),
            (
                {"behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 15}]}}},
                "spec.behavior.scaleUp.policies[0].value",
                0,
            ),
        ],
    )
    def test_refusals_name_file_field_value_and_what_is_allowed(self, content, field, value):
        """One line each."""
        document = yaml()
        document["spec"] |= content
        with pytest.raises(InputError) as refused:
            hpa.parse(document, "hpa.yaml")
        assert (refused.value.where, refused.value.field, refused.value.value) == ("hpa.yaml", field, value)

    @pytest.mark.parametrize("target", [{"type": "Value", "averageValue": "5"}, {"type": "AverageValue", "averageValue": "-5"}])
    def test_targets_that_are_ignored_or_not_positive(self, target):
        """The controller would read another field than the type says."""
        metric = {"type": "External", "external": {"metric": {"name": "lag"}, "target": target}}
        with pytest.raises(InputError, match=r"spec.metrics\[0\].external.target"):
            parsed(metrics=(metric,))

    @pytest.mark.parametrize(
        ("text", "milli"),
        [
            ("100", 100_000),
            ("1500m", 1500),
            ("1k", 10**6),
            ("2Ki", 2_048_000),
            ("1e3", 10**6),
            (0.5, 500),
            ("1u", 1),
            ("5.", 5000),
        ],
    )
    def test_quantities(self, text, milli):
        """In milli-units, rounded up."""
        assert hpa_spec.milli(hpa_spec.parse_quantity(text)) == milli

    @pytest.mark.parametrize("text", ["", "ten", "1 k", "0x10", "1K", None, True, math.inf])
    def test_no_quantities(self, text):
        """What the API server can't parse either ("1K" is Ki or k)."""
        with pytest.raises(ValueError, match="not a quantity"):
            hpa_spec.parse_quantity(text)

    def test_too_few_values_are_a_mistake_of_the_caller(self):
        """As are a Resource metric without pods."""
        with pytest.raises(ValueError, match="0 observed values for 1 metrics"):
            hpa.decide(parsed(), hpa.State(), 1, [], 0)
        with pytest.raises(TypeError, match="pods"):
            hpa.decide(parsed(metrics=(CPU,)), hpa.State(), 1, [{}], 0)


POLICIES = st.builds(hpa.Policy, st.sampled_from(["Pods", "Percent"]), st.integers(1, 120), st.just(60))


def rules(selects=("Max", "Min", "Disabled")):
    """Rules of one direction; one period for all, so that no event is forgotten before every policy is done with it."""
    policies = st.lists(POLICIES, min_size=1, max_size=3).map(tuple)
    tolerance = st.none() | st.sampled_from([0.0, 0.05, 0.5])
    return st.builds(hpa.Rules, st.sampled_from([0, 20, 60, 300]), st.sampled_from(selects), policies, tolerance)


@st.composite
def specs(draw):
    """An HPA on lag with or without a behavior."""
    least = draw(st.integers(1, 10))
    behavior = draw(st.none() | st.builds(hpa.Behavior, rules(), rules()))
    metric = hpa.Metric("External", "lag", "AverageValue", T * 1000)
    return hpa.HpaSpec(least, least + draw(st.integers(0, 40)), (metric,), behavior)


WALKS = st.lists(
    st.tuples(st.sampled_from([1, 15, 15, 15, 20, 59, 60, 61, 300]), st.integers(0, 60 * T)), min_size=1, max_size=40
)


def decided(spec, replicas, steps):
    """Every sync of a walk: its time, the replicas before it, the decision."""
    state, now = hpa.State(), 0
    for advance, lag in steps:
        now += advance
        decision, state = hpa.decide(spec, state, replicas, [hpa.external(lag)], now)
        yield now, replicas, decision
        replicas = decision.desired


class TestProperties:
    """For every spec and every walk."""

    @given(specs(), st.integers(0, 60), WALKS)
    def test_never_outside_of_min_and_max(self, spec, replicas, steps):
        """Except for 0, which switches the HPA off."""
        for _, before, decision in decided(spec, replicas, steps):
            assert spec.min_replicas <= decision.desired <= spec.max_replicas or before == decision.desired == 0

    @given(specs(), WALKS)
    def test_never_faster_than_the_policies_allow(self, spec, steps):
        """Counted again from the replicas themselves: those at the start of the period, and what each policy makes of them."""
        series = [(-math.inf, spec.min_replicas)]
        for now, before, decision in decided(spec, spec.min_replicas, steps):
            start = next(replicas for at, replicas in reversed(series) if at <= now - 60)
            series.append((now, decision.desired))
            if spec.behavior is None:
                assert decision.desired <= max(2 * before, 4)
                continue
            for direction, sign in ((spec.behavior.up, 1), (spec.behavior.down, -1)):
                step = sign * (decision.desired - before)
                if step <= 0:
                    continue
                assert direction.select != "Disabled"
                sizes = [p.value if p.type == "Pods" else start * p.value / 100 for p in direction.policies]
                allowed = (max if direction.select == "Max" else min)(sizes)
                assert sign * (decision.desired - start) < allowed + 1

    @given(specs(), WALKS)
    def test_the_windows_are_honoured(self, spec, steps):
        """No step up beyond the smallest, no step down below the largest proposal that its window still holds."""
        proposals = []
        for now, before, decision in decided(spec, spec.min_replicas, steps):
            proposals.append((now, decision.proposals[0]))
            behavior = spec.behavior
            down = 300 if behavior is None else behavior.down.window_s
            if behavior is not None and decision.desired > before:
                up = behavior.up.window_s
                assert decision.desired <= min(count for at, count in proposals if at > now - up or at == now)
            if decision.desired < before:
                largest = max(count for at, count in proposals if at > now - down or at == now)
                assert decision.desired >= min(largest, spec.max_replicas)

    @given(specs(), st.integers(1, 50), WALKS, st.lists(st.integers(0, 60 * T), min_size=2, max_size=9).map(sorted))
    def test_more_lag_never_means_fewer_replicas(self, spec, replicas, steps, lags):
        """One sync, whatever was before it."""
        state, now = hpa.State(), 0
        for advance, lag in steps:
            now += advance
            decision, state = hpa.decide(spec, state, replicas, [hpa.external(lag)], now)
            replicas = decision.desired
        series = [hpa.decide(spec, state, replicas, [hpa.external(lag)], now + 15)[0].desired for lag in lags]
        assert all(few <= many for few, many in itertools.pairwise(series))
