"""Events strike whom they say: the busiest consumer's own process, and no other. What happened is a row of its own."""

import os
import signal
import subprocess
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from lab.errors import LabFault
from lab.inputs.events import Event, Kill, Pause, Resume
from lab.record.trial import Fault
from lab.trial.events import happen, perform
from lab.trial.stage import Journal, Stage
from lab.wait import until
from tests.unit.measure import whole


@pytest.fixture
def process():
    """Starts processes that know their pod's name; those left are ended with the test."""
    started = []

    def start(pod):
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        one = subprocess.Popen(["cat"], env=dict(os.environ, HOSTNAME=pod), **pipes)
        started.append(one)
        one.stdin.write(b"up\n")  # the kernel shows an environment only some time after the exec that Popen waits for
        one.stdin.flush()
        assert one.stdout.readline() == b"up\n"
        return one

    yield start
    for one in started:
        one.kill()
        one.communicate()


def pod(name, pid, **metadata):
    """A pod whose container runs as ``pid``."""
    status = {"containerID": f"process://{pid}", "state": {"running": {}}}
    return {"metadata": {"name": name} | metadata, "status": {"containerStatuses": [status]}}


def stage(pods, owned):
    """A trial under way with these pods and their partitions, whose phase "spike" began at 7."""
    made = object.__new__(Stage)
    made.transitions = SimpleNamespace(pods=lambda app: pods if app == "consumer" else [])
    made.reports = SimpleNamespace(owned=lambda: owned, begun=lambda phase: 7.0 if phase == "spike" else None)
    made.inputs = SimpleNamespace(schedule=(None, None))
    made.journal, made.paused = Journal(whole.trial(whole.inputs())), {}
    return made


def test_the_busiest_consumer_that_stays_is_killed(process):
    """Not the one that owns less, nor one that owns more and is going already; what happened is in the row."""
    less, most, going = process("less"), process("most"), process("going")
    pods = [pod("less", less.pid), pod("most", most.pid), pod("going", going.pid, deletionTimestamp="x")]
    running = stage(pods, {"less": 2, "most": 3, "going": 9, "gone": 12})
    happen(running, "spike", Kill())
    assert most.wait(10) == -signal.SIGKILL
    assert less.poll() is None
    assert going.poll() is None
    (row,) = running.journal.trial.events
    assert row["until"] >= row["t"] > 0
    victim = {"pod": "most", "pid": most.pid, "owned": 3}
    assert row == {"t": row["t"], "until": row["until"], "due": 7, "phase": "spike", "event": "kill", "result": victim}
    assert running.journal.trial.faults == (Fault(row["t"], "sigkill", **victim),)
    # Through the API it struck when its signal was sent: what the pod did until then is no copy.
    running.journal.add_event({"t": 12.0, "event": Kill.name, "result": victim | {"t": 12.5}})
    assert running.journal.trial.faults[1] == Fault(12.5, "sigkill", **victim)


def test_a_paused_process_stands_still_until_it_is_resumed(process):
    """The kernel says so. Another process goes on, and what a liveness probe replaced meanwhile is not resumed."""
    less, most, second = process("less"), process("most"), process("most")
    running = stage([pod("less", less.pid), pod("most", most.pid)], {"less": 2, "most": 3})

    def state(one):
        return psutil.Process(one.pid).status()

    assert perform(Pause(), running)["pod"] == "most"
    until(lambda: state(most) == psutil.STATUS_STOPPED, 10, "stopped")
    assert state(less) != psutil.STATUS_STOPPED
    assert perform(Resume(), running) == {"pods": ["most"]}
    until(lambda: state(most) != psutil.STATUS_STOPPED, 10, "going on")
    perform(Pause(), running)
    running.transitions = SimpleNamespace(pods=lambda app: [pod("most", second.pid)])
    assert perform(Resume(), running) == {"pods": []}


@pytest.mark.parametrize("event", [Kill(), Pause()], ids=lambda event: event.name)
def test_a_process_of_another_name_is_left_alone(process, event):
    """A pid that is not that pod's: the trial is broken, and nothing is signalled. So it is where there is no one to signal."""
    other = process("other")
    with pytest.raises(LabFault, match=f"process {other.pid} is not the consumer mine"):
        perform(event, stage([pod("mine", other.pid)], {"mine": 1}))
    assert other.poll() is None
    for pods in ([], [{"metadata": {"name": "mine"}, "status": {}}]):
        with pytest.raises(LabFault, match="no consumer that owns a partition"):
            perform(event, stage(pods, {"mine": 4}))


@dataclass(frozen=True)
class Sing(Event):
    """An event of a user's own, declared where it is needed."""

    song: str


def test_an_event_of_ones_own_is_a_class_and_a_function():
    """Without the function the event can't happen, and the fault says what to register; with it the row is like any other."""
    running = stage([], {})
    with pytest.raises(LabFault, match="no function is registered"):
        happen(running, "spike", Sing("la"))
    perform.register(Sing, lambda event, stage: {"sung": event.song * 2})
    happen(running, "spike", Sing("la"))
    (row,) = running.journal.trial.events
    assert (row["event"], row["song"], row["result"]) == ("sing", "la", {"sung": "lala"})
