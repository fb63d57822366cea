"""What faults explain of a trial's copies, on records of which every row is known."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from lab.inputs.events import Grow, to_list
from lab.inputs.faults import CONSUMER, CUT, DELAY, LOSS, ROLLOUT, Injection
from lab.inputs.inputs import PRODUCER
from lab.judge.measure import Runs
from lab.measure.faults import commits_went_back, invariants, losses, ready_again, under_faults, went_back
from lab.measure.kills import Loss, consumer_kill
from lab.record.trial import Fault, Offsets

from . import whole
from .built import assigned, given_up, record, report
from .test_delivery import IDS, TALLY
from .test_kills import committed, done, range_of

SCHEDULE = [
    {"at": 10.0, "component": CONSUMER, "kind": "sigkill", "for_s": 0.0, "draw": 0.0},
    {"at": 30.0, "component": CONSUMER, "kind": "sigstop", "for_s": 12.0, "draw": 0.0},
    {"at": 50.0, "component": "keda-operator", "kind": "sigkill", "for_s": 2.0, "draw": 0.0},
]
PLANNED = [Injection(**one) for one in SCHEDULE]
KILLED = Fault(100.0, "sigkill", "a", injection=PLANNED[0])
STOPPED = Fault(120.0, "sigstop", "a", until=132.0, injection=PLANNED[1])
CUT_OFF = replace(STOPPED, fault=CUT)
AWAY = Fault(140.0, "sigkill", component="keda-operator", until=142.0, injection=PLANNED[2])
EVICTED = Fault(100.0, "evict", "a", injection=PLANNED[0])
STORELESS = Fault(120.0, "sigkill", "store-x", component="store", injection=PLANNED[1])
SLOW_TO_START = replace(STORELESS, until=130.0)


def under(folder, receipts, doubled=(), faults=(KILLED, STOPPED, AWAY), told=(), counts=None, **more):
    """A record with three planned faults: a is killed at 100, stopped from 120, and notices at 133 what it has lost.

    The ledger says that 100 messages were produced and processed, where ``counts`` does not say otherwise.
    """
    events = [assigned(0, "a", 0), assigned(110, "a", 0), given_up(133, "a", 0, event="lost")]
    events += [report(1, "producer", "profile", start=1.0), report(150, "producer", "produced", **TALLY, late_max_ms=0), *told]
    found = {"group_events": events, "receipts": receipts, "topic_ids": IDS, "offsets": {0: Offsets(100, 100)}}
    found["samples"] = [committed(1, 0)]
    made = record(folder, faults=tuple(faults), **{"inputs": {"faults": SCHEDULE}} | found | more)
    ledger = {"produced": 100, "processed": 100, "doubled": doubled, "doubled_messages": sum(one["count"] for one in doubled)}
    (folder / "reconciliation.json").write_text(json.dumps(whole.reconciliation(**ledger | (counts or {}))))
    return made


@pytest.mark.parametrize(
    ("receipts", "unexplained"),
    [
        ([done("a", 0, 0, 9, 99.9), done("b", 0, 0, 9, 108.0)], 0),
        ([done("a", 0, 0, 9, 0.0), done("b", 0, 0, 9, 108.0)], 0),  # however old it is
        ([done("a", 0, 0, 9, 119.0), done("b", 0, 0, 9, 131.0)], 0),  # of the pod that was started anew, before its stop
        ([done("b", 0, 0, 9, 131.0), done("a", 0, 0, 9, 132.5)], 0),  # by the stopped one, before it notices
        ([done("b", 0, 0, 9, 131.0), done("a", 0, 0, 9, 134.0)], 10),  # after it has noticed
        ([done("a", 0, 0, 9, 99.9), done("a", 0, 0, 9, 119.0), done("b", 0, 0, 9, 131.0)], 0),  # one copy each of two faults
        ([done("a", 0, 0, 9, 99.0), done("b", 0, 0, 9, 108.0), done("c", 0, 0, 9, 131.0)], 10),  # of the first fault alone
        ([done("a", 0, 0, 9, 99.0), done("b", 0, 0, 9, 99.9)], 10),  # all was done before any fault
        ([done("c", 0, 0, 9, 141.0), done("b", 0, 0, 9, 143.0)], 10),  # a fault of no consumer explains none
    ],
)
def test_each_copy_is_explained_by_what_was_in_flight_at_a_fault(tmp_path, receipts, unexplained):
    """By one fault each. What a pod did before its last fault is not in flight at the next."""
    copies = 10 * (len(receipts) - 1)
    found = under_faults(under(tmp_path, receipts, [range_of(0, 0, 9) | {"count": copies}]))
    assert (found.injected.value, found.omitted.value) == (3, 0)
    assert (found.copies.value, found.unexplained.value) == (copies, unexplained)
    assert (found.lost.value, found.unseen.value, found.unknown.value) == (0, 0, 0)


@pytest.mark.parametrize(
    ("faults", "a", "told", "unexplained"),
    [
        ([EVICTED], 99.9, (), 10),  # it was told to end, and drains
        ([STORELESS], 119.0, (), 0),
        ([STORELESS], 121.0, (), 10),  # after the store was killed, and so long as it is not started anew
        ([STORELESS], 121.0, [report(122, "a", "started")], 0),
        ([STORELESS], 119.0, [report(115, "a", "left", committed=True)], 10),  # it was gone before
        ([STORELESS], 119.0, [report(120, "a", "left", committed=True)], 10),
        ([STORELESS], 119.0, [report(121, "a", "left", committed=True)], 0),
        ([STORELESS], 121.0, [report(t, "a", "started") for t in (110, 120, 122)], 0),  # anew is after the fault
        ([STORELESS, STOPPED], 119.0, (), 0),
        ([replace(STORELESS, fault="sigstop", until=122.0)], 119.0, (), 10),  # it goes on
        ([replace(KILLED, component="broker")], 99.9, (), 10),  # it was no consumer that was killed
        ([replace(KILLED, component="lag-exporter")], 99.9, (), 10),
        *(([replace(KILLED, fault=kind)], 99.9, (), 10) for kind in (DELAY, LOSS, ROLLOUT)),  # it may commit all the while
    ],
)
def test_a_fault_explains_what_its_consumers_could_not_commit(tmp_path, faults, a, told, unexplained):
    """All consumers die of a store that is killed, each at its next write."""
    receipts = [done("a", 0, 0, 9, a), done("b", 0, 0, 9, 131.0)]
    made = under(tmp_path, receipts, [range_of(0, 0, 9)], faults, told)
    assert under_faults(made).unexplained.value == unexplained


def test_a_stopped_member_that_the_group_kept_has_an_end(tmp_path):
    """It hands over by an ordinary rebalance 36 s after it goes on. What it did in between was not in flight at the stop."""
    receipts = [done("a", 0, 0, 9, 160.0), done("b", 0, 0, 9, 175.0)]
    told = [assigned(135, "a", 0), given_up(170, "a", 0)]
    made = under(tmp_path, receipts, [range_of(0, 0, 9)], (KILLED, replace(STOPPED, until=134.0), AWAY), told)
    assert under_faults(made).unexplained.value == 10


@pytest.mark.parametrize(
    ("kind", "notices", "until"),
    [
        ("sigstop", [(125, "lost"), (132, "lost"), (132.5, "revoked"), (133, "lost")], 133),
        ("sigstop", [(146.5, "lost")], 146.5),
        ("sigstop", [(147, "lost"), (150, "lost")], 132),  # it was back by then
        ("cut", [(115, "lost"), (120, "lost"), (121, "revoked"), (128, "lost")], 128),
        ("cut", [(146.5, "lost")], 146.5),
        ("cut", [(147, "lost"), (150, "lost")], 132),
        ("sigterm", [(133, "lost")], 132),
        ("sigkill", [(133, "lost")], 132),
    ],
)
def test_a_consumer_that_is_struck_goes_on_until_it_notices_that_its_partitions_are_lost(tmp_path, kind, notices, until):
    """It is struck from 120 to 132. A stopped one notices afterwards; one that is cut off may do so before. No other tells."""
    told = [given_up(t, "pod-b", 5, event=event) for t, event in notices]
    told += [given_up(132.4, pod, 5, event="lost") for pod in ("pod-a", "pod-c")]
    made = record(tmp_path, faults=(Fault(120.0, kind, "pod-b", until=132.0),), group_events=told)
    assert list(losses(made)) == [Loss("pod-b", 120.0, -math.inf, until)]


def test_the_consumers_that_are_there_die_of_a_store_that_is_killed(tmp_path):
    """Each goes on until it is started anew. One had died before, and two had left, of which one never had a partition."""
    told = [assigned(0, pod, number) for number, pod in enumerate(("pod-a", "pod-b", "pod-c"))]
    told += [report(100, pod, "left") for pod in ("pod-c", "pod-z")]
    told += [report(t, pod, "started") for t, pod in ((121, "pod-a"), (122, "pod-c"), (123, "pod-b"))]
    made = record(tmp_path, faults=(Fault(110.0, "sigkill", "pod-b"), STORELESS), group_events=told)
    before = [Loss("pod-a", 120.0, -math.inf, 121.0), Loss("pod-b", 110.0, -math.inf, 110.0)]
    assert sorted(losses(made)) == [*before, Loss("pod-b", 120.0, 110.0, 123.0)]


@pytest.mark.parametrize(
    ("store", "started", "until"),
    [(STORELESS, 134.9, 134.9), (STORELESS, 135.0, 120.0), (STORELESS, 136.0, 120.0), (SLOW_TO_START, 144.9, 144.9)],
)
def test_a_pod_that_is_started_anew_long_after_a_store_was_killed_died_of_something_else(tmp_path, store, started, until):
    """A component has 15 s to come back once the store has."""
    told = [assigned(0, "pod-a", 0), report(started, "pod-a", "started")]
    made = record(tmp_path, faults=(store, Fault(200.0, "sigkill", "pod-a")), group_events=told)
    assert list(losses(made)) == [Loss("pod-a", 120.0, -math.inf, until), Loss("pod-a", 200.0, until, 200.0)]


@pytest.mark.parametrize(
    ("readiness", "again"),
    [
        ([(90.0, False), (95.0, True), (126.0, False), (145.0, True), (150.0, False), (160.0, True)], 145.0),
        (
            [(120.0, False), (126.0, False), (126.0, True), (145.0, True)],
            145.0,
        ),  # at the moment of the fault nothing is its doing
        ([(121.0, True), (147.0, False), (150.0, True)], 150.0),  # 15 s after it went on
        ([(147.5, False), (150.0, True)], None),
        ([(121.0, True)], None),
        ([(126.0, False)], 200.0),  # never: at the end
    ],
)
def test_a_pod_is_ready_again_after_it_was_not(readiness, again):
    """It is stopped from 120 to 132. The operator is no pod here."""
    pods = {"x": SimpleNamespace(readiness=readiness[::2]), "y": SimpleNamespace(readiness=readiness[1::2])}
    made = SimpleNamespace(pods_of=lambda app: pods if app == "lag-scaler" else {}, end=200.0)
    assert ready_again(made, replace(STOPPED, component="lag-scaler")) == again
    assert ready_again(made, replace(STOPPED, component="keda-operator")) is None


def test_copies_without_a_commit_that_was_seen_are_no_data(tmp_path):
    """Nobody knows what was in flight. Where there is no copy, nothing is asked."""
    receipts = [done("a", 0, 0, 9, 99.9), done("b", 0, 0, 9, 108.0)]
    found = under_faults(under(tmp_path / "copies", receipts, [range_of(0, 0, 9)], samples=[]))
    assert "no sample of kafka_consumergroup_current_offset" in found.unexplained.why
    assert under_faults(under(tmp_path / "none", [], samples=[])).unexplained.value == 0


@pytest.mark.parametrize(("seen", "unexplained"), [([(90, 0)], 0), ([(98.5, 4)], 4), ([(98.5, 10)], 10), ([(99.5, 10)], 0)])
def test_what_was_committed_before_a_fault_was_not_in_flight_at_it(tmp_path, seen, unexplained):
    """Ten messages were done at 98, and a was killed at 100."""
    receipts = [done("a", 0, 0, 9, 98.0), done("b", 0, 0, 9, 108.0)]
    made = under(tmp_path, receipts, [range_of(0, 0, 9)], samples=[committed(*one) for one in seen])
    assert under_faults(made).unexplained.value == unexplained


@pytest.mark.parametrize(
    ("driver", "counts", "lost"),
    [
        (PRODUCER, {"produced": 98}, 2),
        (PRODUCER, {"produced": 48, "resent": 8, "lost_messages": 4}, 4 + 60),
        (PRODUCER, {"produced": 103}, 0),
        ("producer/off", {"produced": 98}, 0),  # it may send more than it tells
        ("load/off", {"produced": 98}, 0),
    ],
)
def test_an_acknowledged_event_that_the_log_lacks_is_lost(tmp_path, driver, counts, lost):
    """Of 100 at the log's end, where no hole shows them. A message that is there twice is one event."""
    made = under(tmp_path, [], counts=counts, inputs={"faults": SCHEDULE, "driver": driver})
    assert under_faults(made).lost.value == lost


def test_copies_and_dead_letters_are_told_apart_by_what_explains_them(tmp_path):
    """Of 61 copies and three further letters 10 and one are the kill's, 10 and one a member's that the group gave up."""
    receipts = [done("a", 0, 0, 9, 99.9), done("b", 0, 0, 9, 108.0), done("c", 5, 0, 9, 149.0), done("d", 5, 0, 9, 151.0)]
    receipts += [done("x", 3, 0, 40, 20.0), done("y", 3, 0, 40, 30.0)]
    doubled = [range_of(0, 0, 9), range_of(3, 0, 40), range_of(5, 0, 9)]
    told, counts = [assigned(140, "c", 5), given_up(150, "c", 5, event="lost")], {"dead_messages": 3, "buried_again": 3}
    made = under(tmp_path, receipts, doubled, told=told, counts=counts)
    failed = [99.0, 108.0, 149.0, 151.0, 20.0, 30.0]
    vars(made)["dead_letters"] = pd.DataFrame({"partition": [0, 0, 5, 5, 3, 3], "offset": 50, "failed": failed})
    found = under_faults(made)
    assert (found.copies.value, found.given_up.value, found.unexplained.value) == (64, 11, 42)
    assert found.oldest_s.value == pytest.approx(0.1)


AGAIN = (0, 0, 9, 91)  # partition 0, 0 to 9, at 91


@pytest.mark.parametrize(
    ("then", "told", "count"),
    [
        ((0, 10, 19, 91), (), 0),
        ((1, 0, 9, 91), (), 0),
        ((0, 9, 18, 91), (), 1),
        (AGAIN, [assigned(90.5, "pod-a", 0)], 0),
        (AGAIN, [assigned(89.5, "pod-a", 0), assigned(90.5, "pod-a", 1), assigned(91.5, "pod-a", 0)], 1),
        (AGAIN, [assigned(90.5, "pod-0", 0), assigned(90.5, "pod-b", 0)], 1),
        (AGAIN, [given_up(90.5, "pod-a", 0)], 1),
        (AGAIN, [assigned(90 - 0.1, "pod-a", 0)], 1),  # as the first began
        (AGAIN, [assigned(91 - 0.1, "pod-a", 0)], 0),
    ],
)
def test_a_member_that_goes_back_in_a_partition_is_seen(tmp_path, then, told, count):
    """Unless it was given the partition anew: it begins at what is committed then. What another does again is a copy."""
    receipts = [done("pod-a", *then), done("pod-a", 0, 0, 9, 90), done("pod-b", 0, 0, 9, 95)]
    assert went_back(under(tmp_path, receipts, told=told)).value == count


@pytest.mark.parametrize(
    ("seen", "messages"),
    [([5, 5, 9], 0), ([5, 12, 5], 7), ([5, 12, 5, 12, 3], 9), ([12, 12, 11], 1), ([0, 0], 0), ([20], 0)],
)
def test_a_committed_offset_that_goes_back_is_seen(tmp_path, seen, messages):
    """By the furthest that it is below an earlier one. A sample that comes late in the file is in its place by its time."""
    samples = [committed(90 + place, offset) for place, offset in enumerate(seen)]
    made = under(tmp_path, [done("a", 0, 0, 9, 99.0)], samples=samples[::-1])
    assert commits_went_back(made).value == messages


def test_a_committed_offset_of_a_partition_that_was_added_may_go_back_too(tmp_path):
    """The topic has four partitions, and then eight."""
    grown = {"faults": SCHEDULE, "events": to_list((("baseline", Grow(8)),))}
    samples = [committed(90, 12, 7), committed(91, 5, 7)]
    made = under(tmp_path, [done("a", 7, 0, 9, 99.0)], samples=samples, inputs=grown)
    assert commits_went_back(made).value == 7


def test_what_struck_nothing_is_omitted(tmp_path):
    """A trial without a schedule has no data, and one kill among other faults is not the one kill of a trial."""
    skipped = Fault(140.0, "sigkill", component="lag-exporter", skipped="no lag-exporter was at work", injection=PLANNED[2])
    planned = {"faults": [*SCHEDULE, SCHEDULE[0]]}
    found = under_faults(under(tmp_path / "one", [done("a", 0, 0, 99, 99.0)], faults=(KILLED, skipped), inputs=planned))
    assert (found.injected.value, found.omitted.value) == (1, 3)
    bare = record(tmp_path / "two")
    assert "no schedule of faults" in under_faults(bare).lost.why
    assert "1 faults" in consumer_kill(under(tmp_path / "three", [], faults=(STOPPED,))).unexplained.why


def test_what_must_hold_of_copies_is_said_of_each_trial(tmp_path):
    """Three claims, of which each holds in a trial that its faults did nothing to."""
    found = [one for one, _ in invariants([Runs([under(tmp_path, [done("a", 0, 0, 99, 99.0)])])])]
    assert [(one.operator, one.bound, one.quantity.value) for one in found] == [("==", 0, 0)] * 3
