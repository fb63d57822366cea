"""What followed each fault, and what many trials' faults did together, on records of which every row is known."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lab.inputs.faults import CONSUMER
from lab.measure.fault_tally import ROW, TOTALS, WORST, Followed, followed, tally, together
from lab.measure.faults import losses
from lab.model.hpa_log import FAILED
from lab.record.pods import Change, Pod
from lab.record.trial import Fault

from .built import assigned, given_up, receipt, record, report
from .test_faults import AWAY, CUT_OFF, KILLED, PLANNED, SCHEDULE, STOPPED, STORELESS, under
from .test_kills import done, range_of

READ = "".join(FAILED)  # the words as a line of a log has them


def told(made, *, decided=(), failed=(), steps=()):
    """``made``, with an HPA that decided and failed then, and whose wanted replicas changed then."""
    lines = [(at, READ) for at in failed] + [(141, "else"), (141, "other")]
    vars(made).update(
        hpa_syncs=[SimpleNamespace(at=at) for at in decided],
        hpa_lines=[SimpleNamespace(t=at, words=words) for at, words in lines],
        scalings=[Change(at, 4, 6) for at in steps],
    )
    return made


def test_what_followed_each_fault_is_told(tmp_path):
    """Of a consumer until its partition went on; of a part of the control plane what the HPA did while it was away."""
    receipts = [done("a", 0, 0, 9, 99.9), done("b", 0, 0, 9, 108.0), done("a", 0, 10, 19, 119.9), done("b", 0, 20, 29, 131.0)]
    scheduler = replace(AWAY, t=141.0, until=145.0, component="kube-scheduler")
    exporter = replace(AWAY, t=149.0, until=None, component="lag-exporter")
    made = under(tmp_path, receipts, [range_of(0, 0, 9)], faults=(KILLED, STOPPED, AWAY, scheduler, exporter))
    told(made, decided=(100.0, 139.5, 143.0, 144.0, 160.0), failed=(141.0, 142.0), steps=(140.0, 144.5))
    assert followed(made) == [
        Followed(CONSUMER, "sigkill", pytest.approx(8.0)),
        Followed(CONSUMER, "sigstop", pytest.approx(11.0)),
        Followed("keda-operator", "sigkill", 3.5, alone=False, due=pytest.approx(2 / 15), decided=0, failed=2, steps=0),
        Followed("kube-scheduler", "sigkill", 16.0, alone=False, due=pytest.approx(4 / 15), decided=2, failed=1, steps=1),
        Followed("lag-exporter", "sigkill", 16.0, alone=True),
    ]


@pytest.mark.parametrize(
    ("fault", "decided", "standstill_s", "due"),
    [
        (AWAY, (139.5, 142.0, 160.0), 2.5, 2 / 15),  # decided as it was over
        (AWAY, (120.0, 140.0, 141.0), 1.0, 2 / 15),  # and as it began
        (replace(AWAY, t=40.0, until=100.0), (30.0, 90.0, 95.0), 60.0, 4),
    ],
)
def test_an_hpa_stands_still_from_a_decision_to_the_next(tmp_path, fault, decided, standstill_s, due):
    """Where the fault fell in between. A sync is due every 15 s."""
    (found,) = followed(told(under(tmp_path, [], faults=(fault,)), decided=decided))
    assert (found.standstill_s, found.due, found.alone) == (standstill_s, pytest.approx(due), True)


@pytest.mark.parametrize(
    ("t", "alone"), [(141.0, [False, False]), (142.0, [True, False]), (144.5, [True, False]), (145.0, [True, True])]
)
def test_a_part_is_away_alone_unless_another_is_away_or_starting(tmp_path, t, alone):
    """The first is away from 140 to 142, and may take until 145 to start."""
    scheduler = replace(AWAY, t=t, until=t + 1, component="kube-scheduler")
    assert [one.alone for one in followed(told(under(tmp_path, [], faults=(AWAY, scheduler))))] == alone


@pytest.mark.parametrize(
    ("after", "ready", "t", "scaling"),
    [
        (6, 4, 142.0, "out"),
        (6, 6, 142.0, ""),  # all are at work
        (6, 4, 139.9, ""),  # not begun
        (6, 7, 142.0, ""),  # and more than were asked for
        (2, 4, 140.0, "in"),
        (2, 4, 143.9, "in"),
        (2, 4, 139.9, ""),
        (2, 4, 144.0, ""),  # gone
        (2, 4, 150.0, ""),
    ],
)
def test_a_fault_strikes_while_the_group_scales(tmp_path, after, ready, t, scaling):
    """Out, while pods that a step up asked for are not Ready; in, while those of a step down leave, from 140 to 144."""
    made = told(under(tmp_path, [], faults=(replace(AWAY, t=t),)))
    leaving = {"a": Pod("a", seen=1.0, deleted=140.0, gone=144.0)} if after < 4 else {}
    replicas = pd.DataFrame({"t": [1.0, 140.0], "desired": [4, after], "current": 4, "ready": [4, ready]})
    vars(made).update(scalings=[Change(140.0, 4, after), Change(160.0, after, 9)], replicas=replicas, pods=leaving)
    assert [one.scaling for one in followed(made)] == [scaling]
    assert sum(tally([made])["struck"][0][way] for way in ("out", "in")) == bool(scaling)


STRUCK = Fault(125.0, "sigkill", "x", component="lag-exporter", injection=PLANNED[0])


@pytest.mark.parametrize(
    ("exporter", "readiness", "alone"),
    [
        (STRUCK, ((100.0, True), (126.0, False), (145.0, True)), False),
        (STRUCK, ((100.0, True), (126.0, False), (139.0, True)), True),
        (STRUCK, ((100.0, False), (110.0, True), (126.0, False), (145.0, True)), False),  # what was before says nothing
        (STRUCK, ((125.0, False), (126.0, True), (127.0, False), (145.0, True)), False),
        (replace(STRUCK, fault="sigstop", until=130.0), ((131.0, False), (145.0, True)), False),  # it ended as it went on
        (replace(STRUCK, fault="sigstop", until=130.0), ((145.5, False), (150.0, True)), True),  # long after
    ],
)
def test_what_is_not_back_is_away(tmp_path, exporter, readiness, alone):
    """The exporter's container was killed again, so the kubelet let it wait for 20 s: the operator was not away alone."""
    made = told(under(tmp_path, [], faults=(exporter, AWAY)))
    vars(made)["pods_of"] = lambda _: {"x": SimpleNamespace(readiness=readiness)}
    assert [one.alone for one in followed(made)][1] is alone


def test_a_partition_stands_still_while_a_message_waits(tmp_path):
    """From when it was produced, where that was after the fault: a partition without a message has nothing to do."""
    made = told(under(tmp_path, [done("a", 0, 0, 9, 99.9), done("b", 0, 10, 19, 131.0)], faults=(KILLED,)))
    times = np.array([90_000_000_000, 128_500_000_000])
    vars(made)["event_parts"] = lambda *_: iter([(np.array([0, 0]), np.array([0, 10]), times)])
    assert followed(made) == [Followed(CONSUMER, "sigkill", pytest.approx(2.5, abs=1e-9))]


LATER = [done("b", 0, 0, 9, 131.0), done("b", 1, 0, 9, 250.0)]


def begun(pod, start, end):
    """A receipt for 0..9 of partition 0, from ``start`` to ``end``."""
    return receipt(pod, start, end, 10) | {"first": 0, "last": 9, "checksum": 0}


@pytest.mark.parametrize(
    ("fault", "receipts", "standstill_s"),
    [
        (STOPPED, LATER, 11),  # of the pod's own partition
        (STOPPED, [begun("b", 120.0, 121.0), *LATER], 11),  # what began at the fault was under way
        (STOPPED, LATER[1:], None),
        (STORELESS, LATER, 130),  # of all
        (replace(STORELESS, component="broker", fault="sigstop"), LATER, 130),
        (Fault(120.0, "rollout", injection=PLANNED[1]), LATER, 130),
        (CUT_OFF, [done("0", 0, 0, 9, 131.0)], 11),  # by another, while it is cut off and later
        (CUT_OFF, [done("b", 0, 0, 9, 140.0)], 20),
        (CUT_OFF, [done("a", 0, 0, 9, 121.0), done("a", 0, 10, 19, 140.0)], 20),  # by itself, later
        (CUT_OFF, [begun("a", 132.0, 133.0), begun("a", 134.0, 135.0)], 15),
    ],
)
def test_partitions_stand_still_until_a_receipt_that_began_after_the_fault(tmp_path, fault, receipts, standstill_s):
    """The faults are at 120, and the pod that is cut off is so until 132. It owns partition 0, and b owns 1."""
    made = told(under(tmp_path, receipts, faults=(fault,), told=[assigned(0, "b", 1)]))
    assert [one.standstill_s for one in followed(made)] == [standstill_s]


@pytest.mark.parametrize(("fault", "standstill_s"), [(STOPPED, None), (STORELESS, 11)])
def test_a_partition_that_waits_for_an_owner_stands_still(tmp_path, fault, standstill_s):
    """The pod a was started anew before the fault, and owns nothing since: a fault of the store is waited for all the same."""
    made = told(under(tmp_path, LATER[:1], faults=(fault,), told=[report(112, "a", "started")]))
    assert [one.standstill_s for one in followed(made)] == [standstill_s]


def test_a_partition_counts_that_had_an_owner_by_the_fault(tmp_path):
    """Partition 1 is assigned at the moment of the fault, and partition 2 a second later."""
    receipts, told_then = [done("b", 1, 0, 9, 250.0), done("c", 2, 0, 9, 300.0)], [assigned(120, "b", 1), assigned(121, "c", 2)]
    made = told(under(tmp_path, receipts, faults=(STORELESS,), told=told_then))
    assert [one.standstill_s for one in followed(made)] == [130]


def test_without_receipts_nobody_sees_what_stood_still(tmp_path):
    """That is none, and no 0."""
    bare = record(tmp_path, inputs={"faults": SCHEDULE}, faults=(KILLED,))
    assert followed(bare) == [Followed(CONSUMER, "sigkill", None)]


@pytest.mark.parametrize(
    ("fault", "more", "standstill_s", "until"),
    [
        (STOPPED, (), 1.0, 133),
        (CUT_OFF, [given_up(121, "a", 0)], 11.0, 133),
        (CUT_OFF, [given_up(128, "a", 0, event="lost")], 11.0, 128),
        (replace(CUT_OFF, t=115.0, until=117.0), (), 6.0, 117),  # over before its session: what comes later has other causes
    ],
)
def test_a_consumer_that_is_cut_off_goes_on_until_it_notices(tmp_path, fault, more, standstill_s, until):
    """While it is, or afterwards. Its receipts could not arrive before: its partitions stood still."""
    made = told(under(tmp_path, [done("a", 0, 0, 9, 121.0), done("b", 0, 0, 9, 131.0)], faults=(fault,), told=more))
    assert followed(made) == [Followed(CONSUMER, fault.fault, pytest.approx(standstill_s))]
    assert [one.until for one in losses(made)] == [until]


def test_tallies_add_up_and_keep_the_worst(tmp_path):
    """By component and kind; what a record does not show is told, and is no nothing. Trials without a schedule don't count."""
    receipts, twice = [done("a", 0, 0, 9, 99.9), done("b", 0, 0, 9, 108.0)], {"dead_messages": 2, "buried_again": 2}
    made = under(tmp_path / "one", receipts, [range_of(0, 0, 9)], faults=(KILLED, AWAY), counts=twice)
    told(made, decided=(139.0, 141.0, 143.0))
    vars(made)["dead_letters"] = pd.DataFrame({"partition": 0, "offset": [15, 15, 16, 16], "failed": [99.0, 108.0] * 2})
    planned = {"faults": [*SCHEDULE, SCHEDULE[0]]}
    blank = told(record(tmp_path / "two", inputs=planned, faults=(AWAY,)), decided=(40.0, 150.0))
    found = tally([made, blank, record(tmp_path / "three")])
    assert (found["trials"], found["untold"], found["injections"], found["omitted"]) == (2, 1, 3, 1 + 3)
    assert (found["copies"], found["lost"], found["unexplained"]) == (12, 0, 0)
    killed_one, operator = found["struck"]
    own = {"component": CONSUMER, "kind": "sigkill", "injections": 1, WORST: 8.0, "copies": 12}
    assert killed_one == dict.fromkeys(ROW, 0) | own
    assert (operator["injections"], operator[WORST], operator["alone"], operator["decided"]) == (2, 110.0, 2, 1)
    assert operator["due"] == pytest.approx(4 / 15, abs=0.001)
    assert together([found, found])["struck"][1] == operator | {"injections": 4, "alone": 4, "decided": 2, "due": 0.532}


def test_tallies_are_in_thousandths():
    """Every number of a row is a sum, but the worst standstill."""
    named = {"component": "node", "kind": "drain"}
    each = dict.fromkeys(TOTALS, 1) | {"struck": [named | dict.fromkeys(ROW, 1) | {WORST: 1.23456}]}
    both = dict.fromkeys(TOTALS, 2) | {"struck": [named | dict.fromkeys(ROW, 2) | {WORST: 1.235}]}
    assert together([each, each]) == both
