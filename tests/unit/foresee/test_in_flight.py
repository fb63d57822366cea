"""What is in flight follows from commits and polls, as records have it."""

import pytest

from lab.foresee.in_flight import CLIENTS_COMMIT_S, InFlight
from lab.inputs.workload import Workload
from lab.measure.calibration import in_flight
from lab.record.store import opened
from tests.records import FOLDER


def test_what_is_in_flight_follows_from_the_commits():
    """Half of the interval and a poll on average; a scale divides the interval and not the poll."""
    slow = InFlight.of(Workload(commit_interval_ms=30_000, poll_ms=2000))
    assert (slow.least_s, slow.mean_s, slow.most_s) == (2.0, 17.0, 32.0)
    assert InFlight.of(Workload(commit_interval_ms=3000, poll_ms=40, batch_ms=80), time=30.0).mean_s == pytest.approx(0.13)
    assert InFlight(CLIENTS_COMMIT_S).mean_s == 2.5


@pytest.mark.parametrize("name", ["ten-bursts-lag-4500-9417e4a5", "ten-bursts-lag-4500-arrivals-e85b0bc5"])
def test_groups_at_real_time_had_so_much_in_flight(name):
    """Two records whose pods commit every 5 s: the median, the least and the most of their lag at the baseline."""
    record = opened(FOLDER / "records" / name)
    expected = InFlight.of(record.inputs.workload, record.scale.time)
    assert in_flight(record) == pytest.approx(expected.mean_s, rel=0.02)
    phase, rate = record.phases.iloc[0], record.profile.steps[0].rate
    lag = record.lag_within(phase["start"], phase["end"])["lag"] / rate
    assert (lag.min(), lag.max()) == pytest.approx((expected.least_s, expected.most_s), abs=0.1)
