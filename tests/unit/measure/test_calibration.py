"""What the simulator has to know of consumers, read off records whose figures are known, and what follows from commits."""

import numpy as np
import pytest

from lab.errors import NoData
from lab.foresee.group import Consumers, Group
from lab.foresee.in_flight import CLIENTS_COMMIT_S, InFlight
from lab.inputs.workload import Workload
from lab.measure import calibration
from lab.measure.rebalance import Round, rebalance_rounds, round_count
from lab.record.store import opened
from tests.records import FOLDER

from .built import assigned, given_up, lags, pod, profile, record, replicas
from .conftest import report


def joined(*members):
    """(watch events, reports) of pods that were created and joined at (name, created, joined)."""
    watched = [pod(created, name, "ADDED", ready=False) for name, created, _ in members]
    return watched, [report(at, name, "subscribed") for name, _, at in members]


def test_starting_is_fitted_to_where_pods_joined(tmp_path):
    """4 pods decided at 10 and 4 at 11: 1 s and 0.25 s each, the second four after the first."""
    first = [(f"a{n}", 10.1, 12.0) for n in range(4)]
    second = [(f"b{n}", 11.1, 13.0) for n in range(4)]
    watched, told = joined(*first, *second)
    scaled = replicas((0, 4, 4), (10, 8, 4), (11, 12, 4))
    made = record(tmp_path, transitions=[*scaled, *watched], group_events=told)
    assert calibration.starts(made) == pytest.approx((1.0, 0.25), abs=0.03)
    with pytest.raises(NoData, match="no pod of a step up"):
        calibration.starts(record(tmp_path, transitions=replicas((0, 4, 4)), group_events=told))


def test_leaving_is_the_median_from_the_decision(tmp_path):
    """Two pods of a step down by two left 1 s and 3 s after it; what left later is another's."""
    told = [report(21, "a", "left"), report(23, "b", "left"), report(29, "c", "left")]
    made = record(tmp_path, transitions=replicas((0, 4, 4), (20, 2, 4)), group_events=told)
    assert calibration.stop(made) == pytest.approx(2.0)


def test_rounds_are_told_apart(tmp_path):
    """A round that a joiner sets off and that revokes, and the one that follows at once and hands out."""
    told = [report(5.0, "new", "subscribed"), given_up(5.5, "old", 1), assigned(5.5, "old", owned=1), assigned(5.6, "new")]
    told += [assigned(6.6, "new", 1), assigned(6.7, "old", owned=1)]
    made = record(tmp_path, times={"settling": 0, "driving": 1, "ended": 100}, group_events=told)
    first, second = rebalance_rounds(made)
    assert round_count(made).value == 2
    assert first == Round(pytest.approx(0.5), False, 1)
    assert second == Round(pytest.approx(1.0), True, 0)
    assert calibration.round_lengths(made) == pytest.approx((0.5, 1.0))


def test_what_is_in_flight_is_lag_over_arrivals(tmp_path):
    """30 messages at 100 a second are 0.3 s."""
    inputs, told = profile(10, 50, (0, "baseline"), (20, "spike"))
    inputs["profile"]["steps"][0]["rate"] = 100
    made = record(tmp_path, inputs=inputs, group_events=told, samples=lags({11: 20, 12: 30, 13: 40, 35: 9999}))
    assert calibration.in_flight(made) == pytest.approx(0.3)


def test_a_figure_is_the_median_of_the_records_that_show_it(tmp_path):
    """Two records of three have a step down; the third does not matter."""
    made = []
    for number, seconds in enumerate((1, 3, None)):
        told = [report(21, "x", "subscribed")] if seconds is None else [report(20 + seconds, "a", "left")]
        made.append(record(tmp_path / str(number), transitions=replicas((0, 4, 4), (20, 3, 4)), group_events=told))
    assert calibration._median(made, calibration.stop) == [2.0]
    with pytest.raises(NoData, match="no pod left"):
        calibration._median(made[2:], calibration.stop)


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
    assert calibration.in_flight(record) == pytest.approx(expected.mean_s, rel=0.02)
    phase, rate = record.phases.iloc[0], record.profile.steps[0].rate
    lag = record.lag_within(phase["start"], phase["end"])["lag"] / rate
    assert (lag.min(), lag.max()) == pytest.approx((expected.least_s, expected.most_s), abs=0.1)


def test_what_is_in_flight_of_a_new_rate_grows_until_its_commits():
    """Nine bursts that 24 ready pods keep up with, each at another point of their commits, and the model's lag after them."""
    record = opened(FOLDER / "records" / "ten-bursts-lag-4500-arrivals-e85b0bc5")
    (before, rate), start = (step.rate for step in record.profile.steps[:2]), record.profile_start
    bursts = [start + step.at for step in record.profile.steps if step.rate == rate and record.ready_at(start + step.at) == 24]
    assert len(bursts) == 9
    pods = Consumers(record.inputs.pod_rate, 3.0, in_flight_s=InFlight.of(record.inputs.workload).mean_s)
    for seconds in np.arange(0.5, 8, 0.5):
        seen = np.interp(np.add(bursts, seconds), record.lag["t"], record.lag["lag"]).mean()
        group = Group(pods, np.full(24, 1 / 24), 1)
        group.owner[0] = range(24)
        group.step(10.0, before)
        group.step(seconds, rate)
        assert group.lags.sum() == pytest.approx(seen, abs=0.7 * (rate - before))
