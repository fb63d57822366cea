"""What the HPA reads between two commits: hand-made syncs over a lag that rises for 5 s and falls."""

from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from lab.inputs.profile import Step
from lab.measure.reaction.hpa_readings import bursts, readings
from lab.model.hpa_log import Seen, Sync
from tests.unit.scenarios.payments.test_hpa_steps import SPEC

from .built import Shown

ON_LAG = replace(SPEC, metrics=(replace(SPEC.metrics[0], name="s0-kafka-events"),))  # lagThreshold 250


def made(every_s, *, ready=24, read=True, spec=ON_LAG, taken=()):
    """Three bursts of 120 s at 1,000/s: lag is 1,000 messages for each s since the last commit, which come every 5 s."""

    def lag(t):
        return 1000 * ((t + 2) % 5)

    steps = [Step(0.0, 100, "baseline"), *(Step(100.0 + 300 * n, 1000, "burst") for n in range(3))]
    times = [n / 2 for n in range(2000)]
    seen = [(n * every_s, lag(n * every_s)) for n in range(int(1000 / every_s))]
    return Shown(
        policy=SimpleNamespace(max_replicas=24),
        replicas=pd.DataFrame([(0.0, ready), *taken], columns=["t", "ready"]),
        lag=pd.DataFrame([(t, lag(t)) for t in times], columns=["t", "lag"]),
        hpa_syncs=[Sync(t, spec, 24, 24, 24, (Seen(24, ((round(value * 1000),),) if read else None),)) for t, value in seen],
        profile=SimpleNamespace(steps=steps),
        phases=pd.DataFrame([(100.0 + 300 * n, 220.0 + 300 * n, "burst") for n in range(3)], columns=["start", "end", "label"]),
    )


@pytest.mark.parametrize(("every_s", "share", "renewing_s"), [(15, 0, 2), (13, 4 / 4.5, 4)])
def test_syncs_in_step_with_commits_read_one_point(every_s, share, renewing_s):
    """Each sync 2 s after a commit: 2 s of traffic, and nothing of the 4.5 s by which lag goes up and down.

    13 s are three commits less two s: the syncs read each whole second since a commit, up to 4 s.
    """
    found = readings(made(every_s))
    assert (found.bursts.number, found.share.number, found.renewing_s.number) == (3, pytest.approx(share), renewing_s)


@pytest.mark.parametrize("lacking", [{"ready": 12}, {"read": False}, {"spec": SPEC}])
def test_without_all_pods_or_without_readings_there_is_no_data(lacking):
    """A burst with a backlog shows no commits. An HPA of unknown input shows nothing, nor does one on another metric."""
    assert "no burst" in readings(made(15, **lacking)).share.why


def test_a_burst_counts_until_pods_are_taken_away():
    """In the second burst 12 pods go after 90 s; the third begins without them."""
    found = bursts(made(15, taken=[(490.0, 12)]))
    assert [(one.number, one.start, one.end) for one in found] == [(1, 130, 220), (2, 430, 490)]
    assert [one.t for one in found[1].read] == [435, 450, 465, 480]


@pytest.mark.parametrize(("tolerance", "surplus"), [(None, 5400), (0.94, 360)])
def test_the_window_is_renewed_by_a_reading_that_is_no_surplus(tolerance, surplus):
    """At a lagThreshold of 250, 24 pods hold 6,000: the controller's own tolerance makes 5,400 of it, 0.94 makes 360."""
    down = replace(ON_LAG.behavior.down, tolerance=tolerance)
    found = bursts(made(15, spec=replace(ON_LAG, behavior=replace(ON_LAG.behavior, down=down))))
    assert {round(reading.surplus) for one in found for reading in one.read} == {surplus}
    assert [one.renews for one in found] == [tolerance is not None] * 3
    assert [one.below for one in found] == pytest.approx([0.1 if tolerance else 1.0] * 3, abs=0.01)  # 0.5 s of 5 s
