"""The views of a record, each from just the rows that it reads."""

import json
import math

import pytest

from lab.errors import NoData
from lab.record.hpas import EXTERNAL, RESOURCE, Condition
from lab.record.pods import Pod
from lab.record.views import LAG, PARTITION_LAG
from tests.unit.measure import built, whole
from tests.unit.measure.built import assigned, given_up, record, report, sample

STAMP = "2020-01-01T00:00:00Z"


def event(t, kind, name, item, what="MODIFIED"):
    """A watch event."""
    return {"t": float(t), "kind": kind, "name": name, "event": what, "object": json.dumps(item)}


def pod(t, what="MODIFIED", app="consumer", **more):
    """A watch event of the pod a: ``more`` is of its metadata, but for ``ready`` and ``code``."""
    status = {"conditions": [{"type": "Ready", "status": str(more.pop("ready", False))}]}
    if (code := more.pop("code", None)) is not None:
        status["containerStatuses"] = [{"state": {"terminated": {"exitCode": code}}}]
    return event(t, "Pod", "a", {"metadata": {"name": "a", "labels": {"app": app}} | more, "status": status}, what)


def test_a_pod_is_followed_from_its_first_event_to_its_last(tmp_path):
    """A second addition, after a watch was listed again, is not another birth; pods of other programs are not its own."""
    rows = [
        pod(1, "ADDED"),
        pod(2, ready=True),
        pod(3, "ADDED", ready=True),
        pod(4, ready=True, deletionTimestamp=STAMP, deletionGracePeriodSeconds=30),
        pod(5, code=137, deletionTimestamp=STAMP, deletionGracePeriodSeconds=0),
        pod(6, "DELETED", deletionTimestamp=STAMP),
        pod(7, "ADDED", app="other"),
    ]
    made = record(tmp_path, transitions=rows, group_events=[report(0, "producer", "profile", start=0.0)])
    (found,) = made.pods.values()
    readiness = ((1.0, False), (2.0, True), (3.0, True), (4.0, False), (5.0, False), (6.0, False))
    assert found == Pod("a", 1.0, 1.0, 2.0, 4.0, 30, 5.0, 137, 6.0, readiness)
    assert [found.ready_before(t) for t in (1, 2, 2.5, 4, 4.5)] == [False, False, True, True, False]
    assert made.lives() == {"a": 5.0}
    assert made.lives("other") == {"a": 93.0}
    with pytest.raises(NoData, match="no pod of none was seen"):
        made.lives("none")


def test_a_life_counts_from_the_profiles_start_to_the_trials_end(tmp_path):
    """A pod of the baseline, one that is taken down after the end, one that was only there before, one that came after it."""
    rows = [built.pod(t, name, what) for t, name, what in [(1, "a", "ADDED"), (2, "b", "ADDED"), (3, "c", "ADDED")]]
    rows += [built.pod(8, "c", "DELETED"), built.pod(90, "a", "DELETED"), built.pod(105, "d", "ADDED")]
    rows += [built.pod(112, "b", "DELETED"), built.pod(113, "d", "DELETED")]
    made = record(tmp_path, transitions=rows, group_events=[report(9, "producer", "profile", start=10.0)])
    assert made.lives() == {"a": 80.0, "b": 90.0}


def test_what_is_taken_down_after_the_end_is_no_scaling(tmp_path):
    """The trial ended at 100 s: what the Deployment asked for later was not the policy's doing."""
    made = record(tmp_path, transitions=built.replicas((0, 4, 4), (50, 8, 4), (104, 2, 8), (106, 9, 2)))
    assert [(change.before, change.after) for change in made.scalings] == [(4, 8)]
    assert made.replicas["desired"].max() == 8


def test_an_hpas_status_is_read_once_for_all(tmp_path):
    """Averages and utilization by name, what a metric that failed leaves out, and no state of an HPA that is removed."""
    lag = {"type": "External", "external": {"metric": {"name": "s0"}, "current": {"averageValue": "2500m"}}}
    cpu = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 80, "averageValue": "40m"}}}
    failed = {"type": "External", "external": {"metric": {"name": "s1"}, "current": {}}}
    condition = {"type": "ScalingActive", "status": "True", "reason": "r", "message": "m"}
    status = {"currentReplicas": 4, "desiredReplicas": 6, "currentMetrics": [lag, cpu, failed], "conditions": [condition]}
    name, kind = "h", "HorizontalPodAutoscaler"
    rows = [event(1, kind, name, {"spec": {}}), event(2, kind, name, {"status": status}), event(3, kind, name, {}, "DELETED")]
    made = record(tmp_path, transitions=rows)
    empty, full = made.hpa_statuses
    assert (empty.current, empty.desired, empty.metrics) == (0, None, ())
    assert (full.t, full.current, full.desired) == (2.0, 4, 6)
    assert full.conditions == (Condition("ScalingActive", "True", "r", "m"),)
    assert [one.total(full.current) for one in full.metrics] == [10.0, 80.0, None]
    assert full.metric(EXTERNAL, "s1").average is None
    assert full.metric(RESOURCE).utilization == 80
    assert made.hpa_statuses_of("another") == []


def test_labels_of_a_partitions_lag_are_parsed_once(tmp_path):
    """In order of time; other samples are none of it."""
    rows = [
        sample(2, "kafka_consumergroup_lag", 7, partition="10", topic="t"),
        sample(1, "kafka_consumergroup_lag", 5, partition="2", topic="t"),
        sample(1, "kafka_consumergroup_lag_sum", 12),
        sample(2, "kafka_consumergroup_current_offset", 30, partition="2", topic="t"),
    ]
    made = record(tmp_path, samples=rows)
    assert made.committed.to_dict("list") == {"t": [2.0], "partition": [2], "offset": [30.0]}
    assert made.partition_lag.to_dict("list") == {"t": [1.0, 2.0], "partition": [2, 10], "lag": [5.0, 7.0]}
    assert made.lag.to_dict("list") == {"t": [1.0], "lag": [12.0]}
    with pytest.raises(NoData, match=r"1 samples of lag in 5.0 s"):
        made.lag_within(0, 5)


def test_owners_are_those_of_the_moment(tmp_path):
    """By each pod's own handovers, whatever the table's order."""
    rows = [assigned(1, "a", 0, 1), assigned(3, "b", 1), given_up(2, "a", 1), given_up(4, "b", 1, event="lost")]
    rows.append(given_up(5, "a"))
    made = record(tmp_path, group_events=rows)
    assert [change.t for change in made.handovers] == [1, 2, 3, 4]
    assert made.owners(0) == {}
    assert made.owners(3) == {"a": {0}, "b": {1}}
    assert made.owners(9) == {"a": {0}, "b": set()}


def test_a_container_that_starts_anew_owns_nothing(tmp_path):
    """Whatever the one before it had, until it is given some; a program that was never given any is no member."""
    rows = [report(4, "z", "started"), assigned(1, "a", 0, 1), assigned(5, "a", 1), report(3, "a", "started")]
    made = record(tmp_path, group_events=rows)
    assert [made.owners(t) for t in (2, 3, 4, 5)] == [{"a": {0, 1}}, {"a": set()}, {"a": set()}, {"a": {1}}]


def test_phases_are_the_profiles_from_when_the_producer_began(tmp_path):
    """Steps of one phase are one; what the trial went through beside it has its own times."""
    steps = [{"at": at, "rate": 1, "phase": phase} for at, phase in ((0, "baseline"), (5, "spike"), (7, "spike"), (9, "drain"))]
    told = [report(50, "producer", "profile", start=50.0)]
    told += [report(at, "producer", "phase", phase=phase, at=at) for at, phase in ((50.0, "baseline"), (55.0, "spike"))]
    times = {"settling": 40.0, "driving": 45.0, "ended": 70.0}
    made = record(tmp_path, inputs={"profile": {"steps": steps, "duration": 12}}, times=times, group_events=told)
    assert made.phases.to_numpy().tolist() == [[50, 55, "baseline"], [55, 59, "spike"], [59, 62, "drain"]]
    assert (made.span("spike"), made.zero, made.driven) == ((55, 59), 55, 45)
    assert made.phase_lengths == [("settling", 5.0), ("driving", 25.0), ("closing the record", 40.0)]
    for ask in (lambda: made.relief, lambda: made.span("lull"), lambda: made.repartitioned):
        with pytest.raises(NoData):
            ask()


def test_phases_that_are_not_the_profiles_are_no_data(tmp_path):
    """One is left out, or is there twice. Another program than the producer has phases of its own."""
    steps = [{"at": at, "rate": 1, "phase": phase} for at, phase in ((0, "baseline"), (5, "spike"), (9, "drain"))]
    inputs = {"profile": {"steps": steps, "duration": 12}}
    for number, phases in enumerate((["spike"], ["baseline", "drain"], ["baseline", "baseline", "spike"])):
        told = [report(at, "producer", "phase", phase=phase, at=float(at)) for at, phase in enumerate(phases, 1)]
        with pytest.raises(NoData, match=f"{', '.join(phases)} and baseline, spike, drain"):
            _ = record(tmp_path / f"{number}", inputs=inputs, group_events=told).zero
        assert record(tmp_path / f"{number}", inputs=inputs | {"driver": "ridehailing/locust"}, group_events=told).zero


def test_a_sample_that_is_no_number_is_none(tmp_path):
    """Neither of the lag nor of a partition's."""
    rows = [(1, LAG, math.nan), (2, LAG, 5), (1, PARTITION_LAG, 3), (2, PARTITION_LAG, math.nan)]
    made = record(tmp_path, samples=[sample(*row, partition="0") for row in rows])
    assert made.lag.to_numpy().tolist() == [[2, 5]]
    assert made.partition_lag.to_numpy().tolist() == [[1, 0, 3]]


def test_a_policy_on_another_signal_has_no_threshold_of_lag(tmp_path):
    """A measure that needs one has no data."""
    assert built.record(tmp_path / "lag", inputs={"policy": whole.scaled(250)}).lag_threshold == 250
    with pytest.raises(NoData, match="no lagThreshold"):
        _ = built.record(tmp_path / "cpu", inputs={"policy": whole.hpa(2, 5)}).lag_threshold
