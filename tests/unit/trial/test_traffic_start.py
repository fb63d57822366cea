"""When the traffic starts, on stand-in stages: at a time of day, of which KEDA is told, or at a drawn point of a sync."""

from types import SimpleNamespace
from typing import Any

import pytest

from lab import clock
from lab.errors import LabFault
from lab.inputs import duet, inputs
from lab.inputs import scale as scales
from lab.inputs.anchor import MINUTE_S, PRODUCER_S, lead_s
from lab.record.trial import Deadlines
from lab.trial import phases, traffic_start
from lab.trial.deadlines import deadlines
from lab.trial.stage import Journal, Stage
from tests.experiments.workloads import light
from tests.unit.measure import whole

REAL, QUICK = scales.load("real"), scales.load("quick")
NOW = 1_000_000.0


def chosen(policy="lag-4500-cron", **more):
    """The inputs of a trial on the announced spike."""
    return inputs.read("spike-announced", policy, light(), 1, QUICK, "binary", until="replayed", **more)


def stage(given, up=True):
    """A stage of these inputs whose group is ``up``, and which notes what is waited for and applied."""
    made: Any = object.__new__(Stage)
    made.journal = Journal(whole.trial(given, times={}))
    made.inputs, made.deadlines, made.names = given, Deadlines(90.0, 1, 1, 1), {}
    made.waited, made.applied, made.lead = [], [], made

    def wait(condition, deadline_s, what, check):
        made.waited.append((what, deadline_s))
        if not condition():
            raise LabFault(f"{what}: not within {deadline_s:g} s")

    made.transitions = SimpleNamespace(wait=wait)
    made.ready = lambda *_: up
    made.check = lambda: None
    made.apply = lambda wanted: made.applied.extend(wanted)
    made.reports = SimpleNamespace(begun=lambda phase: 1.0 if phase == "baseline" else None)
    return made


@pytest.fixture(autouse=True)
def now(monkeypatch):
    """The clock stands, unless a test moves it."""
    at = SimpleNamespace(t=NOW)
    monkeypatch.setattr(clock, "now", lambda: at.t)
    return at


@pytest.mark.parametrize(("policy", "left"), [("lag-4500-cron", True), ("lag-4500", False)])
def test_the_scaledobject_is_left_until_the_group_is_up(policy, left):
    """Everything else is applied before; one without a time of day is not left."""
    made = stage(chosen(policy))
    phases.put_up(made)
    kinds = {item["kind"] for item in made.applied}
    assert {"ConfigMap", "Deployment"} <= kinds
    assert ("ScaledObject" not in kinds) is left


def test_keda_gets_the_minutes_of_the_day_and_the_record_both():
    """The profile begins 4 s before a full minute, after KEDA has had its time, and as soon as it can."""
    made = stage(chosen())
    traffic_start.anchor([made])
    assert (made.journal.trial.anchor.start + 4) % MINUTE_S == 0
    anchor = made.journal.trial.anchor
    assert lead_s(QUICK) <= anchor.waited_s < anchor.deadline_s == lead_s(QUICK) + MINUTE_S
    (applied,) = made.applied
    metadata = applied["spec"]["triggers"][1]["metadata"]
    assert metadata["timezone"] == "Etc/UTC"
    assert [one.written for one in anchor.schedules] == ["56 7 * * * Etc/UTC", "26 8 * * * Etc/UTC"]
    assert [one.applied for one in anchor.schedules] == [f"{metadata[name]} Etc/UTC" for name in ("start", "end")]
    assert made.waited == [("the consumers ready, before what has a time of day", 90.0)]


def test_without_a_time_of_day_nothing_is_waited_for():
    """And the baseline has all its time."""
    made = stage(chosen("lag-4500"), up=False)
    traffic_start.anchor([made])
    traffic_start.await_start([made])
    assert (made.journal.trial.anchor, made.waited, made.applied) == (None, [], [])
    assert traffic_start.settle_s(made) == 90.0


def test_the_baseline_settles_before_the_producer_must_start(now):
    """Where KEDA has not taken the object by then, the trial is broken, and says what it waited for."""
    made = stage(chosen())
    traffic_start.anchor([made])
    now.t = made.journal.trial.anchor.start - PRODUCER_S - 2
    assert traffic_start.settle_s(made) == pytest.approx(2)
    now.t += 5
    assert traffic_start.settle_s(made) == 0
    with pytest.raises(LabFault, match="the consumers ready, before what has a time of day: not within 90 s"):
        traffic_start.anchor([stage(chosen(), up=False)])


def test_the_profiles_begin_is_waited_for_with_a_deadline(now):
    """The time that is left and a little more; a producer that came up too late is a fault of the lab.

    The sides of a duet have one moment, also one without a time of day. That the first side's wait ends when the profile has
    begun makes the second's producer not late.
    """
    made, other = sides = [stage(side) for side in duet.sides(chosen(), chosen("lag-4500"), 0.5)]
    traffic_start.anchor(sides)
    start = made.journal.trial.anchor.start
    assert (other.journal.trial.anchor.start, other.journal.trial.anchor.schedules) == (start, ())
    assert [len(side.applied) for side in sides] == [1, 0]
    made.waited.clear()
    now.t = start - 12
    made.reports.begun = lambda _: setattr(now, "t", start + 0.3) or now.t
    traffic_start.await_start(sides)
    assert made.waited == [("phase baseline began", pytest.approx(12 + traffic_start.LATE_S))]
    assert [side.journal.phase for side in sides] == ["driving", "driving"]
    now.t = start + 0.4
    with pytest.raises(LabFault, match=r"the producer was up 0.4 s after the profile was to begin"):
        traffic_start.await_start([made])


def test_the_producer_is_given_the_moment():
    """In its Job, where a duet's topic of reports is too; without a time of day it begins when it is up."""
    made = stage(chosen())
    made.traffic_reports = "traffic"
    made.journal.note(anchor=SimpleNamespace(start=1_000_014.5))
    plain = stage(chosen("lag-4500"))
    for one in (made, plain):
        one.produce()
    given, without = (one.applied[0]["spec"]["template"]["spec"]["containers"][0]["env"] for one in (made, plain))
    assert {"name": "START_AT", "value": "1000014.500000"} in given
    assert not {"START_AT", "REPORTS_TOPIC"} & {one["name"] for one in without}


def test_a_window_that_is_open_after_the_profile_is_waited_for():
    """A trial that drains comes to its floor no sooner."""
    ends = []
    for given in (chosen(), chosen("lag-4500")):
        short = given.to_dict() | {"profile": given.profile.to_dict() | {"duration": 50.0}}
        ends.append(deadlines(inputs.Inputs.from_dict(short, "x")).end_s)
    assert ends[0] == pytest.approx(ends[1] + 14)


def bursts(policy="lag-4500", repetition=1, scale=REAL, profile="bursty"):
    """The inputs of a trial on three bursts."""
    return inputs.read(profile, policy, light(), repetition, scale, "binary", until="replayed", repetition=repetition)


def test_the_points_of_many_trials_fill_the_period():
    """Of 30 repetitions some begin in each third of it, and none after it."""
    parts = [traffic_start.drawn_s([bursts(repetition=n)]) / REAL.hpa_sync_s for n in range(1, 31)]
    assert {int(3 * part) for part in parts} == {0, 1, 2}
    assert max(parts) < 1


def test_a_trial_that_is_run_again_begins_at_the_same_point():
    """It is drawn by the identity, and the order in which two sides are put up does not change it.

    A time of day has its own moment, and replicas by decree have no HPA: there is no sync to meet.
    """
    sides = duet.sides(bursts(), bursts("lag-4500-arrivals"))
    assert traffic_start.drawn_s(sides) == traffic_start.drawn_s(sides[::-1]) > 0
    for policy, profile in (("lag-4500-cron", "spike-announced"), ("up-and-down", "saturate")):
        assert traffic_start.drawn_s([bursts(policy, profile=profile, scale=QUICK)]) == 0


def test_the_wait_ends_at_the_point_or_by_a_component_that_dies(monkeypatch):
    """Not before the point, on a clock that moves by 0.1 s each time it is asked; a fault is raised at once."""
    asked = []
    monkeypatch.setattr(clock, "now", lambda: asked.append(1) or 100 + 0.1 * len(asked))
    made: Any = SimpleNamespace(inputs=bursts(scale=QUICK), check=lambda: None)
    traffic_start.await_sync_point([made])
    assert 0.1 * (len(asked) - 1) == pytest.approx(traffic_start.drawn_s([made.inputs]), abs=0.1)

    def dead():
        raise LabFault("kafka died")

    made.check = dead
    monkeypatch.setattr(clock, "now", lambda: 100.0)
    with pytest.raises(LabFault, match="kafka died"):
        traffic_start.await_sync_point([made])
