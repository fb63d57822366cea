"""A pod's slots: the time that processing takes, and how much of it is spent computing."""

import threading
import time

import pytest

from lab.programs.consumer.downstream import Slots


@pytest.mark.parametrize(("burn", "least", "most"), [(0, 0, 0.03), (50, 0.1, 0.2), (100, 0.2, 0.3)])
def test_a_share_of_the_time_is_computed(burn, least, most):
    """200 ms of work use so much CPU of this thread, and take at least their time."""
    slots, begun, used = Slots(1, burn), time.monotonic(), time.thread_time()
    assert slots.work(200)
    assert time.monotonic() - begun >= 0.2
    assert least <= time.thread_time() - used <= most


def test_computing_is_given_up_when_the_drain_time_is_over():
    """As waiting is: no receipt, no commit."""
    abandon = threading.Event()
    abandon.set()
    begun = time.monotonic()
    assert not Slots(1, 100).work(60_000, abandon)
    assert time.monotonic() - begun < 1
