"""The register of runs: whatever a session leaves of itself, the next start finds it and removes it, and only it."""

import os
import shutil
import socket
import subprocess
import sys
import threading
from argparse import Namespace
from pathlib import Path

import psutil
import pytest

from lab import wholefile
from lab.cluster.kind import state
from lab.commands import down
from lab.errors import FAULT, HELD, LabFault
from lab.host import processes, resources, runs
from tests.faults.sessions import networks

from .run_harness import SLEEP, child, dead, register, running

__all__ = ["dead", "register"]


def step(monkeypatch, seconds):
    """Step the wall clock, as psutil sees it: it dates a process by its ticks since the boot and the boot's wall time."""
    boot = psutil._pslinux.boot_time
    monkeypatch.setattr(psutil._pslinux, "boot_time", lambda: boot() + seconds)


@pytest.mark.parametrize("seconds", [-5, 5])
def test_a_step_of_the_clock_changes_nothing(monkeypatch, dead, seconds):
    """The run of a dead session is cleared; this one's is left alone, and its processes are ended when it is cleared."""
    run, of_another = runs.open_run(), dead()
    pid, other = processes.start(run, "one", SLEEP).process.pid, child(of_another)
    step(monkeypatch, seconds)
    assert runs.sweep() == 1
    assert not running(other)
    assert not of_another.exists()
    assert child(run) == pid
    assert processes.clear(run) == 1
    assert not running(pid)


def test_a_run_that_names_no_owner_is_dead(register):
    """A crash or a full disk may leave anything in the file, or none: no start stumbles over it, and what ran is ended."""
    (register / "1-opened").mkdir()
    (register / "2-removed.dead" / "pids").mkdir(parents=True)
    left = [b"", b"{", b"[]", b"null", b'{"pid": 1}', b'{"pid": "x", "kept": []}', b"\xff"]
    pids = []
    for content in (*left, None):
        run = runs.open_run()
        pids.append(processes.start(run, "one", SLEEP).process.pid)
        (run / runs.OWNER).write_bytes(content or b"")
        if content is None:
            (run / runs.OWNER).unlink()
    assert runs.prometheus() is None
    assert runs.sweep() == len(pids)
    assert not any(map(running, pids))
    assert [path.name for path in register.iterdir()] == ["lock"]


def test_a_run_being_opened_is_not_swept(monkeypatch):
    """Between the folder and its owner's name there is no sweep."""
    swept = threading.Event()
    other = threading.Thread(target=lambda: (runs.sweep(), swept.set()))
    write = wholefile.write

    def slowly(file, text):
        other.start()
        assert not swept.wait(0.3)
        write(file, text)

    monkeypatch.setattr(wholefile, "write", slowly)
    run = runs.open_run()
    other.join()
    assert run.exists()


def test_a_removal_that_was_cut_short_is_carried_on(monkeypatch, register, dead):
    """The folder is renamed first, so that half of it is never taken for a run."""
    run = dead()
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda folder, ignore_errors: (folder / runs.OWNER).unlink())
        runs.sweep()
    assert [path.name for path in register.glob("*-*")] == [f"{run.name}.dead"]
    assert runs.all_runs() == []
    runs.sweep()
    assert not list(register.glob("*-*"))


def test_a_kept_run_outlives_sweeps_until_it_is_cleared(dead):
    """keep is heeded by the guard, which sees the session end a moment later, and by every sweep."""
    run = dead()
    runs._update(run, kept=True)
    runs.abandon(run)
    assert runs.sweep() == 0
    assert running(child(run))
    assert runs.clear_all() == 1
    assert not run.exists()


def test_what_down_could_not_end_is_its_exit_code(register):
    """As where Docker refuses to delete a cluster; the next call tries again."""
    end = register / "1-left" / processes.END
    end.parent.mkdir()
    end.write_text("#!/bin/sh\nexit 1\n")
    end.chmod(0o700)
    assert down.run(Namespace()) == FAULT
    end.unlink()
    assert down.run(Namespace()) == HELD


def test_two_caches_share_no_pod_network(tmp_path):
    """Whoever else runs a lab on this machine, from whatever folder, has other addresses."""
    code = "from lab.host import resources; print(resources.claim_pod_network().prefix)"
    env = dict(os.environ, ELASTIC_LAB_CACHE=str(tmp_path / "another"))
    own = resources.claim_pod_network()
    with own.holder:
        theirs = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert theirs.strip().startswith("127.")
    assert theirs.strip() != own.prefix


def test_a_pod_network_is_held_by_what_inherits_it():
    """The session's end does not give it back while the node runs; the node's end does."""
    run, claim = runs.open_run(), resources.claim_pod_network()
    holder = os.fstat(claim.holder.fileno()).st_ino  # a session beside this one may take the same network once it is given back
    processes.start(run, processes.NODE, SLEEP, inherited=(claim.holder.fileno(),))
    claim.holder.close()
    other = resources.claim_pod_network()
    assert other.prefix != claim.prefix
    other.holder.close()
    assert networks()[holder] == claim.prefix
    processes.clear(run)
    assert holder not in networks()


def taken(run, attempts):
    """Start two components of which one finds its port taken in the first ``attempts`` attempts; returns the other's pid."""
    other = processes.start(run, "other", SLEEP).process.pid
    attempts.append(other)
    if len(attempts) <= attempts[0]:
        one = processes.start(run, "one", ["sh", "-c", "echo listen tcp 127.0.0.1:1: bind: address already in use; exit 1"])
        one.process.wait()
        one.check()
    return other


def test_a_port_taken_meanwhile_is_another_attempt():
    """All of the first attempt is ended, and the second has a run of its own."""
    attempts = [2]
    pid, run, guard = runs.start(lambda run: taken(run, attempts))
    assert attempts[1:] == [attempts[1], pid]
    assert not running(attempts[1])
    assert running(pid)
    assert runs.all_runs() == [run]
    processes.clear(run)
    processes.dismiss(guard)


@pytest.mark.parametrize(
    ("error", "said", "tried"),
    [
        (None, r"one ended with code 1: .*address already in use", runs.ATTEMPTS),
        (LabFault("no Java"), "no Java", 1),
        (OSError(28, "No space left on device", "/x"), "No space left on device: '/x'", 1),
    ],
    ids=["a port that stays taken", "another fault", "full disk"],
)
def test_attempts_have_an_end(register, error, said, tried):
    """After three it is a fault of the lab. What would only fail again is one at once. Nothing is left of either."""
    pids = []

    def work(run):
        pids.append(processes.start(run, "first", SLEEP).process.pid)
        if error:
            raise error
        taken(run, [9])

    with pytest.raises(LabFault, match=said):
        runs.start(work)
    assert len(pids) == tried
    assert not any(map(running, pids))
    assert not list(register.glob("*-*"))


@pytest.mark.parametrize("content", [b"", b"{", b"\xff"])
def test_a_torn_state_of_kind_is_no_cluster(content):
    """No start stumbles over it."""
    run = runs.open_run()
    (run / state.STATE).write_bytes(content)
    assert state.read(run) is None


def test_ports_are_free_different_and_not_ones_that_connections_take():
    """Each can be bound, no two are alike, and none lies in the range of outgoing connections."""
    first_ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = processes.free_ports(30)
    assert len(set(ports)) == 30
    assert all(port < first_ephemeral for port in ports)
    for port in ports:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))


def test_a_port_is_given_once_until_its_component_has_bound_it(monkeypatch):
    """Two sessions that start at the same time choose different ones, and both pass over one that something listens on."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    busy, port, other = (probe.getsockname()[1] for probe in probes)
    for probe in probes[1:]:
        probe.close()
    monkeypatch.setattr("lab.host.processes.random.sample", lambda population, k: [busy, port, other])
    sample = f"random.sample = lambda population, k: [{busy}, {port}]"
    theirs = f"import random; from lab.host import processes; {sample}; print(processes.free_ports(1)); input()"
    with (
        probes[0],
        subprocess.Popen([sys.executable, "-c", theirs], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session,
    ):
        assert session.stdout is not None
        assert session.stdout.readline() == f"[{port}]\n"
        assert processes.free_ports(1) == [other]
        session.communicate("\n")
        assert processes.free_ports(1) == [port]
        with pytest.raises(LabFault, match="no 1 free loopback ports"):
            processes.free_ports(1)
        monkeypatch.setattr(resources, "RESERVED_S", -1.0)
        assert processes.free_ports(1) == [port]
