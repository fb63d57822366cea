"""What faults explain of a trial's copies, and how an autoscaler came through them, on records of which every row is known."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lab.inputs.events import Brokers
from lab.inputs.faults import CONSUMER, CONTROLLERS, CUT, Injection
from lab.inputs.inputs import PRODUCER
from lab.inputs.scale import Scale
from lab.judge.measure import Runs
from lab.measure.faults import (
    back_s,
    commits_went_back,
    fewest_waiting,
    invariants,
    late,
    losses,
    outside_bounds,
    stranded,
    under_faults,
    went_back,
)
from lab.measure.kills import Loss, consumer_kill
from lab.model.hpa_log import KEPT, RESCALED, Line
from lab.record.trial import Fault, Offsets
from tests.unit.model.test_hpa_log import BEGUN, synced

from . import whole
from .built import assigned, deployment, given_up, lags, record, replicas, report, sample
from .test_delivery import IDS, TALLY
from .test_kills import done, logged, range_of

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
FAST = {"faults": SCHEDULE, "workload": {"commit_interval_ms": 500}}


def under(folder, receipts, doubled=(), faults=(KILLED, STOPPED, AWAY), told=(), counts=None, **more):
    """A record with three planned faults: a is killed at 100, stopped from 120, and notices at 133 what it has lost.

    The ledger says that 100 messages were produced and processed, where ``counts`` does not say otherwise.
    """
    events = [assigned(0, "a", 0), assigned(110, "a", 0), given_up(133, "a", 0, event="lost")]
    events += [report(1, "producer", "profile", start=1.0), report(150, "producer", "produced", **TALLY, late_max_ms=0), *told]
    found = {"group_events": events, "receipts": receipts, "topic_ids": IDS, "offsets": {0: Offsets(100, 100)}}
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


COMMITS = {"commit_interval_ms": 500, "batch_ms": 150, "poll_ms": 100}  # two of them in 1.5 s, and the second is answered in 2
OWN_BROKERS = {"faults": SCHEDULE, "workload": COMMITS, "brokers": vars(Brokers())}


@pytest.mark.parametrize(("a", "unexplained"), [(99.9, 0), (96.6, 0), (96.4, 10), (0.0, 10)])
def test_with_brokers_of_its_own_what_was_due_to_be_committed_long_before_a_fault_is_not_in_flight(tmp_path, a, unexplained):
    """No lag tells what was committed, and a copy of a message that is old is a commit that was lost."""
    receipts = [done("a", 0, 0, 9, a), done("b", 0, 0, 9, 108.0)]
    assert under_faults(under(tmp_path, receipts, [range_of(0, 0, 9)], inputs=OWN_BROKERS)).unexplained.value == unexplained


STALLED = Fault(80.0, "sigstop", component="broker", until=81.5)  # until 96.5, by when it is back
MOVED = {"t": 80.0, "until": 81.5, "due": None, "phase": None, "event": "kill_broker", "result": {}}


def refused(t, pod="a", **more):
    """A member's report of a commit that the group refused."""
    return report(t, pod, "commit_failed", partitions=[0], **more)


@pytest.mark.parametrize(
    ("faults", "told", "events", "after"),
    [
        ([], [], [], 96.5),
        ([STALLED], [], [], 76.5),
        ([replace(STALLED, until=81.25)], [], [], 96.5),  # two commits were answered since
        ([replace(STALLED, component="store")], [], [], 76.5),
        ([replace(STALLED, component="keda-operator")], [], [], 96.5),
        ([replace(STALLED, skipped="no broker was at work")], [], [], 96.5),
        ([replace(STALLED, fault="sigkill", t=85.0, until=None)], [], [], 81.5),
        ([replace(STALLED, t=100.5, until=105.0)], [], [], 96.5),  # after the kill
        ([STALLED, replace(STALLED, t=60.0, until=61.5)], [], [], 56.5),  # one outage after the other
        ([STALLED, replace(STALLED, t=60.0, until=61.25)], [], [], 76.5),
        ([], [], [MOVED], 76.5),
        ([], [], [MOVED | {"event": "kill"}], 96.5),
        ([], [refused(97.0)], [], 93.5),
        ([], [refused(97.0, seconds=2.0)], [], 91.5),
        ([], [refused(100.5, seconds=2.5)], [], 94.5),  # it was asked for before the kill
        ([], [refused(100.5)], [], 96.5),
        ([], [refused(96.25)], [], 96.5),  # two were taken since
        ([], [refused(97.0, "b")], [], 96.5),
    ],
)
def test_without_lag_a_pod_s_commits_tell_from_when_on_it_has_something_in_flight(tmp_path, faults, told, events, after):
    """They are due in time, where no broker or store was away and none was refused."""
    struck, reported = (Fault(100.0, "sigkill", "a"), *faults), [assigned(0, "a", 0), *told]
    made = record(tmp_path, inputs=OWN_BROKERS, faults=struck, group_events=reported, events=tuple(events))
    assert list(losses(made)) == [Loss("a", 100.0, after, 100.0)]


@pytest.mark.parametrize(
    ("work", "after"),
    [
        ({"store_slots": 4}, 96.5),
        ({"store_slots": 2}, 96.0),  # each of four pods takes 0.5 s for 0.25 s of work
        ({"store_slots": 2, "store_contention": 100}, 95.0),  # or 1 s
        ({"image": "mine"}, -math.inf),
    ],
)
def test_a_store_that_is_short_of_slots_keeps_a_pod_from_its_commit(tmp_path, work, after):
    """And nobody knows when your own consumer commits."""
    own = OWN_BROKERS | {"policy": whole.scaled(maxReplicaCount=4), "workload": COMMITS | work}
    made = record(tmp_path, inputs=own, faults=(Fault(100.0, "sigkill", "a"),), group_events=[assigned(0, "a", 0)])
    assert [one.after for one in losses(made)] == [after]


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
    made = under(tmp_path, receipts, doubled, told=told, counts=counts, inputs=FAST)
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
    [
        ([(90, 5), (95, 5)], 0),
        ([(90, 5), (95, 12)], 7),
        ([(90, 12), (93, 5), (95, 12)], 7),
        ([(90, 5), (90.9, 12)], 0),  # the second may have been read first
        ([(50.5, 0), (53, 20)], 0),  # all may have come after the first
        ([(90, 5), (99.5, 12)], 2),  # five came within a second after the last
        ([(51, 0), (53, 20)], 20),
        ([(90, 5), (91, 12)], 7),
        ([(90, 20)], 0),
    ],
)
def test_a_committed_offset_that_goes_back_is_seen(tmp_path, seen, messages):
    """By lag that rises further than what arrives explains. Of 25 messages 20 come at 50 s, and five at 100 s."""
    samples = [sample(t, "kafka_consumergroup_lag", lag, partition="0") for t, lag in seen]
    made = under(tmp_path, [done("a", 0, 0, 9, 99.0)], samples=samples)
    logged(tmp_path, 0, np.repeat([50, 100], [20, 5]) * 10**9)
    assert commits_went_back(made).value == messages


def test_what_struck_nothing_is_omitted(tmp_path):
    """A trial without a schedule has no data, and one kill among other faults is not the one kill of a trial."""
    skipped = Fault(140.0, "sigkill", component="lag-exporter", skipped="no lag-exporter was at work", injection=PLANNED[2])
    planned = {"faults": [*SCHEDULE, SCHEDULE[0]]}
    found = under_faults(under(tmp_path / "one", [done("a", 0, 0, 99, 99.0)], faults=(KILLED, skipped), inputs=planned))
    assert (found.injected.value, found.omitted.value) == (1, 3)
    bare = record(tmp_path / "two")
    assert "no schedule of faults" in under_faults(bare).lost.why
    assert "no schedule of faults" in stranded(bare).why
    assert "1 faults" in consumer_kill(under(tmp_path / "three", [], faults=(STOPPED,))).unexplained.why


TO_ZERO = {
    "inputs": {"policy": whole.scaled(minReplicaCount=0), "faults": SCHEDULE},
    "transitions": replicas((0, 4, 4), (60, 0, 0)),
}


@pytest.mark.parametrize(
    ("lag", "steps"),
    [
        ({58.5: 9, 59: 5, 59.5: 7}, 1),
        ({58.5: 9, 59: 0, 59.5: 7}, 0),
        ({58: 9}, 1),
        ({57.5: 9}, None),
        ({50: 9, 61: 9}, None),
    ],
)
def test_a_step_to_zero_is_held_against_the_lag_before_it(tmp_path, lag, steps):
    """Lag all the while strands the group; lag that was gone for a moment does not. An unknown lag is no data."""
    made = record(tmp_path, faults=(AWAY,), samples=lags(lag), **TO_ZERO)
    assert stranded(made).value == steps
    assert steps is not None or "no sample of lag" in stranded(made).why


AT_FIVE = whole.scaled(minReplicaCount=0)
AT_FIVE["spec"]["triggers"][0]["metadata"]["activationLagThreshold"] = "5"


@pytest.mark.parametrize(
    ("policy", "lag", "steps"),
    [(AT_FIVE, 3, 0), (AT_FIVE, 5, 0), (AT_FIVE, 6, 1), (whole.hpa(1, 4), 0, 0), (whole.hpa(1, 4), 1, 1)],
)
def test_a_step_to_zero_is_held_against_the_lag_that_the_policy_takes_for_none(tmp_path, policy, lag, steps):
    """A trigger of lag is active above its activation. A policy without one takes no lag for none."""
    more = TO_ZERO | {"inputs": {"policy": policy, "faults": SCHEDULE}}
    assert stranded(record(tmp_path, faults=(AWAY,), samples=lags({59: lag}), **more)).value == steps


def triggers(*each):
    """A policy to zero with two triggers: the first is active above no message, the second above 1,000."""
    made = whole.scaled(minReplicaCount=0)
    (one,) = made["spec"]["triggers"]
    own = zip(each, ("0", "1000"), strict=True)
    made["spec"]["triggers"] = [one | {"metadata": one["metadata"] | more | {"activationLagThreshold": n}} for more, n in own]
    return made


TOPICS = {"policy": triggers({}, {"topicFromEnv": "TOPIC_2"}), "workload": {"topics": 2}}
HALVES = {"policy": triggers({"partitionLimitation": "0-1"}, {"partitionLimitation": "2,3"})}


@pytest.mark.parametrize("inputs", [TOPICS, HALVES], ids=["topics", "halves"])
@pytest.mark.parametrize(
    ("first", "second", "steps"), [(600, 0, 1), (0, 600, 0), (0, 1000, 0), (0, 1001, 1), (1, 1000, 1), (0, 0, 0)]
)
def test_each_trigger_is_held_against_the_lag_that_it_counts(tmp_path, inputs, first, second, steps):
    """A group is active by any of them. The first has partitions 0 and 1, and the second 2 and 3."""
    seen = [sample(59, "kafka_consumergroup_lag", lag, partition=number) for number, lag in (("1", first), ("2", second))]
    more = TO_ZERO | {"inputs": inputs | {"faults": SCHEDULE}}
    made = record(tmp_path, faults=(AWAY,), samples=lags({59: first + second}) + seen, **more)
    assert stranded(made).value == steps


@pytest.mark.parametrize(("lag", "steps"), [(600, None), (0, 0)])
def test_lag_of_which_nobody_knows_what_triggers_count_of_it_is_no_data(tmp_path, lag, steps):
    """Without any there is none to be counted. Two triggers on all of it are active above the lower of their activations."""
    more = TO_ZERO | {"inputs": TOPICS | {"faults": SCHEDULE}}
    found = stranded(record(tmp_path / "two", faults=(AWAY,), samples=lags({59: lag}), **more))
    assert found.value == steps
    assert steps is not None or "no sample of the lag that a trigger counts" in found.why
    both = TO_ZERO | {"inputs": {"policy": triggers({}, {}), "faults": SCHEDULE}}
    assert stranded(record(tmp_path / "both", faults=(AWAY,), samples=lags({59: lag}), **both)).value == (lag > 0)


def owner(t, desired, generation=None, uid="x"):
    """A watch event of the consumer's Deployment, which tells its generation, if any."""
    row = deployment(float(t), desired, desired)
    metadata = {"uid": uid} | ({} if generation is None else {"generation": generation})
    return row | {"object": json.dumps(json.loads(row["object"]) | {"metadata": metadata})}


BOUNDS = "the replicas stay within the policy's bounds, whatever is struck"
TO_NONE = "no group is scaled to zero while there is lag"


@pytest.mark.parametrize(
    ("seen", "holds"),
    [
        ([(0, 4, 1), (60, 6, 2)], True),
        ([(0, 4, 1), (50, 4, 1), (60, 6, 2), (70, 6, 2), (80, 6, 3)], True),
        ([(0, 4, 1), (60, 6, 3)], None),
        ([(0, 4, 1), (60, 4, 3), (70, 4, 3)], None),  # back where it was
        ([(0, 4, 1), (60, 6)], True),  # it does not tell
        ([(0, 4), (60, 6, 3)], True),
        ([(0, 4, 1), (60, 4, 3, "y")], True),  # another one of its name
        ([(0, 4, 1), (100, 6, 3)], None),
        ([(0, 4, 1), (101, 0, 3)], True),  # it was taken down: the trial ended at 100
    ],
)
def test_changes_of_the_replicas_that_the_watch_missed_are_no_pass(tmp_path, seen, holds):
    """Each change makes a generation. What was missed while the API server was away may have been out of bounds, or none."""
    rows = [owner(*one) for one in seen]
    made = record(tmp_path, inputs={"faults": SCHEDULE}, faults=(AWAY,), transitions=rows, samples=lags({59: 0}))
    found = {words: one.holds for one, words in invariants([Runs([made])])}
    assert (found[BOUNDS], found[TO_NONE]) == (holds, holds)
    why = "" if holds else "the watch did not see every change of the replicas"
    assert (stranded(made).why, outside_bounds(made).why) == (why, why)


@pytest.mark.parametrize(
    ("steps", "holds"),
    [
        ([(59.0, 4, 9), (60.5, 9, 6)], True),
        ([(58.0, 3, 4), (59.0, 4, 9), (60.5, 9, 6)], True),  # after the last that was seen
        ([(59.0, 4, 9)], None),
        ([(59.0, 4, 9), (60.5, 8, 6)], None),  # one between them is not there
        ([(59.0, 4, 9), (60.5, 9, 7)], None),
        ([(59.0, 5, 9), (60.5, 9, 6)], None),
        ([(59.0, 4, 9), (62.0, 9, 6)], None),  # later than what the watch saw
        ([(59.0, 4, 500), (60.5, 500, 6)], None),  # out of bounds
        ([(59.0, 4, 0), (60.5, 0, 6)], None),
    ],
)
def test_what_the_watch_missed_is_known_by_the_hpas_log(tmp_path, steps, holds):
    """From 4 to 6 replicas in two steps, which the log has with what they began from."""
    rows = [owner(57, 4, 1), owner(60, 6, 3)]
    made = record(tmp_path, inputs={"faults": SCHEDULE}, faults=(AWAY,), transitions=rows, samples=lags({59: 0}))
    counts = ({"currentReplicas": one, "desiredReplicas": other} for _, one, other in steps)
    lines = [Line(t, RESCALED, each) for (t, _, _), each in zip(steps, counts, strict=True)]
    vars(made)["hpa_lines"] = [*lines, Line(59.5, KEPT, {"currentReplicas": 1, "desiredReplicas": 1})]
    assert outside_bounds(made).value == (0 if holds else None)
    assert stranded(made).value == (0 if holds else None)


def test_what_the_watch_missed_hides_no_breach(tmp_path):
    """That which it saw: a step to none with lag, below the floor."""
    inputs = {"faults": SCHEDULE, "policy": whole.scaled(minReplicaCount=1)}
    rows = [owner(0, 4, 1), owner(60, 0, 3)]
    made = record(tmp_path, inputs=inputs, faults=(AWAY,), transitions=rows, samples=lags({59: 5}))
    assert (stranded(made).value, outside_bounds(made).value) == (1, 1)


@pytest.mark.parametrize(
    ("produced", "receipts", "steps"),
    [
        ([50, 51], [(0, 0, 55), (1, 1, 70)], 1),  # the second waited through the step
        ([50, 51], [(0, 0, 55)], 1),  # and so does one that is never processed
        ([50, 51], [(0, 1, 59.9)], 0),  # done a moment before
        ([50, 59], [(0, 0, 55), (1, 1, 70)], 0),  # nothing waited until 59
        ([50, 58.5], [(0, 0, 59), (1, 1, 70)], 1),  # one or the other did, at each moment
        ([50, 60], [(0, 0, 60)], 1),  # the second came as the first was done
        ([50], [(0, 0, 60)], 0),  # done at that moment
        ([40, 51], [(0, 0, 45), (1, 1, 70)], 1),  # nothing waited until 51, which was long before
    ],
)
def test_a_step_to_zero_is_held_against_what_the_log_and_the_receipts_say(tmp_path, produced, receipts, steps):
    """Where the exporter was away, and where it says otherwise."""
    own = [done("a", 0, *one) for one in receipts]
    for number, samples in enumerate((lags({40: 5}), lags({59: 5 * (not steps)}))):
        made = record(tmp_path / str(number), faults=(AWAY,), samples=samples, receipts=own, **TO_ZERO)
        log = np.zeros(len(produced), int), np.arange(len(produced)), (np.array(produced) * 1e9).astype(int)
        vars(made)["event_parts"] = lambda *_, log=log: iter([log])
        assert stranded(made).value == steps


LENGTHS = st.integers(0, 12) | st.just(math.inf)
SPAN = st.tuples(st.integers(0, 30), LENGTHS).map(lambda one: (one[0], sum(one)))


@example([[(50, 59), (51, 59.5), (52, 70), (53, math.inf)]], [60])
@given(st.lists(st.lists(SPAN, max_size=6), max_size=3), st.lists(st.integers(0, 30), max_size=3))
def test_the_fewest_that_waited_are_those_of_the_quietest_moment(parts, times):
    """Whatever part an event is in: counted at each half second of two, as nothing begins or ends between."""
    every = [one for part in parts for one in part]
    moments = np.arange(-2.0, 0.1, 0.5)
    expected = [min(sum(at <= t + ago < over for at, over in every) for ago in moments) for t in times]
    lives = [(np.array([at for at, _ in part]), np.array([over for _, over in part])) for part in parts]
    assert fewest_waiting(lives, times) == expected


def decided(syncs, *faults):
    """A record of these syncs and faults, of a controller whose window down is 10 s; it was driven from BEGUN on."""
    scale, inputs = Scale("quick", 30, 1), SimpleNamespace(faults=SCHEDULE)
    seen: Any = SimpleNamespace(trial=SimpleNamespace(faults=faults), inputs=inputs, scale=scale, driven=BEGUN, hpa_syncs=syncs)
    return seen


def test_an_hpa_is_back_once_its_decisions_are_the_models():
    """For good. A sync that failed is no decision, and syncs count from when all had time to come back."""
    away = replace(AWAY, t=BEGUN + 1, until=BEGUN + 2.2)
    syncs = [one for one in synced(*[200] * 300) if not 1 < one.at - BEGUN < 4]
    assert (back_s(decided(syncs, away)).value, late(decided(syncs, away)).value) == (pytest.approx(1.8), 0)
    wrong = [replace(one, desired=one.desired + (2 < one.at - BEGUN < 20)) for one in syncs]
    found = back_s(decided(wrong, away)).value
    assert found == pytest.approx(17.8)
    assert late(decided(wrong, away)).value == pytest.approx((found - 15) / 0.5)
    assert "decided nothing" in back_s(decided(syncs[:2], away)).why
    once = [replace(one, desired=one.desired + (18 < one.at - BEGUN < 20)) for one in syncs]
    assert back_s(decided(once, away)).value == pytest.approx(17.8)
    assert "otherwise than the model" in back_s(decided([replace(one, desired=9) for one in syncs], away)).why
    assert back_s(decided(syncs, replace(away, until=BEGUN + 4))).value == 0.5  # a sync at its end was before it
    soon = [replace(one, at=one.at - BEGUN + 1) for one in syncs]
    assert back_s(decided(soon, replace(away, t=2.0, until=2.2))).value == pytest.approx(2.8)


def test_a_controller_that_was_killed_begins_anew():
    """It has forgotten that it scaled up by 4 a second ago, and scales up again, as the model does without that memory."""
    before, anew = synced(2400), [replace(one, at=one.at + 3, scaled_at=BEGUN + 3) for one in synced(2400, replicas=6)]
    killed_then = Fault(BEGUN + 1, "sigkill", component=CONTROLLERS, until=BEGUN + 2, injection=PLANNED[2])
    assert back_s(decided(before + anew, killed_then)).value == pytest.approx(1)
    assert back_s(decided(before + anew, replace(killed_then, component="keda-operator"))).value is None
    assert back_s(decided(before + anew, replace(killed_then, fault="sigstop"))).value is None
    assert back_s(decided(before + anew, replace(killed_then, t=BEGUN - 1, until=BEGUN))).value == pytest.approx(3)


def test_what_must_hold_beside_delivery_is_said_of_each_trial(tmp_path):
    """Six claims, of which each holds in a trial that its faults did nothing to."""
    samples = [sample(90, "kafka_consumergroup_lag", 0, partition="0")]
    made = under(tmp_path, [done("a", 0, 0, 99, 99.0)], transitions=replicas((0, 4, 4)), samples=samples)
    logged(tmp_path, 0, np.repeat(50, 100) * 10**9)
    vars(made)["hpa_syncs"] = [replace(one, at=one.at - BEGUN + 141) for one in synced(200, 200, 200, 200)]
    found = [one for one, _ in invariants([Runs([made])])]
    assert [(one.operator, one.bound, one.quantity.value) for one in found] == [("==", 0, 0)] * 5 + [("<=", 3, 0)]
