"""A time of day in a trial, on stand-in stages: KEDA is told when the group is up, and the profile begins at its moment."""

from types import SimpleNamespace
from typing import Any

import pytest

from lab import clock
from lab.errors import LabFault
from lab.inputs import duet, inputs
from lab.inputs import scale as scales
from lab.inputs.anchor import MINUTE_S, PRODUCER_S, lead_s
from lab.record.trial import Deadlines
from lab.trial import anchoring, runner
from lab.trial.deadlines import deadlines
from lab.trial.stage import Stage
from tests.experiments.workloads import light

QUICK = scales.load("quick")
NOW = 1_000_000.0


def chosen(policy="lag-4500-cron", **more):
    """The inputs of a trial on the announced spike."""
    return inputs.read("spike-announced", policy, light(), 1, QUICK, "binary", until="replayed", **more)


def stage(given, up=True):
    """A stage of these inputs whose group is ``up``, and which notes what is waited for and applied."""
    made: Any = object.__new__(Stage)
    made.inputs, made.deadlines, made.names = given, Deadlines(90.0, 1, 1, 1), {}
    made.waited, made.applied, made.lead, made.phase = [], [], made, ""

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


def test_the_scaledobject_is_left_until_the_group_is_up():
    """Everything else is applied before; one without a time of day is not left."""
    made = stage(chosen())
    runner._put_up(made)
    assert "ScaledObject" not in {item["kind"] for item in made.applied}
    assert {"ConfigMap", "Deployment"} <= {item["kind"] for item in made.applied}
    made = stage(chosen("lag-4500"))
    runner._put_up(made)
    assert "ScaledObject" in {item["kind"] for item in made.applied}


def test_keda_gets_the_minutes_of_the_day_and_the_record_both():
    """The profile begins 4 s before a full minute, after KEDA has had its time, and as soon as it can."""
    made = stage(chosen())
    anchoring.anchor([made])
    assert (made.anchor.start + 4) % MINUTE_S == 0
    assert lead_s(QUICK) <= made.anchor.waited_s < made.anchor.deadline_s == lead_s(QUICK) + MINUTE_S
    (applied,) = made.applied
    metadata = applied["spec"]["triggers"][1]["metadata"]
    assert metadata["timezone"] == "Etc/UTC"
    assert [one.written for one in made.anchor.schedules] == ["56 7 * * * Etc/UTC", "26 8 * * * Etc/UTC"]
    assert [one.applied for one in made.anchor.schedules] == [f"{metadata[name]} Etc/UTC" for name in ("start", "end")]
    assert made.waited == [("the consumers ready, before what has a time of day", 90.0)]


def test_without_a_time_of_day_nothing_is_waited_for():
    """And the baseline has all its time."""
    made = stage(chosen("lag-4500"), up=False)
    anchoring.anchor([made])
    anchoring.await_start([made])
    assert (made.anchor, made.waited, made.applied) == (None, [], [])
    assert anchoring.settle_s(made) == 90.0


def test_the_sides_of_a_duet_have_one_moment():
    """Also the side that has no time of day: its profile is the same one."""
    sides = [stage(side) for side in duet.sides(chosen(), chosen("lag-4500"), 0.5)]
    anchoring.anchor(sides)
    assert sides[0].anchor.start == sides[1].anchor.start
    assert [len(side.applied) for side in sides] == [1, 0]
    assert sides[1].anchor.schedules == ()


def test_the_baseline_settles_before_the_producer_must_start(now):
    """Where KEDA has not taken the object by then, the trial is broken, and says what it waited for."""
    made = stage(chosen())
    anchoring.anchor([made])
    now.t = made.anchor.start - PRODUCER_S - 2
    assert anchoring.settle_s(made) == pytest.approx(2)
    now.t += 5
    assert anchoring.settle_s(made) == 0
    with pytest.raises(LabFault, match="the consumers ready, before what has a time of day: not within 90 s"):
        anchoring.anchor([stage(chosen(), up=False)])


def test_the_profiles_begin_is_waited_for_with_a_deadline(now):
    """The time that is left and a little more; a producer that came up too late is a fault of the lab."""
    made = stage(chosen())
    anchoring.anchor([made])
    made.waited.clear()
    now.t = made.anchor.start - 12
    anchoring.await_start([made])
    assert made.waited == [("phase baseline began", pytest.approx(12 + anchoring.LATE_S))]
    assert made.phase == "driving"
    now.t = made.anchor.start + 0.4
    with pytest.raises(LabFault, match=r"the producer was up 0.4 s after the profile was to begin"):
        anchoring.await_start([made])


def test_both_sides_of_a_duet_wait_for_the_begin_and_the_second_is_not_late(now):
    """The first side's wait ends when the profile has begun; that is no producer that came up too late for the second."""
    sides = [stage(side) for side in duet.sides(chosen(), chosen("lag-4500"), 0.5)]
    anchoring.anchor(sides)
    now.t = start = sides[0].anchor.start

    def begun(_):
        now.t = start + 0.3
        return now.t

    for side in sides:
        side.reports.begun = begun
    now.t -= 12
    anchoring.await_start(sides)
    assert [side.phase for side in sides] == ["driving", "driving"]


def test_the_producer_is_given_the_moment():
    """In its Job, where a duet's topic of reports is too; without a time of day it begins when it is up."""
    made = stage(chosen())
    made.anchor, made.traffic_reports = SimpleNamespace(start=1_000_014.5), "traffic"
    made.produce()
    environment = {one["name"]: one.get("value") for one in made.applied[0]["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert environment["START_AT"] == "1000014.500000"
    assert "REPORTS_TOPIC" not in environment
    plain = stage(chosen("lag-4500"))
    plain.produce()
    assert "START_AT" not in {one["name"] for one in plain.applied[0]["spec"]["template"]["spec"]["containers"][0]["env"]}


def test_a_window_that_is_open_after_the_profile_is_waited_for():
    """A trial that drains comes to its floor no sooner."""
    ends = []
    for given in (chosen(), chosen("lag-4500")):
        short = given.to_dict() | {"profile": given.profile.to_dict() | {"duration": 50.0}}
        ends.append(deadlines(inputs.Inputs.from_dict(short, "x")).end_s)
    assert ends[0] == pytest.approx(ends[1] + 14)
