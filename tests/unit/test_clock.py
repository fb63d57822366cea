"""A process's time when the machine's wall clock is stepped: durations, order and receipts stay as they were."""

import itertools
import os
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.clock import PROCESS, Clock
from lab.programs.consumer.__main__ import Program
from tests.unit.programs.consumer.messages import chosen, message


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(-1000, 1000))))
def test_a_step_of_the_wall_clock_moves_no_time(history):
    """Time goes on from the one reading at the start, and never back; the steps themselves are told."""
    wall, mono = 1_000_000.0, 50.0
    clock = Clock(lambda: wall, lambda: mono)
    seen = [clock.now()]
    for seconds, step in history:
        mono += seconds
        wall += seconds + step
        seen.append(clock.now())
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1_000_000.0 + sum(seconds for seconds, _ in history), rel=1e-9)
    assert clock.moved_s() == pytest.approx(sum(step for _, step in history), abs=1e-3)


def test_a_forked_process_reads_the_wall_clock_itself():
    """Its parent's reading may be hours old, and the wall clock was moved since."""
    already = PROCESS.moved_s()  # a machine may have set its clock since this process started
    PROCESS._wall = lambda: time.time() + 5
    try:
        read, write = os.pipe()
        if (pid := os.fork()) == 0:
            os.write(write, str(PROCESS.moved_s()).encode())
            os._exit(0)
        os.waitpid(pid, 0)
        assert abs(PROCESS.moved_s() - already - 5) < 0.5
        assert abs(float(os.read(read, 100))) < 0.5
    finally:
        PROCESS._wall = time.time
        os.close(read)
        os.close(write)


def test_a_receipt_ends_after_it_started_when_the_clock_steps_back(monkeypatch):
    """A step of 5 s within a batch: the ledger refuses a record with one receipt whose end lies before its start."""
    program, kept = Program(chosen("--process-ms=10", "--concurrency=1")), []
    program._store = SimpleNamespace(write=kept.extend)
    walls = itertools.count(time.time(), -5)
    monkeypatch.setattr(time, "time", lambda: next(walls))
    assert program._process([message(0, 0), message(0, 1)])
    (receipt,) = kept
    assert 0.02 <= receipt.end - receipt.start < 5
