"""What faults explain of a trial's copies, and how an autoscaler came through them, on records of which every row is known."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.inputs.faults import CONSUMER, CONTROLLERS, CUT, Injection
from lab.inputs.scale import Scale
from lab.measure.faults import (
    BACK_S,
    RECENT_S,
    back_s,
    commits_went_back,
    fewest_waiting,
    late,
    stranded,
    under_faults,
    went_back,
)
from lab.measure.kills import consumer_kill
from lab.record.trial import Fault, Offsets
from tests.unit.model.test_hpa_log import BEGUN, synced

from . import whole
from .built import assigned, given_up, lags, record, replicas, report, sample
from .test_delivery import IDS, TALLY
from .test_kills import done, range_of

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


def under(folder, receipts, doubled=(), faults=(KILLED, STOPPED, AWAY), told=(), **more):
    """A record with three planned faults: a is killed at 100, stopped from 120, and notices at 133 what it has lost."""
    events = [assigned(0, "a", 0), assigned(110, "a", 0), given_up(133, "a", 0, event="lost")]
    events += [report(1, "producer", "profile", start=1.0), report(150, "producer", "produced", **TALLY), *told]
    found = {"group_events": events, "receipts": receipts, "topic_ids": IDS, "offsets": {0: Offsets(100, 100)}}
    made = record(folder, faults=tuple(faults), **{"inputs": {"faults": SCHEDULE}} | found | more)
    total = sum(one["count"] for one in doubled)
    ledger = whole.reconciliation(produced=100, processed=100, doubled=doubled, doubled_messages=total)
    (folder / "reconciliation.json").write_text(json.dumps(ledger))
    return made


@pytest.mark.parametrize(
    ("receipts", "unexplained"),
    [
        ([done("a", 0, 0, 9, 99.9), done("b", 0, 0, 9, 108.0)], 0),
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
        ([STORELESS, STOPPED], 119.0, (), 0),
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


def test_an_acknowledged_event_that_the_log_lacks_is_lost(tmp_path):
    """Two of 100 at its end, where no hole shows it."""
    made = under(tmp_path, [])
    ledger = whole.reconciliation(produced=98, processed=98)
    (tmp_path / "reconciliation.json").write_text(json.dumps(ledger))
    assert under_faults(made).lost.value == 2


def test_a_further_dead_letter_is_a_copy(tmp_path):
    """Explained by the kill of the pod that had written the first."""
    made = under(tmp_path, [])
    ledger = whole.reconciliation(produced=100, processed=99, dead_messages=1, buried_again=1)
    (tmp_path / "reconciliation.json").write_text(json.dumps(ledger))
    vars(made)["dead_letters"] = pd.DataFrame({"partition": 0, "offset": 5, "failed": [99.0, 108.0]})
    found = under_faults(made)
    assert (found.copies.value, found.given_up.value, found.unexplained.value) == (1, 0, 0)


@pytest.mark.parametrize(
    ("end", "event", "others", "by_given_up"),
    [
        (149.0, "lost", (), 10),
        (146.4, "lost", (), 0),
        (146.4, "lost", [assigned(147.2, "d", 5)], 10),
        (145.9, "lost", [assigned(147.2, "d", 5)], 0),
        (146.4, "lost", [report(148, "c", "commit_failed", partitions=[5], seconds=1.0)], 10),  # it was asked for at 147
        (146.4, "lost", [assigned(147.2, "d", 6)], 0),  # another partition
        (145.9, "lost", [assigned(147.2, "d", 5), assigned(146.8, "e", 6)], 10),  # the rebalance had begun before
        (149.0, "revoked", (), 10),  # the commit with which it handed over was refused
        (149.0, "revoked", [report(149.5, "c", "assigned", partitions=[], owned=1)], 0),
    ],
)
def test_a_member_explains_what_it_could_not_commit(tmp_path, end, event, others, by_given_up):
    """From two commits before the rebalance in which it was given up, until it notices. What it did before was committed."""
    refused = report(148, "c", "commit_failed", partitions=[5])
    told = [assigned(140, "c", 5), refused, given_up(150, "c", 5, event=event), *others]
    receipts = [done("c", 5, 0, 9, end), done("d", 5, 0, 9, 151.0)]
    found = under_faults(under(tmp_path, receipts, [range_of(5, 0, 9)], told=told, inputs=FAST))
    assert (found.given_up.value, found.unexplained.value) == (by_given_up, 10 - by_given_up)


@pytest.mark.parametrize(("until", "by_given_up"), [(146.0, 10), (130.0, 0)])
def test_a_broker_that_is_away_answers_no_commit(tmp_path, until, by_given_up):
    """What was done 3.5 s before the group gave its member up is in flight while the coordinator stands still."""
    away = Fault(120.0, "sigstop", component="broker", until=until, injection=PLANNED[1])
    told = [assigned(100, "c", 5), given_up(150, "c", 5, event="lost")]
    receipts = [done("c", 5, 0, 9, 146.5), done("d", 5, 0, 9, 151.0)]
    found = under_faults(under(tmp_path, receipts, [range_of(5, 0, 9)], (KILLED, away, AWAY), told, inputs=FAST))
    assert (found.given_up.value, found.unexplained.value) == (by_given_up, 10 - by_given_up)


def test_commits_that_a_storm_refuses_are_refused_across_empty_assignments(tmp_path):
    """As in a storm of 26 s: what was done 5 s before an assignment of nothing was not committed by it."""
    refused = [report(t, "c", "commit_failed", partitions=[5]) for t in (144, 149)]
    told = [assigned(138, "c", 5), refused[0], report(146, "c", "assigned", partitions=[], owned=1), refused[1]]
    told += [given_up(150, "c", 5, event="revoked"), assigned(143, "d", 6)]
    receipts = [done("c", 5, 0, 9, 143.5), done("d", 5, 0, 9, 151.0)]
    found = under_faults(under(tmp_path, receipts, [range_of(5, 0, 9)], told=told, inputs=FAST))
    assert (found.given_up.value, found.unexplained.value) == (10, 0)


AGAIN = (0, 0, 9, 91)  # partition 0, 0 to 9, at 91


@pytest.mark.parametrize(
    ("then", "told", "count"),
    [
        ((0, 10, 19, 91), (), 0),
        ((1, 0, 9, 91), (), 0),
        ((0, 9, 18, 91), (), 1),
        (AGAIN, [assigned(90.5, "a", 0)], 0),
        (AGAIN, [assigned(89.5, "a", 0), assigned(90.5, "a", 1), assigned(90.5, "b", 0), assigned(91.5, "a", 0)], 1),
    ],
)
def test_a_member_that_goes_back_in_a_partition_is_seen(tmp_path, then, told, count):
    """Unless it was given the partition anew: it begins at what is committed then. What another does again is a copy."""
    receipts = [done("a", *then), done("a", 0, 0, 9, 90), done("b", 0, 0, 9, 95)]
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
    ],
)
def test_a_committed_offset_that_goes_back_is_seen(tmp_path, seen, messages):
    """By lag that rises further than what arrives explains. Of 25 messages 20 come at 50 s, and five at 100 s."""
    samples = [sample(t, "kafka_consumergroup_lag", lag, partition="0") for t, lag in seen]
    told = [report(149, "producer", "produced", **TALLY, late_max_ms=0)]
    made = under(tmp_path, [done("a", 0, 0, 9, 99.0)], told=told, samples=samples)
    vars(made)["group_events"] = made.group_events[made.group_events["t"] != 150]
    (tmp_path / "ledger" / "events").mkdir(parents=True)
    times = np.repeat([50, 100], [20, 5]) * 10**9
    pd.DataFrame({"partition": 0, "offset": range(25), "ts": times}).to_parquet(tmp_path / "ledger" / "events" / "0.parquet")
    assert commits_went_back(made).value == messages


def test_what_struck_nothing_is_omitted(tmp_path):
    """A trial without a schedule has no data, and one kill among other faults is not the one kill of a trial."""
    skipped = Fault(140.0, "sigkill", component="lag-exporter", skipped="no lag-exporter was at work", injection=PLANNED[2])
    found = under_faults(under(tmp_path / "one", [done("a", 0, 0, 99, 99.0)], faults=(KILLED, skipped)))
    assert (found.injected.value, found.omitted.value) == (1, 2)
    bare = record(tmp_path / "two")
    assert "no schedule of faults" in under_faults(bare).lost.why
    assert "no schedule of faults" in stranded(bare).why
    assert "1 faults" in consumer_kill(under(tmp_path / "three", [], faults=(STOPPED,))).unexplained.why


TO_ZERO = {
    "inputs": {"policy": whole.scaled(minReplicaCount=0), "faults": SCHEDULE},
    "transitions": replicas((0, 4, 4), (60, 0, 0)),
}


@pytest.mark.parametrize(
    ("lag", "steps"), [({58.5: 9, 59: 5, 59.5: 7}, 1), ({58.5: 9, 59: 0, 59.5: 7}, 0), ({50: 9, 61: 9}, None)]
)
def test_a_step_to_zero_is_held_against_the_lag_before_it(tmp_path, lag, steps):
    """Lag all the while strands the group; lag that was gone for a moment does not. An unknown lag is no data."""
    made = record(tmp_path, faults=(AWAY,), samples=lags(lag), **TO_ZERO)
    assert stranded(made).value == steps
    assert steps is not None or "no sample of lag" in stranded(made).why


@pytest.mark.parametrize(
    ("produced", "receipts", "steps"),
    [
        ([50, 51], [(0, 0, 55), (1, 1, 70)], 1),  # the second waited through the step
        ([50, 51], [(0, 0, 55)], 1),  # and so does one that is never processed
        ([50, 51], [(0, 1, 59.9)], 0),  # done a moment before
        ([50, 59], [(0, 0, 55), (1, 1, 70)], 0),  # nothing waited until 59
        ([50, 58.5], [(0, 0, 59), (1, 1, 70)], 1),  # one or the other did, at each moment
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


@given(st.lists(st.lists(SPAN, max_size=6), max_size=3), st.lists(st.integers(0, 30), max_size=3))
def test_the_fewest_that_waited_are_those_of_the_quietest_moment(parts, times):
    """Whatever part an event is in: counted at each half second, as nothing begins or ends between."""
    every = [one for part in parts for one in part]
    moments = np.arange(-RECENT_S, 0.1, 0.5)
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
    syncs = [one for one in synced(*[200] * 100) if not 1 < one.at - BEGUN < 4]
    assert (back_s(decided(syncs, away)).value, late(decided(syncs, away)).value) == (pytest.approx(1.8), 0)
    wrong = [replace(one, desired=one.desired + (2 < one.at - BEGUN < 20)) for one in syncs]
    found = back_s(decided(wrong, away)).value
    assert found == pytest.approx(17.8)
    assert late(decided(wrong, away)).value == pytest.approx((found - BACK_S) / 0.5)
    assert "decided nothing" in back_s(decided(syncs[:2], away)).why
    once = [replace(one, desired=one.desired + (18 < one.at - BEGUN < 20)) for one in syncs]
    assert back_s(decided(once, away)).value == pytest.approx(17.8)
    assert "otherwise than the model" in back_s(decided([replace(one, desired=9) for one in syncs], away)).why


def test_a_controller_that_was_killed_begins_anew():
    """It has forgotten that it scaled up by 4 a second ago, and scales up again, as the model does without that memory."""
    before, anew = synced(2400), [replace(one, at=one.at + 3, scaled_at=BEGUN + 3) for one in synced(2400, replicas=6)]
    killed_then = Fault(BEGUN + 1, "sigkill", component=CONTROLLERS, until=BEGUN + 2, injection=PLANNED[2])
    assert back_s(decided(before + anew, killed_then)).value == pytest.approx(1)
    assert back_s(decided(before + anew, replace(killed_then, component="keda-operator"))).value is None
