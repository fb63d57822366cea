"""What a kill left behind, on receipts of which every one is known."""

import json
import math

import pandas as pd
import pytest

from lab.measure.commits import commits
from lab.measure.kills import Loss, buried_again, consumer_kill, explained
from lab.record.trial import Fault

from . import whole
from .built import assigned, given_up, receipt, record, report, sample

KILL = (Fault(100.0, "sigkill", "a"),)


def done(pod, partition, first, last, end):
    """A receipt for first..last that ended at ``end``."""
    return receipt(pod, end - 0.1, end, last - first + 1, partition) | {"first": first, "last": last, "checksum": 0}


def doubled(folder, receipts, *ranges, **more):
    """A record of these receipts, whose ledger says that the messages of ``ranges`` were processed more than once."""
    made = record(folder, receipts=receipts, **more)
    ledger = whole.reconciliation(doubled=ranges, doubled_messages=sum(one["count"] for one in ranges))
    (folder / "reconciliation.json").write_text(json.dumps(ledger))
    return made


def committed(t, offset, partition=0):
    """A sample of what the group had committed."""
    return sample(t, "kafka_consumergroup_current_offset", offset, partition=str(partition))


def shot(folder, ranges):
    """A record in which a, which owned partitions 0 and 1 of three, was killed at 100; b took over at 108 and 109."""
    receipts = [done("a", 0, 0, 9, 99.0), done("a", 0, 10, 19, 99.8), done("a", 1, 0, 9, 99.9)]
    receipts += [done("b", 0, 10, 29, 108.0), done("b", 1, 0, 9, 109.0), done("b", 2, 0, 9, 50.0)]
    receipts += [done("a", 2, 10, 19, 120.0), done("b", 2, 10, 19, 130.0)]  # by the container that was started anew
    receipts += [done("b", 2, 0, 9, 140.0)]  # again, which b itself had done before the kill
    return doubled(folder, receipts, *ranges, faults=KILL, group_events=[assigned(0, "a", 0, 1, 2), given_up(40, "a", 2)])


def range_of(partition, first, last):
    """A doubled range."""
    return {"partition": partition, "first": first, "last": last, "count": last - first + 1, "pods": ["a", "b"]}


def test_what_a_kill_left_is_told_from_what_is_not_its_own(tmp_path):
    """Two ranges are the killed pod's, the older from 0.2 s before; its partitions stood still for 9 s at most."""
    found = consumer_kill(shot(tmp_path, [range_of(0, 10, 19), range_of(1, 0, 9)]))
    assert (found.pod, found.partitions, found.doubled.value, found.unexplained.value) == ("a", (0, 1), 20, 0)
    assert found.oldest_s.value == pytest.approx(0.2)
    assert found.standstill_s.value == pytest.approx(9)


def test_each_partition_is_waited_for_and_no_message_is_too_old(tmp_path):
    """Of three partitions the second is the last to go on. What was done 100 s before the kill is explained all the same."""
    receipts = [done("a", 0, 0, 299, 0.0), done("b", 0, 0, 299, 203.0), done("b", 1, 0, 9, 206.0), done("b", 2, 0, 9, 204.0)]
    made = doubled(tmp_path, receipts, range_of(0, 0, 299), faults=KILL, group_events=[assigned(0, "a", 0, 1, 2)])
    found = consumer_kill(made)
    assert (found.partitions, found.doubled.value, found.unexplained.value) == ((0, 1, 2), 300, 0)
    assert (found.oldest_s.value, found.standstill_s.value) == (100, 106)


def test_what_another_pod_doubled_is_not_the_kills(tmp_path):
    """What another did before and after it, offsets beyond its last receipt, and what the container of its name did later.

    A kill explains one copy of a message, its successor's, and nobody can explain a second one.
    """
    found = consumer_kill(shot(tmp_path, [range_of(2, 0, 9), range_of(0, 15, 24), range_of(2, 10, 19)]))
    assert found.unexplained.value == 10 + 5 + 10
    twice = consumer_kill(shot(tmp_path, [range_of(0, 10, 19) | {"count": 20}]))
    assert (twice.doubled.value, twice.unexplained.value) == (20, 10)


@pytest.mark.parametrize(
    ("own", "other", "copies", "oldest_s"),
    [
        (("bb", 99.0), ("cc", 120.0), 10, 1),
        (("bb", 99.0), ("bb", 120.0), 10, 1),  # by the container that was started anew
        (("bb", 110.0), ("cc", 120.0), 10, 0),  # while it was stopped
        (("bb", 110.5), ("cc", 120.0), 0, 0),
        (("bb", 50.0), ("cc", 120.0), 0, 0),  # until its last fault
        (("bb", 40.0), ("cc", 120.0), 0, 0),
        (("bb", 99.0), ("cc", 100.0), 0, 0),  # not after the fault
        (("bb", 99.0), ("cc", 99.5), 0, 0),
        (("bb", 99.0), ("bb", 105.0), 0, 0),  # by itself
        (("aa", 99.0), ("cc", 120.0), 0, 0),  # of other pods
        (("cc", 99.0), ("aa", 120.0), 0, 0),
    ],
)
def test_a_loss_explains_what_its_pod_did_and_another_did_later(tmp_path, own, other, copies, oldest_s):
    """The pod bb is stopped from 100 to 110, and its last fault was over at 50. Each time is the end of a receipt."""
    receipts = [done(pod, 1, 1010, 1019, end) for pod, end in (own, other)]
    made = doubled(tmp_path, receipts, range_of(1, 1010, 1019))
    assert explained(made, [Loss("bb", 100.0, 50.0, 110.0)], {}) == (copies, oldest_s)


def test_only_receipts_that_cover_the_range_are_looked_at(tmp_path):
    """The older ones are of other partitions, or lie before the range or beyond it."""
    receipts = [done("bb", 0, 1010, 1019, 98.0), done("bb", 2, 1010, 1019, 97.0)]
    receipts += [done("bb", 1, 1000, 1009, 96.0), done("bb", 1, 1020, 1029, 95.0)]
    receipts += [done("bb", 1, 1010, 1019, 99.0), done("cc", 1, 1010, 1019, 120.0)]
    made = doubled(tmp_path, receipts, range_of(1, 1010, 1019))
    assert explained(made, [Loss("bb", 100.0, 50.0, 110.0)], {}) == (10, 1)


@pytest.mark.parametrize(("losses", "copies"), [(1, 10), (2, 15), (9, 15)])
def test_of_each_message_no_more_copies_are_explained_than_there_are_losses_and_copies(tmp_path, losses, copies):
    """Five messages were done three times, five twice, ten once, and five never."""
    receipts = [done("a", 0, 0, 4, 97.0), done("a", 0, 5, 9, 98.0), done("a", 0, 10, 19, 99.0)]
    receipts += [done("b", 0, 10, 19, 108.0), done("c", 0, 10, 14, 109.0)]
    made = doubled(tmp_path, receipts, range_of(0, 0, 24))
    assert explained(made, [Loss("a", 100.0, -math.inf, 100.0)] * losses, {}) == (copies, 3)


@pytest.mark.parametrize(
    ("t", "offset", "unexplained", "oldest_s"),
    [
        (95, 15, 15, 8),
        (95, 0, 0, 10),
        (95, 10, 10, 8),
        (95, 19, 19, 8),
        (95, 20, 20, 0),
        (89, 20, 0, 10),
        (90, 20, 0, 10),
        (91, 20, 10, 8),  # between the two receipts
        (99, 20, 20, 0),
        (99.5, 20, 0, 10),
    ],
)
def test_what_the_group_was_seen_to_have_committed_was_not_in_flight(tmp_path, t, offset, unexplained, oldest_s):
    """Of 20 messages ten were done at 90, ten at 92, and all at 108. A sample before the kill tells which had been committed.

    One that may have been read after the kill tells nothing, nor does what is seen of other partitions.
    """
    told = [assigned(0, "a", 1)]
    receipts = [done("a", 1, 0, 9, 90.0), done("a", 1, 10, 19, 92.0), done("b", 1, 0, 19, 108.0)]
    samples = [committed(95, 30, 0), committed(t, offset, 1), committed(95, 30, 2)]
    made = doubled(tmp_path, receipts, range_of(1, 0, 19), faults=KILL, group_events=told, samples=samples)
    found = consumer_kill(made)
    assert (found.unexplained.value, found.oldest_s.value) == (unexplained, oldest_s)
    assert commits(made)[1].within(0, 10) == 0


def test_what_the_pod_itself_did_twice_is_not_the_kills(tmp_path):
    """No receipt but its own, both from before the kill, covers the messages."""
    own = [done("a", 0, 0, 9, 99.0), done("a", 0, 0, 9, 99.5)]
    found = consumer_kill(doubled(tmp_path, own, range_of(0, 0, 9), faults=KILL, group_events=[assigned(0, "a", 0)]))
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
    kill = {"faults": KILL, "group_events": [assigned(0, "a", 0)]}
    found = consumer_kill(doubled(tmp_path / "edge", receipts, range_of(0, 0, 9) | {"count": 20}, **kill))
    assert (found.unexplained.value, found.oldest_s.value, found.standstill_s.value) == (10, 0, 6)
    still = consumer_kill(doubled(tmp_path / "still", receipts[:2], **kill))
    assert (still.unexplained.value, still.standstill_s.value) == (0, None)


@pytest.mark.parametrize("messages", [9, 11])
def test_more_than_one_kill_and_more_than_is_named_are_no_data(tmp_path, messages):
    """Neither can be told apart."""
    assert "2 faults" in consumer_kill(record(tmp_path / "two", faults=KILL * 2, receipts=[])).doubled.why
    made = shot(tmp_path, [range_of(0, 10, 19)])
    ledger = whole.reconciliation(doubled=[range_of(0, 10, 19)], doubled_messages=messages)
    (tmp_path / "reconciliation.json").write_text(json.dumps(ledger))
    assert "more ranges are doubled than are named" in consumer_kill(made).doubled.why


def test_another_fault_than_a_kill_is_no_data(tmp_path):
    """Only a kill is measured."""
    stopped = record(tmp_path, faults=(Fault(100.0, "sigstop", "a", until=110.0),), receipts=[])
    assert "1 faults" in consumer_kill(stopped).doubled.why


def letters(folder, events, partition, failed):
    """A record of these handovers, in which dead letters about one message of ``partition`` ``failed`` then."""
    made = record(folder, group_events=events)
    ledger = whole.reconciliation(dead_messages=1, buried_again=len(failed) - 1)
    (folder / "reconciliation.json").write_text(json.dumps(ledger))
    vars(made)["dead_letters"] = pd.DataFrame({"partition": partition, "offset": 5, "failed": failed})
    return made


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
        ([119.0], 0),  # no further one
    ],
)
def test_a_further_dead_letter_is_explained_by_who_owned_the_partition(tmp_path, failed, count):
    """A fault of that pod: a is killed at 100 and stopped from 120, and notices at 133 that b owns it since 125."""
    made = letters(tmp_path, [assigned(0, "a", 0), assigned(125, "b", 0), given_up(133, "a", 0, event="lost")], 0, failed)
    assert buried_again(made, [Loss("a", 100.0, -math.inf, 100.0), Loss("a", 120.0, 100.0, 133.0)]) == count
    assert buried_again(made, [Loss("a", 120.0, 0.0, 133.0)] * 9) <= len(failed) - 1
    assert buried_again(made, [Loss("c", 120.0, 0.0, 133.0)]) == 0  # it never owned the partition


def test_what_a_container_owned_is_not_its_successors(tmp_path):
    """The pod a is killed at 100 and 200, and b owns partition 0 from 125 on: both letters are b's."""
    events = [assigned(0, "a", 0), report(101, "a", "started"), assigned(125, "b", 0), assigned(126, "a", 1)]
    assert buried_again(letters(tmp_path, events, 0, [150.0, 250.0]), [Loss("a", 200.0, 100.0, 200.0)]) == 0


@pytest.mark.parametrize(
    ("t", "after", "until", "partition", "failed", "count"),
    [
        (100.0, -math.inf, 100.0, 0, [100.0, 108.0], 1),  # at the kill
        (100.0, -math.inf, 100.0, 0, [99.0, 100.0], 0),
        (120.0, 100.0, 133.0, 0, [100.0, 131.0], 0),  # at the fault before
        (120.0, 100.0, 133.0, 0, [99.0, 131.0], 0),
        (126.0, 100.0, 133.0, 0, [119.0, 126.5], 1),
        (126.0, 100.0, 133.0, 0, [119.0, 126.0], 0),  # b's was not after the fault
        (126.0, 100.0, 133.0, 0, [119.0, 125.5], 0),
        (120.0, 100.0, 140.0, 1, [119.0, 135.0], 0),  # nobody owned it when it failed again
        (134.0, 133.0, 140.0, 0, [135.0, 138.0], 1),  # b's came first
    ],
)
def test_a_dead_letter_is_explained_at_the_edges_of_its_loss(tmp_path, t, after, until, partition, failed, count):
    """The member a owns both partitions until 133, and 0 again from 137 on; b owns 0 from 125 on."""
    events = [assigned(0, "a", 0, 1), assigned(125, "b", 0), given_up(133, "a", 0, 1, event="lost"), assigned(137, "a", 0)]
    assert buried_again(letters(tmp_path, events, partition, failed), [Loss("a", t, after, until)]) == count
