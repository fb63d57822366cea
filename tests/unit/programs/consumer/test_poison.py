"""A poison that ends, stops or occupies its consumer: in a process of its own, since the call does not return."""

import signal
import subprocess
import sys

import psutil
import pytest

from lab.inputs.consumer import FAIL, POISON_MODES
from lab.inputs.failures import Failures, Place
from lab.programs.consumer.poison import CODE, MODES, strike
from lab.wait import until

from .messages import message

POISON = Failures(poison=Place(1, 5))


@pytest.fixture
def struck():
    """Starts a process that is struck in a mode, with a handler of SIGTERM as a consumer has; it is ended with the test."""
    started = []

    def start(mode):
        program = "import signal; from lab.programs.consumer.poison import MODES; "
        program += f"signal.signal(signal.SIGTERM, lambda *_: None); print('up', flush=True); MODES[{mode!r}]()"
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == b"up\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_every_mode_but_a_failing_attempt_strikes():
    """What a workload may say is what the consumer can do; a batch without poison is left alone."""
    assert {FAIL, *MODES} == {*POISON_MODES}
    for mode in MODES:
        strike([message(1, 4), message(0, 5)], POISON, mode)


def test_a_crash_ends_the_process_with_a_code_of_its_own(struck):
    """By which a pod's status tells it from a kill."""
    assert struck("crash").wait(30) == CODE


def test_a_hang_stands_still_and_a_spin_computes_and_both_outlive_sigterm(struck):
    """Only SIGKILL ends them, as after a failed liveness probe."""
    hung, spinning = struck("hang"), struck("spin")
    for process in (hung, spinning):
        process.send_signal(signal.SIGTERM)
    watched, busy = psutil.Process(hung.pid), psutil.Process(spinning.pid)
    before = busy.cpu_times().user
    until(lambda: busy.cpu_times().user > before + 0.1, 60, "it computes")
    until(lambda: watched.status() == psutil.STATUS_SLEEPING, 60, "it waits again")
    assert (hung.poll(), spinning.poll()) == (None, None)
