"""A session that crashes leaves nothing behind: no process, no port, no folder."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from lab import paths
from lab.cluster import processes, runs
from lab.wait import until
from tests.suite import experiments

pytestmark = pytest.mark.cluster

SESSION = """
import sys
from lab import scale
from lab.cluster import binary
running = binary.up(scale.load("quick"))
print(running.run, flush=True)
sys.stdin.read()
running.down()
"""


@pytest.fixture
def session():
    """Another session with a cluster of its own, in a process of its own; yields it and its run folder."""
    process = subprocess.Popen([sys.executable, "-c", SESSION], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    run = Path(process.stdout.readline().strip())
    yield process, run
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def ports_of(found):
    """Loopback ports the processes listen on."""
    return {
        connection.laddr.port
        for process in found
        for connection in process.net_connections("tcp")
        if connection.status == "LISTEN"
    }


def test_two_clusters_stand_side_by_side(cluster, session):
    """A second session's cluster shares no port and no pod network with the first, and both answer."""
    _, run = session
    mine, other = processes.remembered(cluster.run), processes.remembered(run)
    assert len(mine) >= 11
    assert len(other) >= 11
    assert not ports_of(mine) & ports_of(other)
    networks = {json.loads((folder / "owner.json").read_text())["network"] for folder in (cluster.run, run)}
    assert len(networks) == 2
    cluster.check()


def test_an_orderly_down_leaves_nothing(session):
    """After down there is no process, no listening port and no folder."""
    process, run = session
    found = processes.remembered(run)
    ports = ports_of(found)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert not run.exists()
    assert not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in found)
    assert not ports & {item.laddr.port for item in psutil.net_connections("tcp") if item.status == "LISTEN"}


def test_a_killed_session_is_cleared_by_its_guard(session):
    """SIGKILL gives the session no chance; the guard sees its pipe close and clears the run."""
    process, run = session
    found = processes.remembered(run)
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: not run.exists(), 30, "the guard cleared the run")
    assert not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in found)


def test_leftovers_are_cleared_at_the_next_start(session):
    """When the guard died too, the next start finds the run by what the lab recorded, and ends just those pids."""
    process, run = session
    found = processes.remembered(run)
    for one in psutil.process_iter(["cmdline"]):
        if one.info["cmdline"] and one.info["cmdline"][-2:] == ["lab.cluster.guard", str(run)]:
            one.kill()
    process.send_signal(signal.SIGKILL)
    process.wait()
    bystander = subprocess.Popen(["sleep", "60"])  # a process the lab did not start
    try:
        assert runs.sweep() >= len(found)
        assert not run.exists()
        assert not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in found)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_an_interrupted_trial_leaves_its_partial_record(tmp_path):
    """Ctrl-C in the middle of a trial: the record says so and keeps what there was, and no process is left."""
    command = experiments("-k", "a_10x_spike", f"--results={tmp_path}")
    said = tmp_path / "session.log"
    with said.open("wb") as output:
        # As in a terminal: what runs in a shell's background is started with SIGINT ignored, and hands that on.
        heeding: dict[str, Any] = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
        process = subprocess.Popen(command, cwd=paths.PROJECT, stdout=output, stderr=subprocess.STDOUT, **heeding)

    def driving():
        assert process.poll() is None, said.read_text()[-2000:]
        return any('"profile"' in file.read_text() for file in tmp_path.glob("records/*/group_events.jsonl"))

    try:
        until(driving, 120, "the producer started")
        started = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 2
    finally:
        process.kill()
    (record,) = tmp_path.glob("records/*")
    trial = json.loads((record / "trial.json").read_text())
    assert trial["ended"] == "interrupted"
    assert "driving" in trial["times"]
    assert (record / "transitions.jsonl").stat().st_size > 0
    assert len(started) >= 11
    assert not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in started)


def test_a_reused_pid_is_left_alone(tmp_path):
    """A pid whose start time is not the recorded one belongs to someone else."""
    (tmp_path / "pids").mkdir()
    (tmp_path / "pids" / str(os.getpid())).write_text(json.dumps({"pid": os.getpid(), "name": "x", "created": 1.0}))
    assert processes.remembered(tmp_path) == []


def test_the_register_lies_in_the_cache():
    """Runs are found again because their folder does not depend on the session's own."""
    assert paths.state_dir().is_relative_to(paths.cache_dir())
