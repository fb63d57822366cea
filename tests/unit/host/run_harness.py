"""Runs of a register of a test's own: a dead one, and who else runs on the machine."""

import subprocess
import sys
from pathlib import Path

import pytest

from lab import paths
from lab.host import identity, processes

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
        code = "from lab.host import processes, runs; run = runs.open_run(); processes.start(run, 'one', ['sleep', '300']);"
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


def running(pid):
    """Whether a process runs; one that has ended and is not fetched yet does not."""
    return identity.identify(pid) is not None


def child(run):
    """The pid of the one process recorded in ``run``."""
    (process,) = processes.remembered(run)
    return process.pid
