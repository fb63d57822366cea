"""Measures of scenario payments, on records in which every number is known: one graph, a poison, a way out, the winner."""

import json

import pandas as pd
import pytest

from lab.measure.lag import swing
from lab.record.trial import Offsets
from tests.scenarios.payments.measure.poison import casualties, poison_stall
from tests.scenarios.payments.measure.shutdown import STEPS, departures, longest_shutdown, shutdowns
from tests.scenarios.payments.measure.tuning import missing, one_graph
from tests.scenarios.payments.measure.winning_metric import CPU, LAG, winning_metric
from tests.unit.measure import built, whole
from tests.unit.measure.built import lags, profile, record, replicas
from tests.unit.measure.conftest import deployment, report


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


POLICY = whole.scaled(250, minReplicaCount=3)
MOVES = [deployment(5, 3, 3), deployment(40, 6, 6), deployment(70, 3, 3), deployment(90, 2, 2)]


def poisoned(folder, committed, poison="1:400"):
    """A trial from 10 to 100 s that wanted 6 replicas for 30 s of it."""
    inputs = {"policy": POLICY, "workload": {"poison": poison}}
    pods = [built.pod(0, "a", "ADDED")]
    events = [report(10, "producer", "profile", start=10.0)]
    receipts = [built.receipt("a", 20, 21, 1) | {"first": 0, "last": 0, "checksum": 0}]
    offsets = {0: Offsets(500, 490), 1: Offsets(900, committed)}
    tables = {"transitions": [*pods, *MOVES], "group_events": events, "receipts": receipts}
    return built.record(folder, inputs=inputs, offsets=offsets, **tables)


def test_a_stall_makes_no_progress_and_buys_pods(tmp_path):
    """500 messages wait behind the poison, with three pods above the floor for half a minute; a commit past it is progress."""
    found = poison_stall(poisoned(tmp_path, 400))
    assert (found.progress.value, found.waiting.value, found.others.value) == (0, 500, 10)
    assert (found.most.value, found.scale_ups.value, found.useless.value) == (6, 1, pytest.approx(1.5))
    moved_on = poison_stall(poisoned(tmp_path, 895))
    assert (moved_on.progress.value, moved_on.waiting.value) == (495, 5)
    assert "no poison" in poison_stall(poisoned(tmp_path, 400, poison="")).progress.why
    before = poison_stall(poisoned(tmp_path, 390))
    assert [(one.progress.value, one.short.value) for one in (found, moved_on, before)] == [(0, 0), (495, 0), (0, 10)]


def restarted(t, name, restarts, state, app="consumer"):
    """A watch event of a pod whose container was restarted so often."""
    status = {"restartCount": restarts, "state": state}
    item = {"metadata": {"name": name, "labels": {"app": app}}, "status": {"containerStatuses": [status]}}
    return {"t": float(t), "kind": "Pod", "name": name, "event": "MODIFIED", "object": json.dumps(item)}


RUNNING, BACK_OFF = {"running": {}}, {"waiting": {"reason": "CrashLoopBackOff"}}


def measured(folder, *rows):
    """The casualties of a trial whose profile began at 10 and which was over at 100."""
    events = [report(10, "producer", "profile", start=10.0)]
    return casualties(built.record(folder, times={"ended": 100.0}, transitions=rows, group_events=events))


def test_restarts_are_counted_once(tmp_path):
    """A count that is told again is none more; a pod that waits is in back-off; another app's pods are not counted."""
    rows = [
        restarted(12, "a", 0, RUNNING),
        restarted(20, "a", 1, RUNNING),
        restarted(21, "a", 1, RUNNING),
        restarted(25, "a", 1, BACK_OFF),
    ]
    rows += [restarted(30, "a", 2, RUNNING), restarted(40, "b", 1, RUNNING), restarted(50, "c", 5, RUNNING, app="lag-exporter")]
    found = measured(tmp_path, *rows, restarted(101, "d", 1, RUNNING))  # the last is taken down after the trial
    assert (found.restarts.value, found.pods.value, found.backed_off.value, found.first_s.value) == (3, 2, 1, 10.0)
    found = measured(tmp_path, rows[0])  # none is a number, and there is no first one
    assert (found.restarts.value, found.backed_off.value, found.first_s.value) == (0, 0, None)


def leaving(t, event="MODIFIED", deleted=True, code=None):
    """A watch event of the pod "old"."""
    metadata = {"name": "old", "labels": {"app": "consumer"}}
    if deleted:
        metadata |= {"deletionTimestamp": "1970-01-01T00:01:00Z", "deletionGracePeriodSeconds": 60}
    status = {} if code is None else {"containerStatuses": [{"state": {"terminated": {"exitCode": code}}}]}
    item = json.dumps({"metadata": metadata, "status": status})
    return {"t": t, "kind": "Pod", "name": "old", "event": event, "object": item}


SEEN = [leaving(1, "ADDED", deleted=False), leaving(20.0), leaving(20.9, code=0), leaving(21.0, "DELETED", code=0)]
SAID = [
    report(5.0, "old", "subscribed"),
    report(20.5, "old", "draining", abandoned=False, signalled=20.1),
    report(20.6, "old", "committed"),
    report(20.8, "old", "left", committed=True),
]
DONE = [built.receipt("old", 20.0, 20.4, 5) | {"first": 0, "last": 4, "checksum": 0}]


def trial(folder, seen=SEEN, said=SAID, done=DONE, **more):
    """A record of what the watch saw, what the pod said and what it has done."""
    return built.record(folder, transitions=seen, group_events=said, receipts=done, **more)


def test_each_step_has_its_time_after_the_deletion(tmp_path):
    """All six, in order, and the exit: the one pod that was taken from its work left within 0.7 s.

    A commit after leaving is out of order. What goes after the trial is no scale-down: the lab takes its own pods down then.
    """
    record = trial(tmp_path)
    (found,) = shutdowns(record)
    assert list(found.steps) == list(STEPS)
    assert [*found.steps.values()] == pytest.approx([0.1, 0.4, 0.5, 0.6, 0.8, 0.9])
    assert (found.exit_code, found.grace_s, found.gone_s) == (0, 60, pytest.approx(1.0))
    assert departures(record).values == {"pods": 1, "out_of_order": 0, "failed": 0, "refused": 0}
    assert longest_shutdown(record).value == pytest.approx(0.7)
    at_first = [report(20.3, "old", "commit_failed"), *SAID[:2], report(20.55, "old", "commit_failed"), *SAID[2:]]
    for told, pods in ((at_first, 1), (at_first[:3] + SAID[2:], 0)):
        assert departures(trial(tmp_path / str(pods), said=told)).refused.value == pods
    late = [SAID[0], SAID[1], report(20.95, "old", "committed"), SAID[3]]
    assert departures(trial(tmp_path / "late", said=late)).out_of_order.value == 1
    assert "no consumer pod was deleted" in departures(trial(tmp_path / "over", times={"ended": 10})).pods.why


@pytest.mark.parametrize(
    ("gone", "code", "said", "joined", "counts", "why"),
    [
        (80.0, 137, SAID[:1], True, (1, 1, 1, 0), "left the group"),
        (20.1, 143, [], False, (0, 0, 0, 0), "no pod that had joined"),
    ],
)
def test_a_pod_that_was_killed_says_nothing(tmp_path, gone, code, said, joined, counts, why):
    """No step, no order, its exit code as it was. One that was taken while it started may be ended by the signal itself."""
    record = trial(
        tmp_path, [*SEEN[:2], leaving(gone, code=code), leaving(gone + 0.1, "DELETED", code=code)], said, DONE * joined
    )
    (found,) = shutdowns(record)
    assert (found.joined, found.in_order, found.exit_code) == (joined, False, code)
    assert tuple(departures(record).values.values()) == counts
    assert why in longest_shutdown(record).why


METRICS = [
    {"type": "External", "external": {"metric": {"name": "s0"}, "target": {"type": "AverageValue", "averageValue": "250"}}},
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 75}}},
]
CURRENT = [
    {"type": "External", "external": {"metric": {"name": "s0"}, "current": {"averageValue": "40"}}},
    {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 117}}},
]


def log(metric="cpu resource utilization (percentage of request)"):
    """A sync that goes from 3 to 5 because of ``metric``."""
    proposal = f'desiredReplicas=5 metric="{metric}" tolerances="[down:10.00%, up:10.00%]" timestamp="x" scaleTarget="t"'
    done = 'HPA="t/keda" currentReplicas=3 desiredReplicas=5 reason="r"'
    lines = ((30.0, "Proposing desired replicas", proposal), (30.01, "Successfully rescaled", done))
    return "".join(f'I0101 00:00:{at:09.6f}       1 horizontal.go:907] "{words}" {rest}\n' for at, words, rest in lines)


def hpa(t, desired, **spec):
    """A watch event of the HPA."""
    item = whole.hpa(3, 50)
    item["spec"] |= {"metrics": METRICS} | spec
    item["status"] = {"desiredReplicas": desired, "currentReplicas": 3, "currentMetrics": CURRENT}
    return {"t": t, "kind": "HorizontalPodAutoscaler", "name": "keda", "event": "MODIFIED", "object": json.dumps(item)}


def decided(folder, text, **spec):
    """A trial whose spike begins at 20 s."""
    given, told = profile(10, 60, (0, "baseline"), (10, "spike"))
    (folder / "hpa.log").write_text(text)
    return built.record(folder, inputs=given, transitions=[hpa(15.0, 3, **spec), hpa(30.05, 5, **spec)], group_events=told)


EXTERNAL = "external metric s0-kafka-events(&LabelSelector{MatchLabels:map[string]string{a: b,},})"


@pytest.mark.parametrize(("named", "won"), [({}, CPU), ({"metric": EXTERNAL}, LAG)])
def test_the_winner_is_what_the_controller_named(tmp_path, named, won):
    """And each metric's own proposal is that of its value: 3 x 117 / 75 is 5, 3 x 40 / 250 is 1."""
    found = winning_metric(decided(tmp_path, log(**named)))
    (step,) = found.steps
    assert (step.before, step.after, step.won) == (3, 5, won)
    assert (step.proposals, step.values) == ({LAG: 1, CPU: 5}, {LAG: 40, CPU: 117})
    assert (found.first_on_cpu.value, found.off_largest.value, found.most_by_lag.value) == (won == CPU, 0, 1)


def test_an_hpa_with_a_tolerance_of_its_own_proposes_by_that(tmp_path):
    """117 / 75 is within 1.6: by its own rules this HPA's CPU asks for nothing, and its step is not the largest proposal."""
    up = {"tolerance": "0.6", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}
    made = decided(tmp_path, log(), behavior={"scaleUp": up})
    assert winning_metric(made).steps[0].proposals == {LAG: 1, CPU: 3}
    assert (winning_metric(made).off_largest.value, winning_metric(made).first_on_cpu.value) == (1, 1)


@pytest.mark.parametrize(
    ("told", "instead", "why"),
    [
        ("desiredReplicas=5 reason", "desiredReplicas=6 reason", "proposal in the HPA's status"),
        ("00:00:30", "00:00:15", "never went up"),  # before the spike: starting pods compute as well
    ],
)
def test_a_step_whose_proposals_are_not_known_is_no_data(tmp_path, told, instead, why):
    """Rather than a step to the largest of nothing; nor does one before the spike count."""
    assert why in winning_metric(decided(tmp_path, log().replace(told, instead))).off_largest.why
