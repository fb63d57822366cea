"""A process's time when the machine's wall clock is stepped: durations, order and receipts stay as they were."""

import itertools
import os
import time
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from lab.clock import PROCESS, Clock
from lab.programs.consumer.__main__ import Program
from tests.unit.programs.consumer.messages import chosen, message


class Machine:
    """A machine's two clocks, of which only the wall clock can be stepped, and a process's clock that starts now."""

    def __init__(self):
        self.wall, self.mono = 1_000_000.0, 50.0
        self.clock = Clock(lambda: self.wall, lambda: self.mono)

    def pass_s(self, seconds):
        """Let time pass."""
        self.wall += seconds
        self.mono += seconds


def test_a_step_of_the_wall_clock_moves_no_time():
    """Time goes on from the one reading at the start, and the step itself is told."""
    machine = Machine()
    machine.pass_s(2)
    machine.wall -= 5
    machine.pass_s(3)
    assert (machine.clock.now(), machine.clock.moved_s()) == (1_000_005.0, -5.0)


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


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(-1000, 1000))))
def test_time_never_goes_back(history):
    """However the wall clock is stepped."""
    machine = Machine()
    seen = [machine.clock.now()]
    for seconds, step in history:
        machine.pass_s(seconds)
        machine.wall += step
        seen.append(machine.clock.now())
    assert all(one <= two for one, two in itertools.pairwise(seen))


def test_a_receipt_ends_after_it_started_when_the_clock_steps_back(monkeypatch):
    """A step of 5 s within a batch: the ledger refuses a record with one receipt whose end lies before its start."""
    program, kept = Program(chosen("--process-ms=10", "--concurrency=1")), []
    program._store = SimpleNamespace(write=kept.extend)
    walls = itertools.count(time.time(), -5)
    monkeypatch.setattr(time, "time", lambda: next(walls))
    assert program._process([message(0, 0), message(0, 1)])
    (receipt,) = kept
    assert 0.02 <= receipt.end - receipt.start < 5
