"""Tuning: how late a group is, exactly; which policies no other beats; and one recommended for reasons that hold."""

import copy
import itertools
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lab import paths, yamlfile
from lab.errors import InputError
from lab.foresee import variants
from lab.foresee.choice import AS_DEAR, Outcome, front, ordered, outcomes, recommend, steady, tolerance, worst_outcome
from lab.foresee.curve import Arrivals, Curve, ages, late, worst_age
from lab.foresee.group import Consumers
from lab.foresee.situation import Situation
from lab.foresee.variants import Variant, with_changes
from lab.inputs import scaledobject
from lab.inputs.hpa_spec import Policy
from lab.inputs.profile import Profile, Step
from tests.thoroughness import examples

ORDERS = paths.PROJECT / "docs" / "examples" / "orders.yaml"
SPLIT = 1000  # the oracle looks at so many moments
STEEP = (Step(0, 200, "baseline"), Step(120, 2000, "burst"), Step(240, 200, "lull"))


def orders(**spec):
    """The example ScaledObject with fields of its spec changed."""
    content = yamlfile.read(ORDERS)
    content["spec"] |= spec
    return scaledobject.parse(content, "orders.yaml")


def situation(steps=STEEP, duration=900.0, partitions=12, rate=200.0):
    """Even traffic on pods of 200 messages/s."""
    return Situation(Profile(steps, duration), np.full(partitions, 1 / partitions), Consumers(rate, 3.0), tail_s=1800.0)


def lagging(t, lag):
    """A curve of this lag, whatever the replicas."""
    nothing = np.zeros(len(t), dtype=int)
    return Curve(np.array(t), np.array(lag), nothing, nothing)


PAUSED = (
    Profile((Step(0, 1, "on"), Step(1, 0, "off"), Step(4, 1, "on"), Step(5, 0, "off")), 6),
    lagging([0.0, 1.0, 4.0, 5.0, 6.0], [0.0, 1.0, 0.125, 0.25, 0.25]),
)
ROUNDED = (  # all of the first step's events but a rounding are processed when the pause begins, and until the end
    Profile((Step(0, 100, "on"), Step(1, 0, "off"), Step(3, 7, "on")), 4),
    lagging([0.0, 1.0, 3.0, 4.0], [0.0, 1.5e-14, 1.5e-14, 7.0 + 1.5e-14]),
)


@st.composite
def groups(draw):
    """(profile, curve): any traffic, pauses and all, and a group that has processed anything up to what has come."""
    lengths = draw(st.lists(st.integers(1, 60), min_size=1, max_size=6))
    rates = draw(st.lists(st.sampled_from([0.0, 1.0, 7.0, 100.0, 900.0]), min_size=len(lengths), max_size=len(lengths)))
    edges = np.cumsum([0, *lengths]).astype(float)
    profile = Profile(tuple(Step(at, rate, "step") for at, rate in zip(edges, rates, strict=False)), edges[-1])
    more = draw(st.lists(st.floats(0.0, float(edges[-1])), max_size=8))
    t = np.union1d(edges, more)
    came = Arrivals(profile).by(t)
    parts = draw(st.lists(st.floats(0.0, 1.0), min_size=len(t), max_size=len(t)))
    done = np.maximum.accumulate(came * np.array(parts))
    return profile, lagging(t, came - done)


def oldest(profile, curve, t):
    """The age of the oldest unprocessed event at ``t``: the steps are gone through one by one."""
    ends = [*(one.at for one in profile.steps[1:]), profile.duration]
    came = sum(step.rate * max(0.0, min(t, end) - step.at) for step, end in zip(profile.steps, ends, strict=True))
    counts = Arrivals(profile).by(curve.t) - curve.lag
    left = float(np.interp(t, curve.t, counts))
    if left >= came - 1e-6:
        return 0.0
    for step, end in zip(profile.steps, ends, strict=True):
        if left < step.rate * (end - step.at) - 1e-6:  # to a rounding all of a step's events is all of them
            return max(0.0, t - step.at - left / step.rate)
        left -= step.rate * (end - step.at)
    raise AssertionError("something waits that never came")


class TestLateness:
    """The age of the oldest unprocessed event."""

    @example(ROUNDED)
    @given(groups())
    def test_the_age_is_that_of_the_event_after_the_last_processed(self, group):
        """At each corner of the curve as a loop over the steps finds it."""
        profile, curve = group
        for t, age in zip(*ages(curve, Arrivals(profile)), strict=True):
            near = [oldest(profile, curve, min(max(t + shift, 0.0), profile.duration)) for shift in (-1e-4, 0.0, 1e-4)]
            assert min(near) - 1e-2 <= age <= max(near) + 1e-2

    @settings(max_examples=examples(60), deadline=None)
    @example(ROUNDED, 0.5)
    @example(PAUSED, 0.5)  # the last event before a pause goes at 4.14 s, between two points of the curve, 3.14 s old
    @given(groups(), st.sampled_from([0.5, 2.0, 13.0]))
    def test_the_time_late_and_the_worst_age_are_those_of_many_moments(self, group, objective_s):
        """Looked at in SPLIT moments each may be off by a few of them: an age rises by no more than the time that passes."""
        profile, curve = group
        part = profile.duration / SPLIT
        seen = [oldest(profile, curve, (index + 0.5) * part) for index in range(SPLIT)]
        corners = len(curve.t) + len(profile.steps) + 2
        arrivals = Arrivals(profile)
        assert abs(late(curve, arrivals, objective_s) - part * sum(age > objective_s for age in seen)) <= part * corners
        assert max(seen) - 1e-3 <= worst_age(curve, arrivals) <= max(seen) + 2 * part + 1e-3


def made(late_s, pod_minutes, flips=0, changes=0):
    """An outcome with these figures."""
    variant = Variant({f"field {number}": number for number in range(changes)}, None)
    return Outcome(variant, late_s, pod_minutes, flips, 0.0, 0.0, 0, 0)


figures = st.builds(made, st.integers(0, 5), st.integers(1, 6), st.integers(0, 2), st.integers(0, 3))


def beats(one, other):
    """Whether ``one`` is no later and no dearer than ``other``, and not equal in both: Pareto's dominance."""
    ours, theirs = (one.late_s, one.pod_minutes), (other.late_s, other.pod_minutes)
    return ours != theirs and ours[0] <= theirs[0] and ours[1] <= theirs[1]


class TestFront:
    """Which outcomes no other beats."""

    @given(st.lists(figures, min_size=1, max_size=30))
    def test_no_point_of_it_is_beaten_and_each_other_is(self, found):
        """One that is not on the front is beaten by one that is, or has its figures; on the front a dearer one is less late."""
        best = front(found)
        assert all(left.pod_minutes < right.pod_minutes for left, right in pairwise(best))
        assert not any(beats(one, other) for one in found for other in best)
        for one in found:
            same = any((one.late_s, one.pod_minutes) == (other.late_s, other.pod_minutes) for other in best)
            assert same or any(beats(other, one) for other in best)

    @given(st.lists(figures, min_size=1, max_size=30))
    def test_the_first_choice_is_calm_as_late_as_the_best_and_among_the_cheapest(self, found):
        """Of those that are as dear, none has fewer changes."""
        first, calm = ordered(found)[0], steady(found)
        best = min(one.late_s for one in calm)
        as_late = [one for one in calm if one.late_s <= best + tolerance(best)]
        cheapest = min(one.pod_minutes for one in as_late)
        assert first in as_late
        assert first.pod_minutes <= cheapest * (1 + AS_DEAR)
        equal = [one for one in as_late if one.pod_minutes <= cheapest * (1 + AS_DEAR)]
        assert len(first.variant.changes) == min(len(one.variant.changes) for one in equal)


class TestVariants:
    """What is tried."""

    def test_the_given_one_is_first_and_none_comes_twice(self):
        """At most as many as asked for, the same in every run, each within bounds that KEDA takes."""
        tried, again = ([one.changes for one in variants.variants(orders(), situation(), 2.0, 300)] for _ in range(2))
        assert len({tuple(sorted(one.items())) for one in tried}) == len(tried) == 300
        assert tried == again
        assert tried[0] == {}
        assert {variants.THRESHOLD: 300} in tried  # 200/s x 2 s x 0.75
        assert {variants.MOST: 10} in tried  # 2,000/s need 10 pods of 200/s

    def test_a_window_that_outlasts_lull_and_burst_is_tried(self):
        """Bursts of 120 s every 420 s: from the end of one to the end of the next it is 420 s, and a minute more."""
        bursts = [step for at in (120, 540, 960) for step in (Step(at, 2000, "burst"), Step(at + 120, 200, "lull"))]
        tried = variants.variants(orders(), situation((Step(0, 200, "baseline"), *bursts), 1500), 2.0, 100)
        assert {variants.DOWN_WINDOW: 480} in [one.changes for one in tried]

    def test_only_the_changed_fields_change(self):
        """The user's own YAML, with two values and a block that was not there."""
        given = orders(advanced={})
        before = copy.deepcopy(given.content)
        made = with_changes(given, {variants.THRESHOLD: 300, variants.UP_POLICIES: (Policy("Pods", 2, 30),)}).scaled.content
        assert given.content == before
        before["spec"]["triggers"][0]["metadata"]["lagThreshold"] = "300"
        written = {"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 30}]}}
        before["spec"]["advanced"] = {"horizontalPodAutoscalerConfig": {"behavior": written}}
        assert made == before

    def test_another_trigger_is_refused(self):
        """The scaler is not known, and there is no lagThreshold to tune."""
        other = {"type": "external", "metadata": {"scalerAddress": "queue:6000"}}
        with pytest.raises(InputError, match=r"spec.triggers: \['external'\]"):
            variants.variants(orders(triggers=[other]), situation(), 2.0)


def query(text="sum(kafka_consumergroup_lag)"):
    """A prometheus trigger of threshold 1000."""
    return {"type": "prometheus", "metadata": {"serverAddress": "http://p:9090", "query": text, "threshold": "1000"}}


class TestQuery:
    """The threshold of a prometheus trigger."""

    @pytest.mark.parametrize(
        ("text", "centre"),
        [("sum(kafka_consumergroup_lag) > 1", 300), ("sum(rate(kafka_topic_partition_current_offset[5m]))", 200)],
    )
    def test_it_is_tuned_as_a_lag_threshold_or_around_what_a_pod_does(self, text, centre):
        """200/s x 2 s x 0.75 messages of lag, or 200 messages/s; written as KEDA takes it, a string without an exponent."""
        given = orders(triggers=[query(text)])
        assert variants.in_force(given)[variants.QUERY_THRESHOLD] == 1000
        tried = [one.changes for one in variants.variants(given, situation(), 2.0, 100)]
        found = [one[variants.QUERY_THRESHOLD] for one in tried if list(one) == [variants.QUERY_THRESHOLD]]
        assert found == [round(centre * factor) for factor in variants.AROUND]
        made = with_changes(given, {variants.QUERY_THRESHOLD: 1_500_000.0}).scaled
        assert made.content["spec"]["triggers"][0]["metadata"]["threshold"] == "1500000"

    def test_it_is_tuned_beside_a_trigger_on_lag_and_not_of_several(self):
        """A field's name does not tell them apart. Nor beside the persistent-lag scaler, nor in a formula."""
        lag = orders().content["spec"]["triggers"]
        both = variants.in_force(orders(triggers=[*lag, query()]))
        assert (both[variants.THRESHOLD], both[variants.QUERY_THRESHOLD]) == (2250, 1000)
        assert variants.QUERY_THRESHOLD not in variants.in_force(orders(triggers=[query(), query()]))
        own = lasting(lagThreshold="500").content["spec"]["triggers"]
        assert variants.QUERY_THRESHOLD not in variants.in_force(orders(triggers=[*own, query()]))
        composed = {"scalingModifiers": {"formula": "a", "target": "10"}}
        assert variants.QUERY_THRESHOLD not in variants.in_force(orders(triggers=[query() | {"name": "a"}], advanced=composed))


LASTING = {
    "scalerAddress": "lag-scaler:6000",
    "bootstrapServers": "b:9092",
    "consumerGroup": "enrich",
    "topic": "orders",
    "sustainSeconds": "60",
    "allowIdleConsumers": "true",
}


def lasting(**metadata):
    """The example ScaledObject with the persistent-lag scaler in place of the kafka trigger."""
    return orders(triggers=[{"type": "external", "metadata": LASTING | metadata}])


class TestPersistentLag:
    """The persistent-lag scaler's own fields."""

    def test_its_fields_are_in_force_and_are_tried(self):
        """Beside those every ScaledObject has; what a window of 20 samples doesn't reach is not tried."""
        given = lasting(lagThreshold="500", samplingInterval="5", windowSize="20", scaleDownStabilization="90")
        own = {"lagThreshold": 500, "sustainSeconds": 60, "scaleUpStabilization": 0, "scaleDownStabilization": 90}
        assert own.items() <= variants.in_force(given).items()
        tried = [one.changes for one in variants.variants(given, situation(), 2.0, 100)]
        assert sorted(one[variants.SUSTAIN] for one in tried if list(one) == [variants.SUSTAIN]) == [0, 30]
        assert {variants.GREATEST_OF: 300} in tried
        assert {variants.LEAST_OF: 60} in tried
        assert {variants.THRESHOLD: 300} in tried

    def test_a_disabled_direction_leaves_its_stabilization(self):
        """They are the scaler's, not the HPA's: their names begin alike."""
        settings = {"behavior": {"scaleDown": {"selectPolicy": "Disabled"}}}
        content = lasting(lagThreshold="500").content
        content["spec"]["advanced"] = {"horizontalPodAutoscalerConfig": settings}
        tried = variants.variants(scaledobject.parse(content, "orders.yaml"), situation(), 2.0, 200)
        assert {variants.GREATEST_OF: 300} in [one.changes for one in tried]
        assert not any(field.startswith("scaleDown.") for one in tried for field in one.changes)

    def test_a_threshold_in_seconds_is_tuned_in_seconds(self):
        """Around three quarters of the objective, whatever a pod's rate; written as KEDA takes it, a string."""
        given = lasting(lagSeconds="30")
        assert variants.THRESHOLD not in variants.in_force(given)
        tried = [one.changes for one in variants.variants(given, situation(), 10.0, 100)]
        assert {variants.SECONDS: 7.5} in tried
        made = with_changes(given, {variants.SECONDS: 7.5, variants.SUSTAIN: 120}).scaled
        assert made.content["spec"]["triggers"][0]["metadata"] == LASTING | {"lagSeconds": "7.5", "sustainSeconds": "120"}

    def test_where_spikes_do_no_harm_waiting_costs_less(self):
        """Bursts the floor works off within the objective: what has to last leaves them alone, and is recommended for that."""
        bursts = [step for at in (300, 900, 1500) for step in (Step(at, 1500, "burst"), Step(at + 60, 200, "lull"))]
        here = situation((Step(0, 200, "baseline"), *bursts), 2100, partitions=3)
        given = lasting(lagThreshold="300", sustainSeconds="0")
        tried = [with_changes(given, {variants.SUSTAIN: span} if span else {}) for span in (0, 120, 300)]
        advice = recommend(here, given, outcomes(here, tried, 120.0), 120.0)
        assert advice.chosen.pod_minutes < advice.given.pod_minutes
        assert advice.chosen.late_s == advice.given.late_s == 0


class TestRecommendation:
    """One policy, and why."""

    def test_it_is_as_late_as_the_best_calm_and_no_change_is_idle(self):
        """A policy that takes 2 pods a minute, and a peak that needs 10 at once: each change is worth what its reason says."""
        slow = {"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}}
        given = orders(advanced={"horizontalPodAutoscalerConfig": {"behavior": slow}})
        here = situation()
        changes = itertools.product((None, *variants.UP), (None, 10), (None, 120, 900))
        fields = (variants.UP_POLICIES, variants.MOST, variants.DOWN_WINDOW)
        tried = [{name: value for name, value in zip(fields, one, strict=True) if value} for one in changes]
        found = outcomes(here, [with_changes(given, one) for one in tried], 2.0)
        advice = recommend(here, given, found, 2.0)
        least = min(one.late_s for one in advice.front)
        assert advice.chosen.late_s <= least + tolerance(least)
        assert advice.chosen.late_s < advice.given.late_s
        assert advice.chosen.flips == 0
        as_late = [one.pod_minutes for one in advice.front if one.late_s <= least + tolerance(least)]
        assert advice.chosen.pod_minutes <= min(as_late) * (1 + AS_DEAR)
        assert variants.UP_POLICIES in advice.chosen.variant.changes
        assert [reason.field for reason in advice.reasons] == list(advice.chosen.variant.changes)
        for reason in advice.reasons:
            back = {name: value for name, value in advice.chosen.variant.changes.items() if name != reason.field}
            without = worst_outcome(here, with_changes(given, back), 2.0)
            later, dearer = without.late_s - advice.chosen.late_s, without.pod_minutes - advice.chosen.pod_minutes
            assert abs(later) > 0 or abs(dearer) > 0
            assert f"behind for {abs(later):.1f} s" in reason.why or abs(later) < 0.05
            assert f"takes {abs(dearer):.1f} pod-minutes" in reason.why or abs(dearer) < 0.05


def test_the_replicas_of_a_time_of_day_are_tuned():
    """As many as the spike needs, and half of them; the trigger on lag and the schedule stay where they are."""
    metadata = {"timezone": "Etc/UTC", "start": "1 8 * * *", "end": "5 8 * * *", "desiredReplicas": "3"}
    content = orders().content
    content["spec"]["triggers"].insert(0, {"type": "cron", "metadata": metadata})
    given = scaledobject.parse(content, "orders.yaml")
    assert variants.in_force(given)[variants.PRE_SCALED] == 3
    tried = variants.variants(given, situation(), 20.0, 40)
    found = {one.scaled.triggers[0].replicas for one in tried if set(one.changes) <= {variants.PRE_SCALED}}
    assert found == {3, 5, 10}
    made = with_changes(given, {variants.THRESHOLD: 77, variants.PRE_SCALED: 5}).scaled.content["spec"]["triggers"]
    assert made[0]["metadata"] == metadata | {"desiredReplicas": "5"}
    assert made[1]["metadata"]["lagThreshold"] == "77"
    alone = orders(triggers=[{"type": "cron", "metadata": metadata}])
    assert variants.in_force(alone).keys() == variants.in_force(given).keys() - {variants.THRESHOLD}
    assert variants.variants(alone, situation(), 20.0, 40)
