"""What one graph answers, and lag between commits, on records in which they are known."""

import pandas as pd

from lab.measure.lag import swing
from tests.scenarios.payments.measure.tuning import missing, one_graph
from tests.unit.measure.built import lags, profile, record, replicas


def graph(folder, *steps, lag, end=100):
    """A record of replicas (t, desired, ready) and lag {t: messages}."""
    return record(folder, times={"settling": 0, "driving": 0, "ended": end}, transitions=replicas(*steps), samples=lags(lag))


def test_lag_before_the_first_rise_and_the_time_after_the_peak(tmp_path):
    """The last lag before 4 became 8, and the 50 s from the peak at 20 s to the first step down at 70 s.

    Pods that exist and are not Ready are current: the HPA's current replicas do not show how long a pod starts.
    """
    steps = [(0, 4, 4), (10, 8, 4), (15, 8, 8), (70, 4, 4)]
    found = one_graph(graph(tmp_path, *steps, lag={0: 5, 9: 700, 11: 800, 20: 2000, 60: 0}))
    assert (found.first_rise_lag.number, found.kept_s.number) == (700, 50)
    assert (found.uncreated_pod_s.number, found.unready_pod_s.number) == (0, 4 * 5)
    found = one_graph(graph(tmp_path, *steps[:2], lag={0: 5, 20: 2000}))
    assert (found.kept_s.value, found.first_rise_lag.number) == (None, 5)  # it keeps its pods
    assert "never rose" in one_graph(graph(tmp_path, steps[0], lag={0: 5})).first_rise_lag.why


def test_more_replicas_than_desired_are_not_counted_against_those_that_miss():
    """Two that are on their way out make up for no pod that is not there later."""
    curve = pd.DataFrame([(0, 2, 4), (10, 5, 4)], columns=["t", "desired", "current"])
    assert missing(curve, "current", 20.0) == 1 * 10


def test_lag_swings_by_what_comes_between_two_commits(tmp_path):
    """From 2 to 7 messages at 1/s in the second half of the baseline; neither its first half nor the burst counts."""
    inputs, told = profile(0, 60, (0, "baseline"), (40, "burst"))
    curve = {1: 30, 21: 2, 24: 5, 26: 7, 27: 2, 31: 6, 50: 900}
    found = swing(record(tmp_path, inputs=inputs, times={"ended": 60}, group_events=told, samples=lags(curve)))
    assert found.number == 5
