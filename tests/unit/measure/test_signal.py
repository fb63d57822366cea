"""What an HPA saw of metrics whose every change is known."""

import json

import pandas as pd
import pytest

from lab.measure.signal import intervals_showing, signal, syncs_without_metric

from . import built, whole

INPUTS, REPORTS = built.profile(100.0, 30, (0, "baseline"), (10, "spike"), (20, "drain"))


def hpa(t, replicas, *metrics):
    """A watch event of the HPA with these current metrics."""
    item = {"status": {"currentReplicas": replicas, "currentMetrics": list(metrics)}}
    return {"t": float(t), "kind": "HorizontalPodAutoscaler", "name": "hpa", "event": "MODIFIED", "object": json.dumps(item)}


def lag(**current):
    """An external metric."""
    return {"type": "External", "external": {"metric": {"name": "s0-kafka"}, "current": current}}


def cpu(percent):
    """A resource metric; ``None`` while it is unknown."""
    current = {} if percent is None else {"averageUtilization": percent, "averageValue": "7m"}
    return {"type": "Resource", "resource": {"name": "cpu", "current": current}}


def read(folder, *events):
    """The signal of these events."""
    return signal(built.record(folder, inputs=INPUTS, group_events=REPORTS, transitions=list(events)))


def test_the_total_is_followed(tmp_path):
    """An average times its replicas; a change is what changes the total, within the load."""
    found = read(
        tmp_path,
        hpa(101, 2, lag(averageValue="0")),
        hpa(105, 2, lag(averageValue="7")),  # before the spike
        hpa(111, 2, lag(averageValue="1500m")),
        hpa(112, 2, lag(averageValue="12k")),
        hpa(113, 7, lag(averageValue="3428572m")),  # the same 24,000 over more replicas, rounded up
        hpa(116, 7, lag(averageValue="3")),
        hpa(117.5, 7, lag(averageValue="4")),
        hpa(140, 7, lag(value="35k")),  # after the profile; a metric with a target of type Value is told whole
    )
    assert (found.kind, found.refreshes.value) == ("external", 4)
    assert (found.median_refresh_s.value, found.longest_refresh_s.value) == (1.5, 4)
    assert found.highest.value == 35_000
    assert (found.utilization.value, found.highest_utilization.value) == (None, None)


def test_utilization_is_weighed_by_time(tmp_path):
    """30 % for sixteen of the twenty seconds under load is the median, however many values came in the other four."""
    values = [(101, 90), (105, 30), (126, 10), (128, 50), (128.5, 60), (129, 70), (129.5, 65), (1000, 99)]
    found = read(tmp_path, *(hpa(t, 4, cpu(percent)) for t, percent in values))
    assert (found.kind, found.refreshes.value, found.highest.value) == ("resource", 5, 99)
    assert (found.utilization.value, found.highest_utilization.value) == (30, 70)


def test_lag_rules_where_both_are_seen(tmp_path):
    """CPU beside an external metric is only a guard; a metric that is still unknown is none."""
    found = read(tmp_path, hpa(101, 2), hpa(102, 2, cpu(80), lag()), hpa(112, 2, cpu(80), lag(averageValue="5")))
    assert (found.kind, found.highest.value, found.refreshes.value) == ("external", 10, 0)
    assert (found.median_refresh_s.value, found.longest_refresh_s.value) == (None, None)


@pytest.mark.parametrize("events", [[], [hpa(101, 2)], [hpa(101, 2, {"type": ""}, lag(), cpu(None))]])
def test_an_hpa_without_a_metric_is_no_data(tmp_path, events):
    """Neither an HPA that is not there nor one that sees nothing has a signal."""
    assert read(tmp_path, built.pod(1, "a"), *events).highest.why == "no HPA ever had a metric"


def logged(folder, *syncs):
    """A trial of 30 s from second 100 on, whose controller said these words at these times."""
    lines = [f'I0101 00:{int(t) // 60:02}:{t % 60:09.6f}       1 horizontal.go:1] "{words}" x="y"\n' for t, words in syncs]
    (folder / "hpa.log").write_text("".join(lines))
    return built.record(folder, inputs=INPUTS, begun=90.0, times={"ended": 130.0}, group_events=REPORTS)


FAILED = 'Unhandled Error" err="failed to compute desired number of replicas based on listed metrics'


def test_syncs_without_a_metric_are_counted(tmp_path):
    """From the profile's start to the trial's end: what comes before and after is not the traffic's."""
    kept = "Decided not to scale"
    syncs = [(95, FAILED), (101, kept), (110, FAILED), (111, "Successfully rescaled"), (112, FAILED), (131, FAILED)]
    assert syncs_without_metric(logged(tmp_path, *syncs)).value == 2
    assert syncs_without_metric(logged(tmp_path, (95, FAILED))).why == "no sync of an HPA in the record"


def test_kedas_metric_is_followed_while_it_shows_a_value(tmp_path):
    """A value of 1 from second 110 to 116 at an interval of 2 s, and once more 13 s later: three intervals, not nine."""
    policy = {"policy": whole.scaled(pollingInterval=2)}
    made = built.record(tmp_path, inputs=INPUTS | policy, group_events=REPORTS)
    rows = [
        {"t": 100.0 + t, "metric": "keda_scaler_metrics_value", "value": float(10 <= t <= 16 or t == 29)} for t in range(30)
    ]
    pd.DataFrame(rows).to_parquet(made.folder / "samples.parquet")
    assert intervals_showing(made, 1).value == 3
    assert intervals_showing(made, 7).why == "KEDA's metric never showed 7"
