"""The machine's speed: all cores count, the best round counts, and a speed that is not known is not made up."""

import subprocess
from dataclasses import replace

import pytest

from lab.host import machine, speed
from lab.host.machine import median_speed, name_machines, speed_in_words
from tests.unit.measure.whole import MACHINE


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
