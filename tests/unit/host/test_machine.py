"""The machine: where no trial can run, that is said before one starts; its speed counts all cores, and none is made up."""

import contextlib
import subprocess
from dataclasses import replace

import pytest

from lab.errors import LabFault
from lab.host import machine, runs, speed
from lab.host.machine import median_speed, name_machines, speed_in_words
from tests.unit.measure.whole import MACHINE


@pytest.mark.parametrize("wanting", [machine.available_bytes, runs.open_run, runs.sweep], ids=lambda one: one.__name__)
def test_a_system_other_than_linux_is_one_line(monkeypatch, tmp_path, wanting):
    """It says what works there too, and nothing is left behind."""
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setenv("ELASTIC_LAB_CACHE", str(tmp_path))
    with pytest.raises(
        LabFault, match="a trial needs Linux, and this is darwin: simulate, tune, threshold and judge work here"
    ):
        wanting()
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


@pytest.mark.parametrize(
    ("speeds", "too_slow"),
    [([99, 98, 97], "0 of the 0 thousand"), ([99, 98, 100], ""), ([None], ""), ([150], "")],
    ids=["slow", "fast at last", "unknown", "fast"],
)
def test_a_slow_machine_is_one_line(monkeypatch, speeds, too_slow):
    """The best of three attempts counts, because a neighbour may take a moment; what is not known is no reason."""
    measured = iter(speeds)
    monkeypatch.setattr(machine, "_speed", lambda: next(measured))
    with pytest.raises(LabFault, match=too_slow) if too_slow else contextlib.nullcontext():
        machine.check_speed(100)
    machine.check_speed(0)  # asks nothing
    assert not list(measured)


def test_the_best_round_of_all_cores_together_counts():
    """A process that is late in one round, or disturbed in one, has done less there."""
    assert speed.best([[10, 40, 50], [30, 45, 20]]) == pytest.approx(85 / speed.ROUND_S)


@pytest.mark.parametrize(
    ("program", "deadline_s", "said"),
    [("import sys; sys.exit(3)", 30, ""), ("print('no count')", 30, ""), ("import signal; signal.pause()", 0.5, "timed out")],
)
def test_a_worker_that_does_not_end_well_leaves_no_speed(tmp_path, monkeypatch, caplog, program, deadline_s, said):
    """The trial goes on: its machine has no speed, and a line says so. No process is left behind."""
    broken, left, start = tmp_path / "worker.py", [], subprocess.Popen
    broken.write_text(program)
    monkeypatch.setattr(speed, "__file__", str(broken))
    monkeypatch.setattr(speed, "DEADLINE_S", deadline_s)
    monkeypatch.setattr(subprocess, "Popen", lambda *words, **named: left.append(start(*words, **named)) or left[-1])
    assert machine.describe().speed is None
    assert left
    assert all(one.poll() is not None for one in left)
    assert "the machine's speed is not known" in caplog.text
    assert said in caplog.text


def test_machines_of_one_name_are_told_apart_by_their_speed():
    """The median, the least and the most; a record of before has none, and a machine of another name is another."""
    fast, slow, before = (replace(MACHINE, speed=one) for one in (310_000.0, 200_400.0, None))
    assert name_machines([before]) == "2 cores, AMD EPYC"
    assert name_machines([fast]) == "2 cores, AMD EPYC, speed 310 thousand events/s"
    other = replace(fast, cores=4)
    named = "2 cores, AMD EPYC, speed 310 (200 to 310) thousand events/s; 4 cores, AMD EPYC, speed 310 thousand events/s"
    assert name_machines([fast, before, slow, other, fast]) == named
    assert speed_in_words([before]) == ""
    assert median_speed([fast, before, slow, fast]) == 310_000
    assert median_speed([before]) is None
