"""The cron trigger in the simulator: the time of day of a profile, and of a trial at a scale."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.foresee import sources
from lab.foresee.group import Consumers, Seen
from lab.foresee.simulate import simulate
from lab.foresee.situation import Situation
from lab.inputs import anchor
from lab.inputs import scale as scales
from lab.inputs.triggers import cron
from tests.thoroughness import examples
from tests.unit.foresee.groups import EVEN, PODS, SEVEN, step, timed


def announced(spike=360.0, rate=1800.0):
    """A spike that comes while the window of ``timed`` is open."""
    return replace(step(180, rate, spike, 600.0, 3000.0), begins_at=SEVEN)


def test_a_time_of_day_scales_before_the_spike_and_holds_to_the_windows_end():
    """On its own it does the same: within a sync of the window's start, and the scale-down's window after its end."""
    for scaled in (timed(), timed(alone=True)):
        curve = simulate(Situation(announced(rate=180), EVEN, PODS), scaled)
        ups = [at for at, before, after in curve.changes if after > before]
        downs = [at for at, before, after in curve.changes if after < before]
        assert curve.replicas.max() == 24
        assert 180 <= ups[0] <= 195
        assert 1980 - 15 + 300 <= downs[0] <= 1980 + 300
        assert curve.replicas[-1] == 4


@given(st.integers(0, 3600), st.integers(1, 59), st.integers(0, 3))
@settings(max_examples=examples(20))
def test_a_time_of_day_is_read_as_keda_reads_it(begins_s, minutes, hours):
    """Between two starts or ends the answer is kept: it is that of the trigger itself at each second."""
    begins_at = SEVEN + timedelta(seconds=begins_s)
    end = SEVEN + timedelta(minutes=3 + minutes, hours=hours)
    (trigger,) = timed(end=f"{end.minute} {end.hour} * * *", alone=True).triggers
    source = sources.Scheduled(trigger, begins_at)
    nothing = np.zeros(1)
    for now in range(0, 20_000, 97):
        found = source.read(Seen(now, nothing, nothing, nothing, []))
        wanted = cron.read(trigger, begins_at + timedelta(seconds=now))
        assert (found.metric, found.active) == (wanted.metric, wanted.active)


@pytest.mark.parametrize("scale", ["quick", "real"])
def test_a_trial_is_simulated_with_the_schedules_that_it_writes(scale):
    """The window opens so far into the profile as the scale makes of it, in the simulation as in the trial."""
    chosen = scales.load(scale)
    scaled, traffic = timed(alone=True).compressed(chosen), announced(rate=180).compressed(chosen.time, 1)
    made, given = anchor.as_trial(scaled, traffic, chosen.time)
    curve = simulate(Situation(given, EVEN, Consumers(100.0, 3.0), sync_s=chosen.hpa_sync_s), made)
    up = curve.changes[0][0] * chosen.time
    assert 180 <= up <= 195
    opens = given.begins_at + timedelta(seconds=180 / chosen.time)
    assert opens.second == 0
    assert made.content["spec"]["triggers"][0]["metadata"]["start"] == f"{opens.minute} 7 15 1 *"
