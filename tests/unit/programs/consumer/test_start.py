"""The cold start that a workload declares: alive, not ready, and over at its time or with the first signal."""

import time
from unittest.mock import MagicMock

import pytest

from lab import clock
from lab.inputs.consumer import flags, settings
from lab.programs.consumer import __main__ as main


@pytest.fixture
def starting(monkeypatch):
    """A consumer with a broker that it never reaches; its metrics, which are the process's, can be registered once only."""
    monkeypatch.setattr(main, "Metrics", MagicMock)
    return main.Program(settings(flags().parse_args(["--bootstrap-servers=127.0.0.1:9"])))


def test_a_start_lasts_until_its_time_and_the_pod_is_alive_but_not_ready(starting):
    """What the process itself took is part of it: a time that has passed is not waited for."""
    begun = time.monotonic()
    starting._start_up(clock.now() + 0.3)
    assert 0.29 <= time.monotonic() - begun < 10
    assert (starting.healthy(), starting.ready()) == (True, False)
    begun = time.monotonic()
    starting._start_up(clock.now() - 60)
    assert time.monotonic() - begun < 10


def test_a_signal_ends_a_start(starting):
    """A pod that is deleted while it starts does not first get ready."""
    starting.terminate()
    begun = time.monotonic()
    starting._start_up(clock.now() + 60)
    assert time.monotonic() - begun < 10
