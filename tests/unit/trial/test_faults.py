"""A fault strikes whom it says: the busiest consumer's own process, and no other."""

import os
import signal
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from lab.errors import LabFault
from lab.spec.inputs import SIGKILL
from lab.trial.faults import inflict


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
    """A trial under way with these pods and their partitions."""
    return SimpleNamespace(
        transitions=SimpleNamespace(pods=lambda app: pods if app == "consumer" else []),
        reports=SimpleNamespace(owned=lambda: owned),
    )


def test_the_busiest_consumer_that_stays_is_killed(process):
    """Not the one that owns less, nor one that owns more and is going already; what was done is told."""
    less, most, going = process("less"), process("most"), process("going")
    pods = [pod("less", less.pid), pod("most", most.pid), pod("going", going.pid, deletionTimestamp="x")]
    done = inflict(stage(pods, {"less": 2, "most": 3, "going": 9, "gone": 12}), SIGKILL)
    assert most.wait(10) == -signal.SIGKILL
    assert less.poll() is None
    assert going.poll() is None
    assert (done["fault"], done["pod"], done["pid"], done["owned"]) == (SIGKILL, "most", most.pid, 3)
    assert done["t"] > 0


def test_a_process_of_another_name_is_left_alone(process):
    """A pid that is not that pod's: the trial is broken, and nothing is killed."""
    other = process("other")
    with pytest.raises(LabFault, match=f"process {other.pid} is not the consumer mine"):
        inflict(stage([pod("mine", other.pid)], {"mine": 1}), SIGKILL)
    assert other.poll() is None


@pytest.mark.parametrize("pods", [[], [{"metadata": {"name": "mine"}, "status": {}}]])
def test_no_one_to_kill_is_a_fault_of_the_lab(pods):
    """Not a kill that left nothing."""
    with pytest.raises(LabFault, match="none to kill"):
        inflict(stage(pods, {"mine": 4}), SIGKILL)
