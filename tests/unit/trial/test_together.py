"""The sides of a duet are followed at the same time, meet at their events, and end together when one can't go on."""

import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest

from lab.errors import LabFault
from lab.trial import phases
from lab.trial.phases import together


def sides(count=2):
    """Stages that can be told to stop."""
    return [SimpleNamespace(name=name, stop=threading.Event()) for name in "ab"[:count]]


def test_sides_meet_before_each_event():
    """The one that is first waits for the other, and results are in the order of the sides."""
    seen, lock = [], threading.Lock()

    def follow(stage, meet):
        for event in range(3):
            time.sleep(0.02 if stage.name == "a" else 0)
            meet()
            with lock:
                seen.append(event)
        return stage.name

    assert together(follow, sides()) == ["a", "b"]
    assert seen == [0, 0, 1, 1, 2, 2]


def test_a_trial_by_itself_is_followed_in_this_thread():
    """Ctrl-C reaches it where it waits; it meets no one."""
    assert together(lambda _, meet: meet() or threading.current_thread(), sides(1)) == [threading.main_thread()]


def test_both_sides_come_to_an_event_before_it_happens(monkeypatch):
    """Once its phase has begun, and again before the next."""
    done = []
    monkeypatch.setattr(phases, "_await", lambda _, phase: done.append(f"await {phase}"))
    monkeypatch.setattr(phases, "happen", lambda _, phase, event: done.append(event))
    chosen = SimpleNamespace(schedule=(("spike", "kill"), (None, "step")), faults=(), until="replayed")
    stage = SimpleNamespace(inputs=chosen, journal=SimpleNamespace(mark=lambda _: None))
    assert phases.follow(stage, lambda: done.append("meet")) == "complete"
    assert done == ["await spike", "meet", "kill", "await None", "meet", "step", "await None"]


@pytest.mark.parametrize("waits_in", ["a wait", "a meeting"])
def test_a_side_that_fails_ends_the_other(waits_in, monkeypatch):
    """What it raised is raised, and the other was told, wherever it was: it waits out no deadline."""
    monkeypatch.setattr(phases, "MEET_S", 60)
    pair, ended, began = sides(), [], time.monotonic()

    def follow(stage, meet):
        if stage.name == "a":
            raise LabFault("etcd died")
        with suppress(LabFault):
            if waits_in == "a meeting":
                meet()
        ended.append(stage.stop.wait(60))

    with pytest.raises(LabFault, match="etcd died"):
        together(follow, pair)
    assert ended == [True]
    assert time.monotonic() - began < phases.MEET_S


def test_a_side_that_never_comes_to_its_event_is_a_fault(monkeypatch):
    """With the deadline in the line."""
    monkeypatch.setattr(phases, "MEET_S", 0.1)

    def follow(stage, meet):
        if stage.name == "a":
            meet()
        stage.stop.wait(5)

    with pytest.raises(LabFault, match=r"did not come to their event together: not within 0\.1 s"):
        together(follow, sides())


def test_an_interruption_ends_both(monkeypatch):
    """Ctrl-C reaches the thread that waits for them, once."""
    pair, ended, pressed = sides(), [], [KeyboardInterrupt()]

    class Interrupted(threading.Thread):
        """A thread whose first join is interrupted."""

        def join(self, timeout=None):
            if pressed:
                raise pressed.pop()
            super().join(timeout)

    monkeypatch.setattr(threading, "Thread", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        together(lambda stage, _: ended.append(stage.stop.wait(60)), pair)
    assert ended == [True, True]
