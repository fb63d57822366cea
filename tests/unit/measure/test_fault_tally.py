"""What followed each fault, and what many trials' faults did together, on records of which every row is known."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from lab.inputs.faults import CONSUMER
from lab.measure.fault_tally import ROW, WORST, Followed, followed, tally, together
from lab.measure.faults import losses
from lab.model.hpa_log import FAILED
from lab.record.pods import Change
from lab.record.trial import Fault

from .built import given_up, record
from .test_faults import AWAY, CUT_OFF, KILLED, PLANNED, SCHEDULE, STOPPED, under
from .test_kills import done, range_of


def told(made, *, decided=(), failed=(), steps=()):
    """``made``, with an HPA that decided and failed then, and whose wanted replicas changed then."""
    vars(made).update(
        hpa_syncs=[SimpleNamespace(at=at) for at in decided],
        hpa_lines=[SimpleNamespace(t=at, words=FAILED) for at in failed] + [SimpleNamespace(t=141, words="else")],
        scalings=[Change(at, 4, 6) for at in steps],
    )
    return made


def test_what_followed_each_fault_is_told(tmp_path):
    """Of a consumer until its partition went on; of a part of the control plane what the HPA did while it was away."""
    receipts = [done("a", 0, 0, 9, 99.9), done("b", 0, 0, 9, 108.0), done("a", 0, 10, 19, 119.9), done("b", 0, 20, 29, 131.0)]
    scheduler = replace(AWAY, t=141.0, until=145.0, component="kube-scheduler")
    exporter = replace(AWAY, t=149.0, until=None, component="lag-exporter")
    made = under(tmp_path, receipts, [range_of(0, 0, 9)], faults=(KILLED, STOPPED, AWAY, scheduler, exporter))
    told(made, decided=(139.5, 143.0, 144.0, 160.0), failed=(141.0, 142.0), steps=(140.0, 144.5))
    assert followed(made) == [
        Followed(CONSUMER, "sigkill", pytest.approx(8.0)),
        Followed(CONSUMER, "sigstop", pytest.approx(11.0)),
        Followed("keda-operator", "sigkill", 3.5, alone=False, due=pytest.approx(2 / 15), decided=0, failed=2, steps=0),
        Followed("kube-scheduler", "sigkill", 16.0, alone=False, due=pytest.approx(4 / 15), decided=2, failed=1, steps=1),
        Followed("lag-exporter", "sigkill", 16.0, alone=True),
    ]


def test_what_is_not_back_is_away(tmp_path):
    """The exporter's container was killed again, so the kubelet let it wait for 20 s: the operator was not away alone."""
    exporter = Fault(125.0, "sigkill", "x", component="lag-exporter", injection=PLANNED[0])
    for back, alone in ((145.0, False), (139.0, True)):
        made = told(under(tmp_path, [], faults=(exporter, AWAY)))
        readiness = ((100.0, True), (126.0, False), (back, True))
        vars(made)["pods_of"] = lambda _, seen=readiness: {"x": SimpleNamespace(readiness=seen)}
        assert [one.alone for one in followed(made)][1] is alone


def test_a_partition_stands_still_while_a_message_waits(tmp_path):
    """From when it was produced, where that was after the fault: a partition without a message has nothing to do."""
    made = told(under(tmp_path, [done("a", 0, 0, 9, 99.9), done("b", 0, 10, 19, 131.0)], faults=(KILLED,)))
    vars(made)["event_parts"] = lambda *_: iter([(np.array([0, 0]), np.array([0, 10]), np.array([90, 128]) * 10**9)])
    assert followed(made) == [Followed(CONSUMER, "sigkill", pytest.approx(3.0))]


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
    receipts = [done("a", 0, 0, 9, 99.9), done("b", 0, 0, 9, 108.0)]
    made = told(under(tmp_path / "one", receipts, [range_of(0, 0, 9)], faults=(KILLED, AWAY)), decided=(139.0, 141.0, 143.0))
    blank = told(record(tmp_path / "two", inputs={"faults": SCHEDULE}, faults=(AWAY,)), decided=(100.0, 150.0))
    found = tally([made, blank, record(tmp_path / "three")])
    assert (found["trials"], found["untold"], found["injections"], found["omitted"]) == (2, 1, 3, 3)
    assert (found["copies"], found["lost"], found["unexplained"]) == (10, 0, 0)
    killed_one, operator = found["struck"]
    own = {"component": CONSUMER, "kind": "sigkill", "injections": 1, WORST: 8.0, "copies": 10}
    assert killed_one == dict.fromkeys(ROW, 0) | own
    assert (operator["injections"], operator[WORST], operator["alone"], operator["decided"]) == (2, 50.0, 2, 1)
    assert operator["due"] == pytest.approx(4 / 15, abs=0.001)
    assert together([found, found])["struck"][1] == operator | {"injections": 4, "alone": 4, "decided": 2, "due": 0.532}
