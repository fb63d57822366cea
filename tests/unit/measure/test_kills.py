"""What a kill left behind, on receipts of which every one is known."""

import json
import math

import pandas as pd
import pytest

from lab.measure.kills import Loss, buried_again, consumer_kill
from lab.record.trial import Fault

from . import whole
from .built import assigned, given_up, receipt, record, report, sample


def done(pod, partition, first, last, end):
    """A receipt for first..last that ended at ``end``."""
    return receipt(pod, end - 0.1, end, last - first + 1, partition) | {"first": first, "last": last, "checksum": 0}


def shot(folder, doubled):
    """A record in which a, which owned partitions 0 and 1 of three, was killed at 100; b took over at 108 and 109."""
    receipts = [done("a", 0, 0, 9, 99.0), done("a", 0, 10, 19, 99.8), done("a", 1, 0, 9, 99.9)]
    receipts += [done("b", 0, 10, 29, 108.0), done("b", 1, 0, 9, 109.0), done("b", 2, 0, 9, 50.0)]
    receipts += [done("a", 2, 10, 19, 120.0), done("b", 2, 10, 19, 130.0)]  # by the container that was started anew
    receipts += [done("b", 2, 0, 9, 140.0)]  # again, which b itself had done before the kill
    events = [assigned(0, "a", 0, 1, 2), given_up(40, "a", 2)]
    made = record(folder, faults=(Fault(100.0, "sigkill", "a"),), group_events=events, receipts=receipts)
    total = sum(item["count"] for item in doubled)
    (folder / "reconciliation.json").write_text(json.dumps(whole.reconciliation(doubled=doubled, doubled_messages=total)))
    return made


def range_of(partition, first, last):
    """A doubled range."""
    return {"partition": partition, "first": first, "last": last, "count": last - first + 1, "pods": ["a", "b"]}


def test_what_a_kill_left_is_told_from_what_is_not_its_own(tmp_path):
    """Two ranges are the killed pod's, the older from 0.2 s before; its partitions stood still for 9 s at most."""
    found = consumer_kill(shot(tmp_path, [range_of(0, 10, 19), range_of(1, 0, 9)]))
    assert (found.pod, found.partitions, found.doubled.value, found.unexplained.value) == ("a", (0, 1), 20, 0)
    assert found.oldest_s.value == pytest.approx(0.2)
    assert found.standstill_s.value == pytest.approx(9)


def test_what_another_pod_doubled_is_not_the_kills(tmp_path):
    """What another did before and after it, offsets beyond its last receipt, and what the container of its name did later.

    A kill explains one copy of a message, its successor's, and nobody can explain a second one.
    """
    found = consumer_kill(shot(tmp_path, [range_of(2, 0, 9), range_of(0, 15, 24), range_of(2, 10, 19)]))
    assert found.unexplained.value == 10 + 5 + 10
    twice = consumer_kill(shot(tmp_path, [range_of(0, 10, 19) | {"count": 20}]))
    assert (twice.doubled.value, twice.unexplained.value) == (20, 10)


@pytest.mark.parametrize(
    ("t", "lag", "late_ms", "unexplained"), [(95, 5, 0, 15), (95, 25, 0, 0), (89, 0, 0, 0), (99.5, 0, 0, 0), (95, 0, 45_000, 0)]
)
def test_what_the_group_was_seen_to_have_committed_was_not_in_flight(tmp_path, t, lag, late_ms, unexplained):
    """Of 20 messages that were done at 90 and again at 108 a sample between them and the kill tells which had been committed.

    One that may have been read after the kill tells nothing, nor one of messages that may not have been in the log yet.
    """
    told = [assigned(0, "a", 0), report(150, "producer", "produced", late_max_ms=late_ms)]
    receipts = [done("a", 0, 0, 19, 90.0), done("b", 0, 0, 19, 108.0)]
    samples = [sample(t, "kafka_consumergroup_lag", lag, partition="0")]
    made = record(tmp_path, faults=(Fault(100.0, "sigkill", "a"),), group_events=told, receipts=receipts, samples=samples)
    (tmp_path / "ledger" / "events").mkdir(parents=True)
    log = pd.DataFrame({"partition": 0, "offset": range(20), "ts": 50 * 10**9})
    log.to_parquet(tmp_path / "ledger" / "events" / "0.parquet")
    ledger = whole.reconciliation(doubled=[range_of(0, 0, 19)], doubled_messages=20)
    (tmp_path / "reconciliation.json").write_text(json.dumps(ledger))
    assert consumer_kill(made).unexplained.value == unexplained


def test_what_the_pod_itself_did_twice_is_not_the_kills(tmp_path):
    """No receipt but its own, both from before the kill, covers the messages."""
    own = [done("a", 0, 0, 9, 99.0), done("a", 0, 0, 9, 99.5)]
    made = record(tmp_path, faults=(Fault(100.0, "sigkill", "a"),), group_events=[assigned(0, "a", 0)], receipts=own)
    ledger = whole.reconciliation(doubled=[range_of(0, 0, 9)], doubled_messages=10)
    (tmp_path / "reconciliation.json").write_text(json.dumps(ledger))
    found = consumer_kill(made)
    assert (found.unexplained.value, found.oldest_s.value) == (10, 0)
    assert "0 faults" in consumer_kill(record(tmp_path, receipts=own)).unexplained.why


def test_a_copy_is_explained_at_the_edges_of_its_range_and_of_the_kill(tmp_path):
    """The first and the last message of a receipt are in it. One that ended at the kill was before it.

    What began at the kill was under way: a partition stands still until the first receipt that begins later has ended.
    """
    found = consumer_kill(shot(tmp_path, [range_of(0, 10, 10), range_of(0, 19, 19)]))
    assert (found.doubled.value, found.unexplained.value, found.oldest_s.value) == (2, 0, pytest.approx(0.2))
    spans = {"a": [(99.0, 100.0)], "b": [(100.0, 101.0), (105.0, 106.0)]}
    receipts = [receipt(pod, *span, 10) | {"first": 0, "last": 9, "checksum": 0} for pod, own in spans.items() for span in own]
    kill = {"faults": (Fault(100.0, "sigkill", "a"),), "group_events": [assigned(0, "a", 0)]}
    made = record(tmp_path / "edge", receipts=receipts, **kill)
    ledger = whole.reconciliation(doubled=[range_of(0, 0, 9) | {"count": 20}], doubled_messages=20)
    (made.folder / "reconciliation.json").write_text(json.dumps(ledger))
    found = consumer_kill(made)
    assert (found.unexplained.value, found.oldest_s.value, found.standstill_s.value) == (10, 0, 6)
    still = record(tmp_path / "still", receipts=receipts[:2], **kill)
    (still.folder / "reconciliation.json").write_text(json.dumps(whole.reconciliation()))
    assert (consumer_kill(still).unexplained.value, consumer_kill(still).standstill_s.value) == (0, None)


def test_more_than_one_kill_and_more_than_is_named_are_no_data(tmp_path):
    """Neither can be told apart."""
    one = Fault(100.0, "sigkill", "a")
    assert "2 faults" in consumer_kill(record(tmp_path / "two", faults=(one, one), receipts=[])).doubled.why
    made = shot(tmp_path, [range_of(0, 10, 19)])
    ledger = whole.reconciliation(doubled=[range_of(0, 10, 19)], doubled_messages=11)
    (tmp_path / "reconciliation.json").write_text(json.dumps(ledger))
    assert "more ranges are doubled than are named" in consumer_kill(made).doubled.why


@pytest.mark.parametrize(
    ("failed", "count"),
    [
        ([99.0, 108.0], 1),  # a was killed before it had committed that
        ([119.0, 131.0], 1),
        ([99.0, 119.0, 131.0], 2),
        ([99.0, 99.5], 0),
        ([134.0, 150.0], 0),  # it had noticed what it has lost
        ([101.0, 108.0], 0),  # after the kill and before the stop
        ([119.0, 122.0], 0),  # both by a
    ],
)
def test_a_further_dead_letter_is_explained_by_who_owned_the_partition(tmp_path, failed, count):
    """A fault of that pod: a is killed at 100 and stopped from 120, and notices at 133 that b owns it since 125."""
    made = record(tmp_path, group_events=[assigned(0, "a", 0), assigned(125, "b", 0), given_up(133, "a", 0, event="lost")])
    ledger = whole.reconciliation(dead_messages=1, buried_again=len(failed) - 1)
    (tmp_path / "reconciliation.json").write_text(json.dumps(ledger))
    vars(made)["dead_letters"] = pd.DataFrame({"partition": 0, "offset": 5, "failed": failed})
    assert buried_again(made, [Loss("a", 100.0, -math.inf, 100.0), Loss("a", 120.0, 100.0, 133.0)]) == count
    assert buried_again(made, [Loss("a", 120.0, 0.0, 133.0)] * 9) <= len(failed) - 1
    assert buried_again(made, [Loss("c", 120.0, 0.0, 133.0)]) == 0  # it never owned the partition
