"""Which attempts fail, the same for numbers and arrays, by a seed; and a poison, which ends, stops or occupies a process."""

import signal
import subprocess
import sys

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.inputs.consumer import FAIL, POISON_MODES
from lab.inputs.failures import Failures, Place, mixed
from lab.programs.consumer.poison import CODE, MODES, strike
from lab.wait import until

from .messages import message

MANY = 200_000
SEQS = np.arange(MANY, dtype=np.uint64)
seeds = st.integers(0, 2**63 - 1)
seqs = st.integers(0, 2**40)


@given(seeds, st.lists(seqs, min_size=1, max_size=50), st.integers(1, 20))
def test_arrays_say_what_numbers_say(seed, some, retries):
    """What a record is checked by is what the consumer did."""
    chosen = Failures(seed, 0.3, 0.2, Place(1, 5), retries)
    column = np.array(some, dtype=np.uint64)
    partition, offset = np.full(len(some), 1), np.arange(len(some))
    assert chosen.transient(column).tolist() == [chosen.transient(seq) for seq in some]
    assert chosen.never(partition, offset, column).tolist() == [bool(chosen.never(1, at, seq)) for at, seq in enumerate(some)]


@given(seeds, seqs, st.integers(1, 20))
def test_a_transient_failure_ends_with_the_last_retry_and_a_poison_never_does(seed, seq, retries):
    """Attempt 1 to some fail and every later one succeeds; or all fail. Jitter stays within its share, the same every time."""
    chosen = Failures(seed, 0.5, 0.25, None, retries)
    tried = [chosen.fails(0, 0, seq, attempt) for attempt in range(1, retries + 3)]
    assert tried == sorted(tried, reverse=True)
    assert all(tried) == bool(chosen.never(0, 0, seq))
    assert sum(tried) in (0, *range(1, retries + 1), len(tried))
    assert all(tried) or sum(tried) == chosen.transient(seq)
    assert -1 <= chosen.jitter(seq, retries) == Failures(seed).jitter(seq, retries) < 1


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_shares_are_those_asked_for_and_another_seed_fails_others(seed):
    """1 % and 0.5 % of 200,000 messages within five standard deviations, and each number of attempts a third of them.

    A message is transient or poison; of two seeds' failures few are the same.
    """
    chosen, other = Failures(seed, 0.01, 0.005), Failures(seed + 1, 0.01, 0.005)
    attempts, poison = chosen.transient(SEQS).astype(int), chosen.never(0, 0, SEQS)
    found = np.count_nonzero(attempts)
    both = np.count_nonzero((attempts > 0) & (other.transient(SEQS) > 0))
    for count, share in ((found, 0.01), (np.count_nonzero(poison), 0.005), (both, 0.01**2)):
        assert abs(count - MANY * share) < 5 * np.sqrt(MANY * share * (1 - share))
    assert all(abs(count - found / 3) < 5 * np.sqrt(found / 3) for count in np.bincount(attempts)[1:])
    assert not ((attempts > 0) & poison).any()


def test_one_message_is_named_by_its_place():
    """Only offset 1000 of partition 3, whatever its seq; and nothing else is injected."""
    chosen = Failures(poison=Place.parse("3:1000"))
    assert chosen.any
    assert chosen.fails(3, 1000, 77, 10_000)
    assert not chosen.fails(3, 1001, 77, 1)
    assert not chosen.fails(2, 1000, 77, 1)
    assert not Failures().any
    assert Place.parse("") is None


@pytest.mark.parametrize("text", ["3", "3:", ":5", "a:1", "-1:5", "1:2:3", "1.0:2"])
def test_a_place_that_is_none_is_refused(text):
    """Anything but PARTITION:OFFSET."""
    with pytest.raises(ValueError, match=r".*"):
        Place.parse(text)


@given(st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=100))
def test_mixing_loses_nothing(words):
    """Different words stay different: the finalizer is a bijection."""
    assert len({mixed(word) for word in words}) == len(words)


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
