"""Measures of scenario zero loss, on records whose every number is known: dead letters, acknowledgements, waits, stalls."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from lab.inputs.failures import Failures
from lab.measure.delivery import delivery
from lab.record.store import Record
from lab.record.trial import Offsets
from tests.scenarios.zero_loss.measure.deadletters import dead_letters
from tests.scenarios.zero_loss.measure.failover import acknowledged, failover
from tests.scenarios.zero_loss.measure.retries import partition_rate, retries, retry_waits, stalls
from tests.unit.measure import built, whole
from tests.unit.measure.built import assigned, given_up, receipt, record
from tests.unit.measure.conftest import report
from tests.unit.measure.test_delivery import EXACT, TALLY, tail, trial

MESSAGES = 2_000
FAILURES = Failures(seed=3, fail_rate=0.02, poison_rate=0.01)
WORKLOAD = {"fail_rate": 0.02, "poison_rate": 0.01, "retry_ms": "1000,2000,4000"}
POISON = [(seq % 4, seq // 4) for seq in range(MESSAGES) if FAILURES.never(0, 0, seq)]


def letters(places, **other):
    """Dead letters about messages at ``places``, with right reasons unless told otherwise."""
    right = {"topic": "events", "attempts": 4, "error": "it failed", "first_failure": 1.0, "failed": 8.0}
    rows = [{"partition": part, "offset": offset, **right, "seq": offset * 4 + part} | other for part, offset in places]
    return pd.DataFrame(rows)


def settled(folder, table, **ledger):
    """A record of 2,000 messages, seq by seq on four partitions, with these dead letters and this verdict of the ledger."""
    events = [report(1, "producer", "produced", sent=MESSAGES, acked=MESSAGES, unknown=0, failed=0)]
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
    """Every message that was to fail for ever has its letter and no other has one; a difference is counted."""
    made = settled(tmp_path, letters(POISON))
    found = dead_letters(made)
    assert (found.injected.value, found.dead.value, found.unaccounted.value) == (len(POISON), len(POISON), 0)
    assert (found.without_letter.value, found.surplus.value, found.unreasoned.value, found.attempts.value) == (0, 0, 0, 4)
    (tmp_path / "inputs" / "configmap-trial.yaml").unlink()  # without it no letter's source can be told right or wrong
    assert "no configmap-trial" in dead_letters(made).unreasoned.why
    other = next((seq % 4, seq // 4) for seq in range(MESSAGES) if not FAILURES.fails(0, 0, seq, 1))
    changed = settled(tmp_path / "changed", letters([*POISON[1:], other]), dead_messages=len(POISON) - 1)
    found = dead_letters(changed)
    assert (found.without_letter.value, found.surplus.value, found.unaccounted.value) == (1, 1, 1)


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


WRONG = [{"attempts": 3}, {"attempts": 5}, {"error": ""}, {"topic": ""}, {"topic": "other"}, {"first_failure": 9.0}]
WRONG += [{"seq": MESSAGES + 1}, {"seq": -1}, {"attempts": 3, "error": ""}, {"first_failure": 9.0, "seq": -1}]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_reason_is_counted(tmp_path, wrong):
    """Each letter whose headers, or whose message, are not what they should be, and once however much is wrong."""
    assert dead_letters(settled(tmp_path, letters(POISON, **wrong))).unreasoned.value == len(POISON)


def test_a_letter_at_the_first_failure_is_right_and_none_has_no_attempts(tmp_path):
    """Without a retry both times are one."""
    assert dead_letters(settled(tmp_path / "at-once", letters(POISON, first_failure=8.0))).unreasoned.value == 0
    found = dead_letters(settled(tmp_path / "none", letters(POISON).iloc[:0]))
    assert (found.without_letter.value, found.unreasoned.value, found.attempts.value) == (len(POISON), 0, None)


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


def attempt(t, pod, attempts=1, event="failed", partition=1):
    """A consumer's report of an attempt that failed, or of a head that is through after ``attempts``."""
    return report(t, pod, event, partition=partition, offset=7, attempts=attempts)


def stall(begin, end, pod="a", partition=0, event="recovered"):
    """The reports of a head that failed at ``begin`` and was through at ``end``."""
    return [attempt(begin, pod, partition=partition), attempt(end, pod, 2, event, partition)]


def test_waits_between_attempts_are_compared_with_their_delays(tmp_path):
    """Of the message that another pod or container begins anew no wait is known. Without a second attempt there is none."""
    events = [
        *(attempt(10, "a"), attempt(11, "a", 2), attempt(13.5, "a", 3), attempt(17.5, "a", 4, "recovered")),
        *(attempt(20, "b"), report(20.1, "b", "revoked", partitions=[1], owned=0), attempt(21.5, "c")),
        *(report(22, "c", "started", created=22.0), *stall(40, 42, "c", 1)),
    ]
    inputs = {"workload": {"fail_rate": 0.01, "retry_ms": "1000,2000,4000"}, "scale": {"name": "real", "time": 1, "rate": 1}}
    found = retry_waits(built.record(tmp_path, inputs=inputs, group_events=events))
    assert (found.waits.value, found.shortest.value) == (4, 1.0)
    assert found.middle.value == pytest.approx((1 + 1.25) / 2)
    assert "tried again" in retry_waits(built.record(tmp_path / "one", inputs=inputs, group_events=events[:1])).waits.why


def test_a_stall_is_from_the_first_failure_to_the_end_where_it_began(tmp_path):
    """One recovered after two failures, one dead; one taken away and one of a container that died have no end here."""
    events = [attempt(10, "a", partition=0), attempt(11, "a", 2, partition=0), attempt(13, "a", 2, "recovered", 0)]
    events += stall(20, 27, partition=1, event="dead_lettered")
    for t, event in ((30, given_up(31, "a", 2)), (40, report(41, "a", "started"))):
        first, last = stall(t, t + 2, partition=2)
        events += [first, event, last]
    found = stalls(record(tmp_path, group_events=events))
    assert [tuple(one) for one in found] == [("a", 0, 10, 13), ("a", 1, 20, 27)]


def retried(folder, during):
    """Forty stalls of 1 s on partition 0 of a pod that does 100/s on partition 1, and ``during``/s while one lasts."""
    events, receipts = [assigned(0, "a", 0, 1)], []
    for number in range(40):
        at = 10 + 3 * number
        events += stall(at, at + 1)
        receipts += [receipt("a", at - 1, at, 100, 1), receipt("a", at, at + 1, during, 1), receipt("a", at - 1, at, 50, 0)]
    return record(folder, group_events=events, receipts=receipts)


@pytest.mark.parametrize("during", [100, 40, 120])
def test_others_are_compared_with_just_before(tmp_path, during):
    """What the pod's other partition does during a stall, over the second before it; no data for a pod with one partition."""
    found = retries(retried(tmp_path, during))
    assert found.others.value == pytest.approx(during / 100)
    assert (found.stalls.value, found.compared.value, found.median_s.value, found.recovered.value) == (40, 40, 1, 40)
    events = [assigned(0, "a", 0), *(one for at in range(10, 130, 3) for one in stall(at, at + 1))]
    found = retries(record(tmp_path / "one", group_events=events, receipts=[receipt("b", 0, 200, 1000, 1)]))
    assert "0 stalls of pods that held other partitions" in found.others.why
    assert "no message was retried" in retries(record(tmp_path / "none", group_events=events[:1])).others.why


def test_a_partition_gives_no_more_than_its_retries_leave():
    """10 ms and no failure: 100/s; 1 % that wait 1, 3 or 7 s and 0.1 % that wait 7 take it down to 19/s."""
    assert partition_rate(0.01, 0, 0, [1, 2, 4]) == pytest.approx(100)
    assert partition_rate(0.01, 0.01, 0.001, [1, 2, 4]) == pytest.approx(1 / (0.01 + 0.11 / 3 + 0.007))


@pytest.mark.parametrize(
    ("tally", "change", "expected"),
    [
        ({}, {}, (0, 0)),
        ({}, {"ledger": replace(EXACT, produced=93, processed=93)}, (7, 0)),
        ({"acked": 97, "unknown": 3}, {}, (0, 0)),  # all three were written
        ({"acked": 97, "unknown": 3}, {"ledger": replace(EXACT, produced=98, processed=98)}, (0, 0)),  # one of them
        ({"acked": 97, "unknown": 3}, {"ledger": replace(EXACT, produced=96, processed=96)}, (1, 0)),
        ({"acked": 97, "unknown": 1, "failed": 2}, {}, (0, 2)),
        ({}, {"ledger": replace(EXACT, produced=105, processed=105, resent=5)}, (0, 0)),
        ({}, {"ledger": replace(EXACT, processed=90, lost_messages=10)}, (10, 0)),
        ({}, {"ledger": replace(EXACT, produced=93, processed=86, lost_messages=7)}, (14, 0)),
        ({}, {"ledger": tail(1, 45, 49), "offsets": {0: Offsets(50, 50), 1: Offsets(50, 45)}}, (5, 0)),
        ({}, {"ledger": tail(1, 45, 49)}, (5, 0)),  # committed, and never processed: lost, and counted once
        # Committed in part, and 3 were skipped before: 7 are lost, and 6 never reached.
        ({}, {"ledger": replace(tail(1, 40, 49), lost_messages=3), "offsets": {1: Offsets(50, 44)}}, (13, 0)),
        ({}, {"ledger": tail(1, 45, 49), "offsets": {0: Offsets(50, 50), 1: Offsets(50, 45)}, "until": "replayed"}, (0, 0)),
    ],
)
def test_unknown_acknowledgements_are_kept_apart(tally, change, expected, tmp_path):
    """A message of unknown fate may be there or not: neither is a loss, and what is beyond both is one."""
    found = acknowledged(trial(tmp_path, tallies=(TALLY | tally,), **change))
    assert (found.gone.value, found.surplus.value) == expected
    assert found.stored.value == change.get("ledger", EXACT).produced - change.get("ledger", EXACT).resent


def test_without_a_tally_nothing_is_known_to_be_acknowledged(tmp_path):
    """It says so as the delivery does."""
    assert acknowledged(trial(tmp_path, tallies=())).gone.why == "the producer left no tally"


def death(t):
    """The row of a broker's death."""
    result = {"broker": 2, "pid": 9, "led": 1}
    row = {"event": "kill_broker", "role": "leader", "disk": "kept", "result": result}
    return {"t": t, "until": t, "due": t, "phase": "x"} | row


def test_a_standstill_ends_with_the_first_receipt_that_begins_after_the_death(tmp_path):
    """The slowest partition counts; a start's row says how long the copies took.

    Where one has no receipt there is no length; without a death there is nothing to measure.
    """
    started = {"event": "start_brokers", "result": {"brokers": [2], "in_sync_s": 3.0}}
    start = {"t": 20.0, "until": 23.0, "due": 20.0, "phase": "y"} | started
    others = [{"t": 5.0, "until": 5.0, "due": 5.0, "phase": "x", "event": name, "result": {}} for name in ("grow", "thaw")]
    under_way = [built.receipt("a", begin, 10.5, 1, number) for number in (0, 1) for begin in (9, 10)]
    receipts = [*under_way, built.receipt("a", 11, 12, 1, 0), built.receipt("a", 28, 29, 1, 1)]
    record = built.record(tmp_path, inputs={"partitions": 2}, receipts=receipts, events=(*others, death(10.0), start))
    found = failover(record)
    assert (found.killed.value, found.standstill_s.value, found.in_sync_s.value) == (1, 19.0, 3.0)
    found = failover(built.record(tmp_path / "still", inputs={"partitions": 2}, receipts=[], events=(death(10.0),)))
    assert found.standstill_s.value is None
    assert "no broker was killed" in failover(built.record(tmp_path / "alive", receipts=[])).killed.why
