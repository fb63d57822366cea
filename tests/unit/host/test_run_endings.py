"""What a run started is ended: whatever is recorded of it, whatever it starts meanwhile, and nothing else."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from lab.cluster.kind import state
from lab.host import identity, processes, runs
from lab.wait import until
from tests.suite import PROGRAM_S

from .run_harness import SLEEP, bystander, child, dead, register, running

__all__ = ["bystander", "dead", "register"]


def test_what_no_file_names_is_found_by_its_mark(dead, bystander):
    """What a process of the run started, in a session of its own, or with no environment; a bystander is left alone."""
    run = dead()
    processes.forget(run, child(run))
    script = "setsid sleep 301 & env -i sleep 302 & exec sleep 303"
    shell = subprocess.Popen(["sh", "-c", script], env=identity.environment(run), start_new_session=True)
    until(lambda: len(family(shell.pid)) == 3, 30, "the shell's children")
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
    shutil.rmtree(run)
    assert runs.sweep() == 1
    assert not running(pid)
    assert bystander.poll() is None


def test_a_process_that_changes_its_program_is_found(monkeypatch):
    """For a moment its environment is empty: it is asked again."""
    monkeypatch.setattr(identity, "EXEC_S", 30.0)  # a busy machine takes longer to ask three times than an exec
    run = runs.open_run()
    pid = processes.start(run, "one", SLEEP).process.pid
    answers = {pid: 3}
    read = Path.read_bytes

    def empty_at_first(path):
        asked = int(path.parent.name) if path.name == "environ" else 0
        answers[asked] = answers.get(asked, 0) - 1
        return b"" if answers[asked] >= 0 else read(path)

    monkeypatch.setattr(Path, "read_bytes", empty_at_first)
    assert pid in identity.marked()[run.resolve()]
    monkeypatch.undo()
    processes.clear(run)


NODE = """
import signal, subprocess, sys, time
def end(*_):
    for _ in range(4):
        subprocess.Popen(["sleep", "304"], start_new_session=True)
        time.sleep(0.25)
    open(sys.argv[1], "w").close()
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
signal.pause()
"""


def test_a_node_has_its_time_to_stop_and_what_it_starts_meanwhile_is_ended(tmp_path, monkeypatch):
    """It is not killed as soon as others are, and no list of processes made before is taken for all there are."""
    monkeypatch.setattr(processes, "GRACE_S", 0.5)
    run = runs.open_run()
    daemon = processes.start(run, processes.NODE, [sys.executable, "-c", NODE, tmp_path / "stopped"])
    until(lambda: b"ready" in daemon.log.read_bytes(), 30, "the node's handler")
    assert processes.clear(run) == 5
    assert (tmp_path / "stopped").exists()
    assert run.resolve() not in identity.marked()


FULL_DISK = """
import asyncio, os, resource, sys
from pathlib import Path
from lab.host import processes, runs
from lab.kubelet import process
from lab.errors import LabFault
log, run = Path(sys.argv[1]) / "log", runs.open_run()
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
sleep, how = ["sleep", "305"], {"env": os.environ, "cwd": "/", "run": run, "name": "n"}
for work in (
    lambda: processes.start(run, "one", sleep),
    lambda: asyncio.run(process.Process.start(sleep, log=log, **how)),
    lambda: asyncio.run(process.run_to_end(sleep, timeout_s=9, **how)),
    lambda: runs.open_run(),
):
    try:
        work()
    except (LabFault, OSError) as error:
        print(type(error).__name__, error)
"""


def test_with_a_full_disk_nothing_runs_that_is_not_recorded(register):
    """A daemon, a pod and a probe that can't be recorded are ended, and no run is opened: one line each says why.

    The next start finds an owner's file that is whole, and no folder that it would have to guess about.
    """
    command = [sys.executable, "-c", FULL_DISK, os.environ["ELASTIC_LAB_CACHE"]]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_S, check=True).stdout.splitlines()
    faults = ("LabFault one can't be started: ", "OSError ", "OSError ", f"LabFault no run can be registered in {register}: ")
    assert [line.startswith(fault) for line, fault in zip(printed, faults, strict=True)] == [True] * len(faults)
    (run,) = runs.all_runs()
    assert run.resolve() not in identity.marked()
    assert list((run / "pids").iterdir()) == []
    assert runs.sweep() == 0
    assert not list(register.glob("*-*"))


def test_what_kind_starts_is_marked():
    """The kind command is a script of the run's: what it starts is ended before its cluster is deleted."""
    run = runs.open_run()
    state.leave_commands(run, "/usr/bin/env")
    printed = subprocess.run([str(run / "kind")], capture_output=True, text=True, check=True).stdout
    assert f"{identity.VARIABLE}={run.resolve()}\n" in printed


@pytest.mark.parametrize(("ending", "there"), [("exit 0", False), ("exit 1", True), ("exec sleep 306", True)])
def test_what_can_not_be_undone_is_kept_for_the_next_start(dead, ending, there, monkeypatch):
    """A kind cluster that Docker does not delete now is still known, and a Docker that hangs does not hold the register."""
    monkeypatch.setattr(processes, "UNDO_S", 5.0 if ending == "exit 0" else 0.5)
    run = dead()
    (run / processes.END).write_text(f"#!/bin/sh\n{ending}\n")
    (run / processes.END).chmod(0o700)
    pid = child(run)
    assert runs.sweep() == 1
    assert not running(pid)
    assert run.exists() == there
