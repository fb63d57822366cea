"""A rolling restart whose every handover and receipt is known, and partitions that stand still after an event."""

import json

import pytest

from tests.experiments.measure.membership import rolling_restart, spread, standstill
from tests.unit.measure import built, whole
from tests.unit.measure.built import assigned, given_up, receipt
from tests.unit.measure.conftest import report

ZERO, AT, READY, OVER = 100.0, 110.0, 114.0, 130.0
RESTART = {"t": AT, "until": READY, "due": AT, "phase": "restart", "event": "restart", "result": {"pods": 2}}
BEFORE = [assigned(101, "c-0", 0, 1), assigned(101, "c-1", 2, 3)]


def restarted(pod, t, *partitions):
    """The reports of a pod that goes at ``t``, and whose next process has ``partitions`` 1.5 s later."""
    gone = [report(t, pod, "draining"), given_up(t + 0.1, pod, *partitions)]
    back = [report(t + 1, pod, "started"), report(t + 1.2, pod, "subscribed"), assigned(t + 1.5, pod, *partitions)]
    return [*gone, *back]


STATIC = [*restarted("c-1", 110.2, 2, 3), *restarted("c-0", 112.2, 0, 1)]
# c-1 goes and comes back: c-0 takes what it had, and gives it up again. c-1 joins with nothing at first.
DYNAMIC = [
    report(110.2, "c-1", "draining"),
    given_up(110.3, "c-1", 2, 3),
    assigned(110.6, "c-0", 2, 3),
    report(111.2, "c-1", "started"),
    report(111.4, "c-1", "subscribed"),
    assigned(111.8, "c-1"),
    given_up(111.8, "c-0", 2, 3),
    assigned(112.0, "c-1", 2, 3),
    assigned(112.0, "c-0"),
]


def record(folder, handed_over=(), receipts=(), events=(RESTART,), owned=BEFORE):
    """A steady profile of 30 s from ZERO on, in which the events come in their phases."""
    profile, told = built.profile(ZERO, 30, (0, "baseline"), (10, "restart"))
    steady = [receipt("c-0", t / 10, t / 10 + 0.1, 10) for t in range(1000, 1300)]
    tables = {"group_events": [*told, *owned, *handed_over], "receipts": [] if receipts is None else [*steady, *receipts]}
    return built.record(folder, inputs=profile, events=tuple(events), times={"driving": ZERO}, **tables)


def test_a_static_restart_is_no_rebalance(tmp_path):
    """Each member gives up and takes its own; nobody else hears of it, and nothing moves."""
    found = rolling_restart(record(tmp_path, STATIC), "restart")
    assert (found.restarted.value, found.rebalances.value, found.moved.value) == (2, 0, 0)
    assert (found.seconds.value, found.settled_s.value) == pytest.approx((4.0, 3.7))
    assert (found.depth_1s.value, found.standstill_s.value) == pytest.approx((0, 0), abs=1e-6)


def test_a_dynamic_restart_is_two(tmp_path):
    """The other member takes two partitions as one leaves, and gives them back 1.2 s later as it joins again."""
    found = rolling_restart(record(tmp_path, DYNAMIC), "restart")
    assert (found.restarted.value, found.rebalances.value, found.moved.value) == (1, 2, 4)


def test_a_member_that_never_came_back_is_still_leaving(tmp_path):
    """What it gives up is its own, and what another takes is a rebalance."""
    gone = [report(110.2, "c-1", "draining"), given_up(110.3, "c-1", 2, 3), assigned(120.3, "c-0", 2, 3)]
    assert rolling_restart(record(tmp_path, gone), "restart").rebalances.value == 0  # it came after the 5 s that are watched
    long = RESTART | {"until": 118.0}
    assert rolling_restart(record(tmp_path / "long", gone, events=[long]), "restart").rebalances.value == 1


def test_the_dip_and_the_standstill_are_of_the_restart(tmp_path):
    """Partition 1 has half of all messages, and none from 112 to 112.8; what it does not do before counts for nothing."""
    half = [receipt("c-1", t / 10, t / 10 + 0.1, 10, 1) for t in range(1050, 1300) if not 1120 <= t < 1128]
    found = rolling_restart(record(tmp_path, STATIC, half), "restart")
    assert (found.depth_1s.value, found.standstill_s.value) == pytest.approx((0.4, 0.8), abs=1e-6)


def test_a_partition_stands_still_until_the_next_event_or_the_profiles_end(tmp_path):
    """It is never served again: 20 s until the profile is over, and 8 s until another event.

    One that stood still before stood still for another reason until the event.
    """
    gone = [receipt("c-1", 105, 112, 10, 1)]
    assert standstill(record(tmp_path, (), gone), "restart").value == pytest.approx(18)
    later = RESTART | {"t": 118.0, "phase": "leave", "event": "scale_to"}
    assert standstill(record(tmp_path / "next", (), gone, [RESTART, later]), "restart").value == pytest.approx(6)
    before = [receipt("c-1", 105, 106, 10, 1), receipt("c-1", 111, 130, 10, 1)]
    assert standstill(record(tmp_path / "before", (), before), "restart").value == pytest.approx(1)


@pytest.mark.parametrize(
    ("measured", "lacking", "why"),
    [
        (lambda one: rolling_restart(one, "leave").rebalances, {}, "no restart in phase leave"),
        (lambda one: standstill(one, "leave"), {}, "no event in phase leave"),
        (lambda one: rolling_restart(one, "restart").rebalances, {"receipts": None}, "no receipts"),
        (lambda one: standstill(one, "restart"), {"receipts": None}, "no receipts"),
        (lambda one: spread(one, "baseline").most, {"owned": ()}, "no pod owns a partition at the end of phase baseline"),
    ],
)
def test_without_an_event_receipts_or_owners_there_is_no_data(tmp_path, measured, lacking, why):
    """No standstill is no proof that nothing stood still."""
    assert measured(record(tmp_path, **lacking)).why == why


def test_a_stateful_sets_pod_that_was_restarted_lives_on(tmp_path):
    """The next pod has its name: what is paid for does not end with the first one. There is no Deployment to read."""
    item = {"spec": {"replicas": 3}, "status": {"replicas": 3, "readyReplicas": 2}}
    rows = [
        {"t": 101.0, "kind": "StatefulSet", "name": "consumer", "event": "ADDED", "object": json.dumps(item)},
        built.pod(101, "c-0", "ADDED"),
        built.pod(110, "c-0", "DELETED", leaving=True),
        built.pod(111, "c-0", "ADDED", False),
    ]
    inputs = {"workload": {"pod_owner": "StatefulSet"}, "policy": whole.decreed(3)}
    _, told = built.profile(ZERO, 30)
    made = built.record(tmp_path, inputs=inputs, transitions=rows, group_events=told, times={"driving": ZERO, "ended": OVER})
    assert made.lives() == {"c-0": OVER - 101}
    assert [made.pods["c-0"].ready_before(t) for t in (105, 110.5, 112)] == [True, False, False]
    assert made.replicas[["desired", "ready"]].to_numpy().tolist() == [[3, 2]]


def test_partitions_are_counted_as_the_phase_ends(tmp_path):
    """A pod that has given all up is not counted, and what is handed over in the next phase is not seen."""
    early = [assigned(103, "c-2", 4), given_up(104, "c-2", 4), assigned(104.2, "c-0", 4)]
    made = record(tmp_path, [*early, given_up(112, "c-1", 2, 3), assigned(112.1, "c-0", 2, 3)])
    found = spread(made, "baseline")
    assert (found.fewest.value, found.most.value) == (2, 3)
    assert (spread(made, "restart").fewest.value, spread(made, "restart").most.value) == (5, 5)
