"""Points of the HPA's sync and of commits: what is read there decides, and a policy is chosen by the worst of them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab import paths, yamlfile
from lab.foresee.choice import FIGURES, at_worst, outcome, outcomes, recommend, worst_outcome
from lab.foresee.group import Consumers
from lab.foresee.simulate import simulate
from lab.foresee.situation import Situation, points
from lab.foresee.variants import DOWN_TOLERANCE, DOWN_WINDOW, THRESHOLD, with_changes
from lab.inputs import profile, scaledobject
from tests.thoroughness import examples
from tests.unit.foresee.groups import EVEN, PODS, lag_150, step

STEP = Situation(step(180, 1800), EVEN, PODS)


def test_the_first_point_is_the_situation_and_the_others_begin_later():
    """Fifths of a sync; where a swing is known lag is read close to its ends in turn, which a mean that is given has not."""
    here = replace(STEP, swing=(0.05, 5.05), sync_s=5.0)
    first, *others = points(here)
    assert first is here
    assert [(one.phase_s, round(one.read_s, 9)) for one in others] == [(1, 4.55), (2, 0.55), (3, 4.55), (4, 0.55)]
    assert [one.read_s for one in points(STEP)] == [None] * 5


@given(st.integers(10, 400), st.floats(0, 20))
@settings(max_examples=examples(20), deadline=None)
def test_what_is_read_decides_and_the_mean_is_shown(rate, read_s):
    """A group of 4 pods that keeps up: as many are asked for as what is read needs, and the curve's lag is the mean."""
    curve = simulate(replace(STEP, profile=step(rate, rate), read_s=read_s), lag_150(lagThreshold="100"))
    assert np.interp(10.0, curve.t, curve.lag) == pytest.approx(rate * PODS.in_flight_s, abs=1)
    asked = int(rate * read_s + 1e-6) / 100
    assert curve.replicas.max() == (4 if asked <= 4.4 else min(24, np.ceil(asked)))


@given(st.integers(500, 5000), st.sampled_from([0, 30, 120]), st.sampled_from([None, (0.0, 5.0)]))
@settings(max_examples=examples(10), deadline=None)
def test_the_worst_is_that_of_each_figure_at_any_point(threshold, window, swing):
    """Simulated alone, and in a pass for each point."""
    here = replace(STEP, swing=swing)
    variant = with_changes(lag_150(), {THRESHOLD: threshold, DOWN_WINDOW: window})
    each = [outcome(point, variant, 2.0) for point in points(here)]
    found = worst_outcome(here, variant, 2.0)
    assert all(getattr(found, name) == max(getattr(one, name) for one in each) for name in FIGURES)
    (rough,) = at_worst(here, outcomes(here, [variant], 2.0), 2.0)
    assert rough == found


BURSTS = profile.load(paths.PROFILES / "ten-bursts.yaml")


def test_a_tolerance_that_holds_on_average_flips_where_syncs_read_just_after_commits():
    """As at real time: 0.94 at 3,000 ended the flapping in a simulation of the mean alone, and flipped in the trial."""
    here = Situation(BURSTS, EVEN, Consumers(100.0, 30.0, in_flight_s=2.55), tail_s=600)
    tolerant = with_changes(lag_150(), {THRESHOLD: 3000, DOWN_TOLERANCE: 0.94})
    assert worst_outcome(here, tolerant, 60.0).flips == 0
    assert worst_outcome(replace(here, swing=(0.05, 5.05)), tolerant, 60.0).flips >= 2


def test_what_is_recommended_flips_at_no_point():
    """A lagThreshold of 9,000 ends the flapping at the first point alone, and is the cheapest there: the window is taken."""
    examples_of = paths.PROJECT / "docs" / "examples"
    evening, content = profile.load(examples_of / "evening-peak.yaml"), yamlfile.read(examples_of / "orders.yaml")
    pods = Consumers(100.0, 45.0, in_flight_s=2.55)
    here = Situation(evening, np.full(12, 1 / 12), pods, tail_s=1800, swing=(0.05, 5.05))
    flapping = with_changes(scaledobject.parse(content, "orders.yaml"), {DOWN_WINDOW: 0}).scaled
    tried = [with_changes(flapping, changes) for changes in ({}, {THRESHOLD: 9000}, {DOWN_WINDOW: 600})]
    found = outcomes(here, tried, 300.0)
    assert [one.flips for one in found] == [2, 0, 0]
    assert found[1].pod_minutes < found[2].pod_minutes / 1.1
    advice = recommend(here, flapping, found, 300.0)
    assert (advice.chosen.variant.changes, advice.chosen.flips) == ({DOWN_WINDOW: 600}, 0)
