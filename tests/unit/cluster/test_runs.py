"""The register of runs: whatever a session leaves of itself, the next start finds it, ends it and removes it, and only it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from lab import paths, wholefile
from lab.cluster import identity, mark, podnetwork, processes, runs
from lab.cluster.kind import state
from lab.errors import LabFault
from lab.wait import until

SLEEP = ["sleep", "300"]


@pytest.fixture(autouse=True)
def register(tmp_path, monkeypatch):
    """A register of the test's own; returns its folder."""
    monkeypatch.setenv("ELASTIC_LAB_CACHE", str(tmp_path / "cache"))
    return paths.state_dir()


@pytest.fixture
def dead():
    """A function that opens a run whose session is gone, with one process that still runs."""

    def left():
        code = "from lab.cluster import processes, runs; run = runs.open_run(); processes.start(run, 'one', ['sleep', '300']);"
        ran = subprocess.run([sys.executable, "-c", f"{code} print(run)"], capture_output=True, text=True, check=True)
        return Path(ran.stdout.strip())

    return left


@pytest.fixture
def bystander():
    """A process that the lab did not start."""
    process = subprocess.Popen(SLEEP)
    yield process
    process.kill()
    process.wait()


def step(monkeypatch, seconds):
    """Step the wall clock, as psutil sees it: it dates a process by its ticks since the boot and the boot's wall time."""
    boot = psutil._pslinux.boot_time
    monkeypatch.setattr(psutil._pslinux, "boot_time", lambda: boot() + seconds)


def running(pid):
    """Whether a process runs; one that has ended and is not fetched yet does not."""
    return identity.of(pid) is not None


def child(run):
    """The pid of the one process recorded in ``run``."""
    (process,) = processes.remembered(run)
    return process.pid


@pytest.mark.parametrize("seconds", [-5, 5])
def test_a_clock_step_leaves_a_live_run_alone(monkeypatch, seconds):
    """Another session's sweep finds the owner alive; the run's processes are still known, and ended when it is cleared."""
    run = runs.open_run()
    pid = processes.start(run, "one", SLEEP).process.pid
    step(monkeypatch, seconds)
    assert runs.sweep() == 0
    assert child(run) == pid
    assert processes.clear(run) == 1
    assert not running(pid)


@pytest.mark.parametrize("seconds", [-5, 5])
def test_after_a_clock_step_a_dead_run_is_cleared(monkeypatch, dead, seconds):
    """The guard, or the next start, still knows whom to end."""
    run = dead()
    pid = child(run)
    step(monkeypatch, seconds)
    assert runs.sweep() == 1
    assert not running(pid)
    assert not run.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"pid": 1}', b'{"pid": "x", "kept": []}', b"\xff"])
def test_a_run_that_names_no_owner_is_dead(register, content):
    """A crash or a full disk may leave anything in the file: no start stumbles over it, and what ran is ended."""
    run = runs.open_run()
    pid = processes.start(run, "one", SLEEP).process.pid
    (run / runs.OWNER).write_bytes(content)
    assert runs.prometheus() is None
    assert runs.sweep() == 1
    assert not running(pid)
    assert [path.name for path in register.iterdir()] == ["lock"]
    processes.clear(runs.open_run())


def test_a_folder_without_an_owner_is_dead(register):
    """Cut short while it was opened, while it was removed, or of which nothing could be removed yet."""
    (register / "1-opened").mkdir()
    (register / "2-removed.dead" / "pids").mkdir(parents=True)
    run = runs.open_run()
    pid = processes.start(run, "one", SLEEP).process.pid
    (run / runs.OWNER).unlink()
    runs.sweep()
    assert not running(pid)
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
        patched.setattr(processes.shutil, "rmtree", lambda folder, ignore_errors: (folder / runs.OWNER).unlink())
        runs.sweep()
    assert [path.name for path in register.glob("*-*")] == [f"{run.name}.dead"]
    assert runs.all_runs() == []
    runs.sweep()
    assert not list(register.glob("*-*"))


def test_what_no_file_names_is_found_by_its_mark(dead, bystander):
    """What a process of the run started, in a session of its own, or with no environment; a bystander is left alone."""
    run = dead()
    processes.forget(run, child(run))
    script = "setsid sleep 301 & env -i sleep 302 & exec sleep 303"
    shell = subprocess.Popen(["sh", "-c", script], env=mark.environment(run), start_new_session=True)
    until(lambda: len(family(shell.pid)) == 3, 10, "the shell's children")
    pids = family(shell.pid)
    try:
        assert runs.sweep() == 4
        shell.wait()
        assert not any(map(running, pids))
        assert bystander.poll() is None
    finally:
        for pid in filter(running, pids):
            os.kill(pid, signal.SIGKILL)


def family(pid):
    """A process and its children, once each runs its own program."""
    return [one.pid for one in (psutil.Process(pid), *psutil.Process(pid).children()) if one.name() == "sleep"]


def test_what_runs_without_its_folder_is_ended(dead, bystander):
    """Someone removed the folder of a run with everything in it."""
    run = dead()
    pid = child(run)
    processes.shutil.rmtree(run)
    assert runs.sweep() == 1
    assert not running(pid)
    assert bystander.poll() is None


def test_a_process_that_changes_its_program_is_found(monkeypatch):
    """For a moment its environment is empty: it is asked again."""
    run = runs.open_run()
    pid = processes.start(run, "one", SLEEP).process.pid
    answers = {pid: 3}
    read = mark.Path.read_bytes

    def empty_at_first(path):
        asked = int(path.parent.name) if path.name == "environ" else 0
        answers[asked] = answers.get(asked, 0) - 1
        return b"" if answers[asked] >= 0 else read(path)

    monkeypatch.setattr(mark.Path, "read_bytes", empty_at_first)
    assert pid in mark.marked()[run.resolve()]
    monkeypatch.undo()
    processes.clear(run)


NODE = """
import signal, subprocess, sys, time
def end(*_):
    for _ in range(4):
        subprocess.Popen(["sleep", "304"], start_new_session=True)
        time.sleep(1)
    open(sys.argv[1], "w").close()
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
signal.pause()
"""


def test_a_node_has_its_time_to_stop_and_what_it_starts_meanwhile_is_ended(tmp_path):
    """It is not killed after 3 s, and no list of processes made before is taken for all there are."""
    run = runs.open_run()
    daemon = processes.start(run, processes.NODE, [sys.executable, "-c", NODE, tmp_path / "stopped"])
    until(lambda: b"ready" in daemon.log.read_bytes(), 10, "the node's handler")
    assert processes.clear(run) == 5
    assert (tmp_path / "stopped").exists()
    assert run.resolve() not in mark.marked()


def full_disk(work):
    """What ``work`` prints in a process that can write no byte into any file, and the register's folder after it."""
    code = f"""
import asyncio, json, os, resource, sys
from pathlib import Path
from lab.cluster import processes, runs
from lab.cluster.node import process
from lab.errors import LabFault
cache, run = Path(sys.argv[1]), runs.open_run()
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
try:
    {work}
except (LabFault, OSError) as error:
    print(type(error).__name__, error)
"""
    command = [sys.executable, "-c", code, os.environ["ELASTIC_LAB_CACHE"]]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout


@pytest.mark.parametrize(
    ("work", "fault"),
    [
        ("processes.start(run, 'one', ['sleep', '305'])", "LabFault one can't be started: "),
        (
            "asyncio.run(process.Process.start(['sleep', '305'], env=os.environ, cwd='/', log=cache / 'l', run=run, name='n'))",
            "OSError ",
        ),
        (
            "asyncio.run(process.run_to_end(['sleep', '305'], env=os.environ, cwd='/', timeout_s=9, run=run, name='n'))",
            "OSError ",
        ),
    ],
    ids=["daemon", "pod", "probe"],
)
def test_with_a_full_disk_nothing_runs_that_is_not_recorded(register, work, fault):
    """What can't be recorded is ended; the next start finds an owner's file that is whole."""
    assert full_disk(work).startswith(fault)
    assert not mark.marked().keys() & {run.resolve() for run in runs.all_runs()}
    assert [list((run / "pids").iterdir()) for run in runs.all_runs()] == [[]]
    assert runs.sweep() == 0
    assert not list(register.glob("*-*"))


def test_with_a_full_disk_no_run_is_opened(register):
    """One line says why, and no folder is left that a later start would have to guess about."""
    assert full_disk("runs.open_run()").startswith(f"LabFault no run can be registered in {register}: ")
    assert len(runs.all_runs()) == 1
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


def test_two_caches_share_no_pod_network(tmp_path):
    """Whoever else runs a lab on this machine, from whatever folder, has other addresses."""
    code = "from lab.cluster import podnetwork; claim = podnetwork.claim(); print(claim.prefix, flush=True); input()"
    with contextlib.ExitStack() as others:
        prefixes = []
        for number in range(3):
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            env = dict(os.environ, ELASTIC_LAB_CACHE=str(tmp_path / str(number)))
            other = others.enter_context(subprocess.Popen([sys.executable, "-c", code], env=env, **pipes))
            prefixes.append(other.stdout.readline().strip())
            others.callback(other.stdin.close)
        assert len(set(prefixes)) == 3


def test_a_pod_network_is_held_by_what_inherits_it():
    """The session's end does not give it back while the node runs; the node's end does."""
    run, claim = runs.open_run(), podnetwork.claim()
    processes.start(run, processes.NODE, SLEEP, inherited=(claim.fileno,))
    claim.close()
    other = podnetwork.claim()
    assert other.prefix != claim.prefix
    other.close()
    processes.clear(run)
    again = podnetwork.claim()
    assert again.prefix == claim.prefix
    again.close()


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


def test_attempts_have_an_end(register):
    """After three it is a fault of the lab, and nothing is left."""
    attempts = [9]
    with pytest.raises(LabFault, match=r"one ended with code 1: .*address already in use"):
        runs.start(lambda run: taken(run, attempts))
    assert len(attempts) == 1 + runs.ATTEMPTS
    assert not any(map(running, attempts[1:]))
    assert not list(register.glob("*-*"))


def test_another_fault_is_not_tried_again():
    """What would only fail again is raised at once."""
    attempts = []

    def work(run):
        attempts.append(run)
        raise LabFault("no Java")

    with pytest.raises(LabFault, match="no Java"):
        runs.start(work)
    assert len(attempts) == 1


def test_a_disk_that_fills_meanwhile_is_one_line(register):
    """A component's file that can't be written is a fault of the lab, after which nothing is left."""

    def work(run):
        processes.start(run, "one", SLEEP)
        raise OSError(28, "No space left on device", "/x")

    with pytest.raises(LabFault, match=r"No space left on device: '/x'"):
        runs.start(work)
    assert not list(register.glob("*-*"))


def test_an_entry_says_what_the_owner_is(register):
    """Pid, ticks and boot: no wall clock in it."""
    entry = json.loads((runs.open_run() / runs.OWNER).read_text())
    assert identity.read(entry) == identity.of(os.getpid())
    assert set(entry) == {"kept", "pid", "ticks", "boot"}


def test_what_kind_starts_is_marked():
    """The kind command is a script of the run's: what it starts is ended before its cluster is deleted."""
    run = runs.open_run()
    state.leave_commands(run, "/usr/bin/env")
    printed = subprocess.run([str(run / "kind")], capture_output=True, text=True, check=True).stdout
    assert f"{mark.VARIABLE}={run.resolve()}\n" in printed


@pytest.mark.parametrize(("code", "there"), [(0, False), (1, True)])
def test_what_can_not_be_undone_is_kept_for_the_next_start(dead, code, there):
    """A kind cluster that Docker does not delete now is still known."""
    run = dead()
    (run / processes.END).write_text(f"#!/bin/sh\nexit {code}\n")
    (run / processes.END).chmod(0o700)
    pid = child(run)
    assert runs.sweep() == 1
    assert not running(pid)
    assert run.exists() == there


@pytest.mark.parametrize("content", [b"", b"{", b"\xff"])
def test_a_torn_state_of_kind_is_no_cluster(content):
    """No start stumbles over it."""
    run = runs.open_run()
    (run / state.STATE).write_bytes(content)
    assert state.read(run) is None
