"""What is in flight follows from commits and polls."""

from lab.foresee.in_flight import CLIENTS_COMMIT_S, InFlight
from lab.inputs.workload import Workload


def test_what_is_in_flight_follows_from_the_commits():
    """Half of the interval and a poll on average; a scale divides the interval and not the poll."""
    slow = InFlight.of(Workload(commit_interval_ms=30_000, poll_ms=2000))
    assert (slow.least_s, slow.mean_s, slow.most_s) == (2.0, 17.0, 32.0)
    assert InFlight.of(Workload(commit_interval_ms=3000, poll_ms=40, batch_ms=80), time=30.0).mean_s == 0.13
    assert InFlight(CLIENTS_COMMIT_S).mean_s == 2.5
