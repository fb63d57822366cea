"""At which point of the HPA's sync period does the traffic begin?"""

from types import SimpleNamespace
from typing import Any

import pytest

from lab import clock
from lab.errors import LabFault
from lab.inputs import duet, inputs
from lab.inputs import scale as scales
from lab.trial import syncphase
from tests.experiments.workloads import light

REAL, QUICK = scales.load("real"), scales.load("quick")


def chosen(policy="lag-4500", repetition=1, scale=REAL, profile="bursty"):
    """The inputs of a trial on three bursts."""
    return inputs.read(profile, policy, light(), repetition, scale, "binary", until="replayed", repetition=repetition)


@pytest.mark.parametrize("scale", [REAL, QUICK], ids=lambda scale: scale.name)
def test_the_points_of_many_trials_fill_the_period(scale):
    """Of 60 repetitions some begin in each fifth of it, and none after it."""
    parts = [syncphase.drawn_s([chosen(repetition=n, scale=scale)]) / scale.hpa_sync_s for n in range(1, 61)]
    assert {int(5 * part) for part in parts} == {0, 1, 2, 3, 4}
    assert max(parts) < 1


def test_a_trial_that_is_run_again_begins_at_the_same_point():
    """It is drawn by the identity, and the order in which two sides are put up does not change it."""
    sides = duet.sides(chosen(), chosen("lag-4500-arrivals"))
    assert syncphase.drawn_s(sides) == syncphase.drawn_s(sides[::-1]) > 0


@pytest.mark.parametrize(("policy", "profile"), [("lag-4500-cron", "spike-announced"), ("up-and-down", "saturate")])
def test_without_a_sync_to_meet_nothing_is_waited_for(policy, profile):
    """A time of day has its own moment, and replicas by decree have no HPA."""
    assert syncphase.drawn_s([chosen(policy, profile=profile, scale=QUICK)]) == 0


def made(check) -> Any:
    """A stage of a trial at quick scale, whose components are looked at by ``check``."""
    return SimpleNamespace(inputs=chosen(scale=QUICK), check=check)


def test_the_wait_ends_at_the_point(monkeypatch):
    """Not before it, on a clock that moves by 0.1 s each time it is asked."""
    asked = []

    def now():
        asked.append(1)
        return 100 + 0.1 * len(asked)

    monkeypatch.setattr(clock, "now", now)
    stage = made(lambda: None)
    syncphase.await_phase([stage])
    assert 0.1 * (len(asked) - 1) == pytest.approx(syncphase.drawn_s([stage.inputs]), abs=0.1)


def test_a_component_that_dies_ends_the_wait(monkeypatch):
    """Its fault is raised at once."""

    def dead():
        raise LabFault("kafka died")

    monkeypatch.setattr(clock, "now", lambda: 100.0)
    with pytest.raises(LabFault, match="kafka died"):
        syncphase.await_phase([made(dead)])
