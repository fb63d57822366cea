"""The checker against the definition of its words, and on the cases that the words are for."""

from __future__ import annotations

import dataclasses
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from lab import validation
from lab.errors import LabFault
from lab.record.ledger import reconcile as checker
from lab.record.ledger import session as ledger_session
from lab.record.ledger.reconcile import reconcile
from lab.record.reconciliation import Range, Reconciliation

from .conftest import Rows, frame, reconciled
from .oracle import Partition, Receipt, check

PODS = ("a", "b", "c")
CRC = st.integers(0, 2**32 - 1)


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    """A log cut into batches, most processed once, some not or twice; then, rarely, receipts about anything at all."""
    size = draw(st.integers(0, 20))
    messages = draw(st.lists(st.tuples(st.integers(0, 60_000), CRC), min_size=size, max_size=size))
    cuts = sorted({0, size, *draw(st.lists(st.integers(0, size), max_size=6))})
    ranges = []
    for first, after in pairwise(cuts):
        ranges += [(first, after - 1)] * draw(st.sampled_from((1, 1, 1, 1, 0, 2)))
    anything = st.tuples(st.integers(0, size + 4), st.integers(0, 8)).map(lambda pair: (pair[0], sum(pair)))
    ranges += draw(st.lists(anything, max_size=draw(st.sampled_from((0, 0, 0, 3)))))
    off = st.sampled_from((0, 0, 0, 0, 0, 0, 1, -1))
    letters = draw(st.lists(st.integers(0, size + 2), max_size=draw(st.sampled_from((0, 0, 4)))))
    receipts = []
    for first, last in ranges:
        pod, wrong_count, wrong_sum = draw(st.sampled_from(PODS)), draw(off), draw(off)
        crcs = [crc for _, crc in messages[first : last + 1]]
        receipts.append(Receipt(pod, first, last, last - first + 1 + wrong_count, sum(crcs) + wrong_sum))
    return Partition(messages, receipts, letters)


def tables(cases: dict[int, Partition]) -> tuple[Rows, Rows, Rows]:
    """The events, receipts and dead letters of ``cases``."""
    events, receipts, letters = [], [], []
    for number, case in cases.items():
        logged = reversed(list(enumerate(case.messages)))
        events += [(number, offset, 7, seq, 0, crc) for offset, (seq, crc) in logged]
        receipts += [(one.pod, number, one.first, one.last, one.count, one.checksum, 1.0, 2.0) for one in case.receipts]
        letters += [(number, offset, "events", 4, "x", 1.0, 2.0, 0, 0, 0, 0, at) for at, offset in enumerate(case.letters)]
    return events, receipts, letters


def log(count: int) -> list[tuple[int, int]]:
    """Messages 0 to ``count``, each with its seq as its crc."""
    return [(seq, seq) for seq in range(count)]


def batch(pod: str, first: int, last: int, **other: Any) -> Receipt:
    """The right receipt for first..last of :func:`log`, but for ``other``."""
    return dataclasses.replace(Receipt(pod, first, last, last - first + 1, sum(range(first, last + 1))), **other)


ANOMALIES = [
    ("lost", [batch("a", 0, 9), batch("b", 15, 29)], Range(3, 10, 14, 5, ("a", "b"))),
    ("unseen", [batch("a", 0, 9)], Range(3, 10, 29, 20, ("a",))),
    ("doubled", [batch("a", 0, 19), batch("b", 10, 29)], Range(3, 10, 19, 10, ("a", "b"))),
    ("phantom", [batch("a", 0, 29), batch("b", 30, 31)], Range(3, 30, 31, 2, ("b",))),
    ("mismatched", [batch("a", 0, 9, checksum=44), batch("b", 10, 29)], Range(3, 0, 9, 10, ("a",))),
    ("mismatched", [batch("a", 0, 9), batch("b", 10, 29, count=19)], Range(3, 10, 29, 19, ("b",))),
]


@pytest.mark.parametrize(("name", "receipts", "named"), [("exact", [batch("a", 0, 9), batch("b", 10, 29)], None), *ANOMALIES])
def test_one_anomaly_is_named_alone(name: str, receipts: list[Receipt], named: Range | None) -> None:
    """Each anomaly by itself: its one range is named with its pods, no other is, and only a record without any is exact."""
    verdict = reconciled(*tables({3: Partition(log(30), receipts)}))
    found = {kind: getattr(verdict, kind) for kind in ("lost", "unseen", "doubled", "phantom", "mismatched")}
    assert found == {kind: (named,) if kind == name else () for kind in found}
    assert verdict.exact == (name == "exact")


EDGES: dict[str, dict[int, Partition]] = {
    "nothing at all": {},
    "the last that is seen has an odd offset": {0: Partition(log(10), [batch("a", 0, 7), batch("b", 9, 9)])},
    "receipts that are in no order": {
        0: Partition(log(30), [batch("b", 15, 29), batch("a", 0, 9), batch("c", 10, 14, checksum=1)])
    },
    "letters at odd offsets, of the log's end, and again": {
        0: Partition(log(30), [batch("a", 0, 9), batch("b", 15, 29)], [11, 12, 30, 30])
    },
    "two seqs in five messages, none processed": {0: Partition([(5, 1), (5, 1), (5, 1), (7, 1), (7, 1)], [])},
    "a partition that the log does not have": {0: Partition(log(3), []), 1: Partition([], [batch("a", 0, 1)], [4])},
    "a partition without a receipt before one that has some": {
        0: Partition(log(3), []),
        1: Partition(log(9), [batch("a", 0, 8)]),
    },
    "pods that adjoin a gap, and those next to them": {
        3: Partition(log(30), [batch("c", 0, 8), batch("a", 9, 9), batch("b", 14, 14), batch("d", 15, 29)])
    },
    "three copies, and a copy of one message beside other pods": {
        0: Partition(
            log(30), [batch("a", 0, 19), batch("b", 10, 19), batch("e", 10, 19), batch("c", 20, 29), batch("f", 25, 25)]
        )
    },
    "phantoms at the log's end and behind it": {
        0: Partition(log(30), [batch("a", 0, 29), batch("b", 30, 30), batch("c", 33, 34), batch("d", 33, 34)], [36])
    },
    "the same gap in three partitions, with a letter in the last": {
        1: Partition(log(10), [batch("a", 0, 4), batch("a", 6, 9)]),
        2: Partition(log(10), [batch("b", 0, 4), batch("b", 6, 11)], [10]),
        4: Partition(log(10), [batch("c", 0, 4), batch("c", 6, 9)], [5, 6]),
    },
    "sums and counts too large and too small": {
        0: Partition(
            log(30),
            [
                batch("a", 0, 0),
                batch("a", 1, 4, checksum=11),
                batch("b", 5, 9, checksum=34),
                batch("a", 10, 14, count=6),
                batch("b", 15, 19, count=4),
                batch("c", 20, 29, count=9, checksum=1),
            ],
        )
    },
}


@pytest.mark.parametrize("edge", EDGES)
def test_an_edge_is_where_a_count_by_offset_has_it(edge: str) -> None:
    """Where a comparison, a sum or a neighbour is decided by one offset more or less."""
    assert reconciled(*tables(EDGES[edge])) == check(EDGES[edge])


def test_sparks_workers_find_the_same(session: SparkSession, tmp_path: Path) -> None:
    """Every anomaly in a partition of its own, with events in two files, each of a task: as a count by offset finds it."""
    cases = {number: Partition(log(30), receipts, [5, 12]) for number, (_, receipts, _) in enumerate(ANOMALIES)}
    events, receipts, letters = tables(cases)
    files = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    for number, file in enumerate(files):
        frame("events", events[number::2]).to_parquet(file)
    assert reconcile(session, files, frame("receipts", receipts), frame("dead_letters", letters)) == check(cases)


@pytest.mark.parametrize(
    ("letters", "found", "named"),
    [
        ([10, 11, 12, 13, 14], {"dead_messages": 5}, {"dead": Range(3, 10, 14, 5, ("a", "b"))}),
        ([10, 11, 13, 14], {"dead_messages": 4, "lost_messages": 1}, {"lost": Range(3, 12, 12, 1, ())}),
        ([*range(10, 15), 12, 12], {"dead_messages": 5, "buried_again": 2}, {}),
        ([*range(10, 15), 9], {"dead_messages": 5, "both_messages": 1}, {"both": Range(3, 9, 9, 1, ("a",))}),
        ([*range(10, 15), 40], {"dead_messages": 5, "stray_letters": 1}, {}),
    ],
)
def test_dead_letters_are_accounted_for(letters: list[int], found: dict[str, int], named: dict[str, Range]) -> None:
    """Messages 10 to 14 have no receipt: those with a letter are dead, the others lost; a letter too many is told."""
    case = Partition(log(30), [batch("a", 0, 9), batch("b", 15, 29)], letters)
    verdict = reconciled(*tables({3: case}))
    told = {"dead_messages", "lost_messages", "unseen_messages", "both_messages", "buried_again", "stray_letters"}
    assert {name: getattr(verdict, name) for name in told if getattr(verdict, name)} == found
    for name, one in named.items():
        assert getattr(verdict, name) == (one,)
    assert verdict.exact == (found == {"dead_messages": 5})


def test_a_record_of_before_dead_letters_reads_as_without() -> None:
    """The fields that came later are 0 where they are not written."""
    old: dict[str, Any] = dict.fromkeys(("produced", "processed", "receipts", "holes", "resent", "phantom_messages"), 0)
    old |= dict.fromkeys(("lost_messages", "unseen_messages", "doubled_messages", "mismatched_receipts"), 0)
    old |= {name: [] for name in ("lost", "unseen", "doubled", "phantom", "mismatched")}
    verdict = validation.read(Reconciliation, old, "a record")
    assert verdict.exact
    assert (verdict.dead_messages, verdict.dead) == (0, ())


def test_a_hole_in_the_log_spoils_exactness() -> None:
    """An offset that the log lacks is counted, and an otherwise faultless record is not exact."""
    events = [(0, offset, 7, offset, 0, 1) for offset in range(10) if offset != 4]
    verdict = reconciled(events, [("a", 0, 0, 9, 10, 9, 1.0, 2.0)])
    assert (verdict.holes, verdict.mismatched_receipts, verdict.lost_messages) == (1, 0, 0)
    assert not verdict.exact


def test_a_receipt_that_ends_in_a_hole_is_mismatched() -> None:
    """Also where its checksum is what the sums would make of an end that is not there."""
    events = [(0, offset, 7, offset, 0, 1) for offset in (1, 2, 3, 5, 6)]
    said = {("a", 0, 3): 3, ("b", 3, 4): -3, ("a", 4, 4): -1, ("c", 4, 6): 2, ("d", 5, 6): 2}
    rows = [(pod, 0, first, last, last - first + 1, crc, 1.0, 2.0) for (pod, first, last), crc in said.items()]
    verdict = reconciled(events, rows)
    assert [(one.pods[0], one.first, one.last) for one in verdict.mismatched] == list(said)[:-1]
    assert verdict.holes == 2


def test_totals_count_what_is_too_much_to_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """With more anomalies than are named, the first are named and the totals are of all."""
    monkeypatch.setattr(checker, "NAMED", 3)
    receipts = [batch("a", first, first, checksum=-1) for first in range(0, 20, 2)]
    verdict = reconciled(*tables({0: Partition(log(20), receipts)}))
    assert (verdict.lost_messages, verdict.unseen_messages, verdict.mismatched_receipts) == (9, 1, 10)
    assert [each.first for each in verdict.lost] == [1, 3, 5]
    assert [each.first for each in verdict.mismatched] == [0, 2, 4]


@pytest.mark.parametrize(
    "receipt",
    [
        ("a", 0, 5, 4, 0, 0, 1.0, 2.0),
        ("a", 0, -1, 4, 6, 0, 1.0, 2.0),
        ("a", 0, 0, 4, 5, 0, 2.0, 1.0),
        (None, 0, 0, 4, 5, 0, 1.0, 2.0),
        ("a", 0, 5, 4, 0, 0, 2.0, 1.0),
        (None, 0, -1, 4, 6, 0, 1.0, 2.0),
    ],
)
def test_a_receipt_that_is_none_is_a_fault_of_the_lab(receipt: tuple[object, ...]) -> None:
    """Ends the wrong way round or a missing field is no finding about the consumers: the ledger refuses it, also with both."""
    with pytest.raises(LabFault, match="1 of 1 receipts"):
        reconciled([], [receipt])


def test_a_receipt_of_no_time_is_one() -> None:
    """A clock may not have gone on between its ends."""
    assert reconciled([], [("a", 0, 0, 0, 1, 0, 2.0, 2.0)]).receipts == 1


def test_ctrl_c_stays_pythons(session):
    """PySpark's own handler fails once Spark is stopped, and a teardown that Ctrl-C meets would end there."""
    assert session.range(3).count() == 3
    assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)  # the latter in a shell's background


def test_a_local_session_asks_for_its_own_secret(session):
    """Its ports are on loopback, which every user of the machine may connect to; what connects gives it work."""
    guard = session.sparkContext._jvm.org.apache.spark.SparkEnv.get().securityManager()
    assert guard.isAuthenticationEnabled()
    assert guard.getSecretKey()


def test_a_fault_names_the_jvms_reason():
    """Py4J's first line names a call and no cause; another error has one line."""
    py4j = "An error occurred while calling None.org.Context.\n: org.SparkException: 768 MiB/worker\n\tat org.Context"
    assert ledger_session.reason(RuntimeError(py4j)) == "org.SparkException: 768 MiB/worker"
    assert ledger_session.reason(RuntimeError("no Java")) == "no Java"
