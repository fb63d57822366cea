"""Dead letters against what was injected, stalls and what lay beside them, and what a kill left: on records made by hand."""

import json

import pandas as pd
import pytest

from lab.inputs.failures import Failures
from lab.measure.delivery import delivery
from lab.measure.killed import killed
from lab.record.store import Record
from lab.record.trial import Fault
from tests.scenarios.zero_loss.measure.deadletters import dead_letters
from tests.scenarios.zero_loss.measure.retries import partition_rate, retries, stalls
from tests.unit.measure import whole
from tests.unit.measure.built import assigned, given_up, receipt, record
from tests.unit.measure.conftest import report

MESSAGES = 2_000
FAILURES = Failures(seed=3, fail_rate=0.02, poison_rate=0.01)
WORKLOAD = {"fail_rate": 0.02, "poison_rate": 0.01, "retry_ms": "1000,2000,4000"}
POISON = [(seq % 4, seq // 4) for seq in range(MESSAGES) if FAILURES.never(0, 0, seq)]


def letters(places, **other):
    """Dead letters about messages at ``places``, with right reasons unless told otherwise."""
    rows = [
        {
            "partition": partition,
            "offset": offset,
            "topic": "events",
            "attempts": 4,
            "error": "it failed",
            "first_failure": 1.0,
            "failed": 8.0,
            "seq": offset * 4 + partition,
        }
        | other
        for partition, offset in places
    ]
    return pd.DataFrame(rows)


def settled(folder, table, **ledger):
    """A record of 2,000 messages, seq by seq on four partitions, with these dead letters and this verdict of the ledger."""
    events = [
        report(1, "producer", "produced", sent=MESSAGES, acked=MESSAGES, unknown=0, failed=0),
        report(2, "a", "recovered"),
    ]
    made = record(folder, inputs={"workload": WORKLOAD, "seed": 3}, group_events=events)
    (folder / "ledger" / "events").mkdir(parents=True)
    (folder / "inputs").mkdir()
    (folder / "inputs" / "configmap-trial.yaml").write_text("data: {TOPIC: events}")
    rows = {"partition": [seq % 4 for seq in range(MESSAGES)], "offset": [seq // 4 for seq in range(MESSAGES)]}
    pd.DataFrame(rows | {"seq": range(MESSAGES)}).to_parquet(folder / "ledger" / "events" / "part-0.parquet")
    verdict = {"produced": MESSAGES, "processed": MESSAGES - len(POISON), "dead_messages": len(POISON)}
    (folder / "reconciliation.json").write_text(json.dumps(whole.reconciliation(**verdict) | ledger))
    if table is not None:
        table.to_parquet(folder / "dead_letters.parquet")
    return made


def test_dead_exactly_as_injected(tmp_path):
    """Every message that was to fail for ever has its letter and no other has one: nothing is named."""
    found = dead_letters(settled(tmp_path, letters(POISON)))
    assert (found.injected.value, found.dead.value, found.unaccounted.value) == (len(POISON), len(POISON), 0)
    assert (found.without_letter.value, found.surplus.value, found.unreasoned.value, found.named) == (0, 0, 0, ())
    assert found.transient.value == sum(FAILURES.transient(seq) > 0 for seq in range(MESSAGES))
    assert found.recovered.value == 1


def test_a_letter_names_the_topic_of_its_partition(tmp_path):
    """Of two topics with two partitions each: numbers 2 and 3 are on the second, and a letter that names the first is wrong."""
    made = settled(tmp_path, letters(POISON))
    told = "data: {TOPIC: events, TOPIC_2: events-2, TOPICS: '2', TOPIC_PARTITIONS: '2'}"
    (tmp_path / "inputs" / "configmap-trial.yaml").write_text(told)
    on_second = [partition > 1 for partition, _ in POISON]
    assert dead_letters(made).unreasoned.value == sum(on_second) > 0
    table = letters(POISON).assign(topic=["events-2" if second else "events" for second in on_second])
    table.to_parquet(tmp_path / "dead_letters.parquet")
    assert dead_letters(Record(tmp_path)).unreasoned.value == 0


def test_a_difference_is_counted_and_named(tmp_path):
    """One letter is missing and one is about a message that was not to fail."""
    other = next((seq % 4, seq // 4) for seq in range(MESSAGES) if not FAILURES.fails(0, 0, seq, 1))
    found = dead_letters(settled(tmp_path, letters([*POISON[1:], other]), dead_messages=len(POISON) - 1))
    assert (found.without_letter.value, found.surplus.value, found.unaccounted.value) == (1, 1, 1)
    assert found.named == (
        f"injected, but no dead letter: partition {POISON[0][0]}, offset {POISON[0][1]}",
        f"a dead letter, but not injected: partition {other[0]}, offset {other[1]}",
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempts": 3},
        {"error": ""},
        {"topic": ""},
        {"topic": "events-of-others"},
        {"first_failure": 9.0},
        {"seq": MESSAGES + 1},
    ],
)
def test_a_wrong_reason_is_counted(tmp_path, wrong):
    """Each letter whose headers, or whose message, are not what they should be."""
    assert dead_letters(settled(tmp_path, letters(POISON, **wrong))).unreasoned.value == len(POISON)


def test_without_the_trials_topic_there_is_no_data(tmp_path):
    """No letter's source can be told right or wrong."""
    made = settled(tmp_path, letters(POISON))
    (tmp_path / "inputs" / "configmap-trial.yaml").unlink()
    assert "no configmap-trial" in dead_letters(made).unreasoned.why


def test_a_record_of_before_dead_letters_is_no_data_and_still_judged(tmp_path):
    """It has no letters to compare; its delivery reads as without any."""
    made = settled(tmp_path, None)
    verdict = json.loads((tmp_path / "reconciliation.json").read_text())
    for name in ("dead_messages", "both_messages", "buried_again", "stray_letters", "both"):
        verdict.pop(name, None)
    (tmp_path / "reconciliation.json").write_text(json.dumps(verdict))
    again = Record(made.folder)
    assert "no dead_letters" in dead_letters(again).dead.why
    assert (delivery(again).dead.value, delivery(again).both.value) == (0, 0)


def failed(t, pod, partition, attempts=1):
    """A report of an attempt that failed."""
    return report(t, pod, "failed", partition=partition, offset=1, attempts=attempts)


def over(t, pod, partition, event="recovered"):
    """A report that a head is through."""
    return report(t, pod, event, partition=partition, offset=1, attempts=2)


def test_a_stall_is_from_the_first_failure_to_the_end_where_it_began(tmp_path):
    """One recovered after two failures, one dead; one taken away and one of a container that died have no end here."""
    events = [
        failed(10, "a", 0),
        failed(11, "a", 0, 2),
        over(13, "a", 0),
        failed(20, "a", 1),
        over(27, "a", 1, "dead_lettered"),
    ]
    events += [failed(30, "a", 2), given_up(31, "a", 2), over(32, "a", 2), failed(40, "b", 3), report(41, "b", "started")]
    events += [over(42, "b", 3)]
    found = stalls(record(tmp_path, group_events=events))
    assert [(stall.pod, stall.partition, stall.start, stall.end) for stall in found] == [("a", 0, 10, 13), ("a", 1, 20, 27)]


def retried(folder, during):
    """Forty stalls of 1 s on partition 0 of a pod that does 100/s on partition 1, and ``during``/s while one lasts."""
    events, receipts = [assigned(0, "a", 0, 1)], []
    for number in range(40):
        at = 10 + 3 * number
        events += [failed(at, "a", 0), over(at + 1, "a", 0)]
        receipts += [receipt("a", at - 1, at, 100, 1), receipt("a", at, at + 1, during, 1), receipt("a", at - 1, at, 50, 0)]
    return record(folder, group_events=events, receipts=receipts)


@pytest.mark.parametrize("during", [100, 40, 120])
def test_others_are_compared_with_just_before(tmp_path, during):
    """What the pod's other partition does during a stall, over the second before it."""
    found = retries(retried(tmp_path, during))
    assert found.others.value == pytest.approx(during / 100)
    assert (found.stalls.value, found.compared.value, found.median_s.value, found.recovered.value) == (40, 40, 1, 40)


def test_a_pod_with_one_partition_says_nothing_of_others(tmp_path):
    """Nor does one whose partitions changed meanwhile: no data."""
    events = [assigned(0, "a", 0)]
    for number in range(40):
        events += [failed(10 + 3 * number, "a", 0), over(11 + 3 * number, "a", 0)]
    receipts = [receipt("b", 0, 200, 1000, 1)]
    found = retries(record(tmp_path, group_events=events, receipts=receipts))
    assert "0 stalls of pods that held other partitions" in found.others.why


def test_a_partition_gives_no_more_than_its_retries_leave():
    """10 ms and no failure: 100/s; 1 % that wait 1, 3 or 7 s and 0.1 % that wait 7 take it down to 19/s."""
    assert partition_rate(0.01, 0, 0, [1, 2, 4]) == pytest.approx(100)
    assert partition_rate(0.01, 0.01, 0.001, [1, 2, 4]) == pytest.approx(1 / (0.01 + 0.11 / 3 + 0.007))


def test_nothing_retried_is_no_data(tmp_path):
    """Not a ratio of 1."""
    found = retries(record(tmp_path, group_events=[assigned(0, "a", 0)]))
    assert "no message was retried" in found.others.why


def done(pod, partition, first, last, end):
    """A receipt for first..last that ended at ``end``."""
    count = last - first + 1
    times = {"start": end - 0.1, "end": end}
    return {"pod": pod, "partition": partition, "first": first, "last": last, "count": count, "checksum": 0} | times


def shot(folder, doubled):
    """A record in which a, which owned partitions 0 and 1 of three, was killed at 100; b took over at 108 and 109."""
    receipts = [done("a", 0, 0, 9, 99.0), done("a", 0, 10, 19, 99.8), done("a", 1, 0, 9, 99.9)]
    receipts += [done("b", 0, 10, 29, 108.0), done("b", 1, 0, 9, 109.0), done("b", 2, 0, 9, 50.0)]
    receipts += [done("a", 2, 10, 19, 120.0), done("b", 2, 10, 19, 130.0)]  # by the container that was started anew
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
    found = killed(shot(tmp_path, [range_of(0, 10, 19), range_of(1, 0, 9)]))
    assert (found.pod, found.partitions, found.doubled.value, found.unexplained.value) == ("a", (0, 1), 20, 0)
    assert found.oldest_s.value == pytest.approx(0.2)
    assert found.standstill_s.value == pytest.approx(9)


def test_what_another_pod_doubled_is_not_the_kills(tmp_path):
    """A partition it never processed, offsets beyond its last receipt, and what the container of its name did later."""
    found = killed(shot(tmp_path, [range_of(2, 0, 9), range_of(0, 15, 24), range_of(2, 10, 19)]))
    assert found.unexplained.value == 10 + 5 + 10


def test_a_kill_explains_one_copy_of_a_message(tmp_path):
    """Two copies more of each of ten messages: one is the successor's, the other nobody can explain."""
    found = killed(shot(tmp_path, [range_of(0, 10, 19) | {"count": 20}]))
    assert (found.doubled.value, found.unexplained.value) == (20, 10)


def test_what_the_pod_itself_did_twice_is_not_the_kills(tmp_path):
    """No receipt but its own, both from before the kill, covers the messages."""
    own = [done("a", 0, 0, 9, 99.0), done("a", 0, 0, 9, 99.5)]
    made = record(tmp_path, faults=(Fault(100.0, "sigkill", "a"),), group_events=[assigned(0, "a", 0)], receipts=own)
    (tmp_path / "reconciliation.json").write_text(
        json.dumps(whole.reconciliation(doubled=[range_of(0, 0, 9)], doubled_messages=10))
    )
    found = killed(made)
    assert (found.unexplained.value, found.oldest_s.value) == (10, 0)


def test_without_a_kill_there_is_no_data(tmp_path):
    """A trial without faults is not one in which a kill left nothing."""
    assert "0 faults" in killed(record(tmp_path, receipts=[done("a", 0, 0, 9, 1.0)])).unexplained.why
