"""Dead letters against what was injected, on records made by hand."""

import json

import pandas as pd
import pytest

from lab.inputs.failures import Failures
from lab.measure.delivery import delivery
from lab.record.store import Record
from tests.scenarios.zero_loss.measure.deadletters import dead_letters
from tests.unit.measure import whole
from tests.unit.measure.built import record
from tests.unit.measure.conftest import report

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
    assert (found.without_letter.value, found.surplus.value, found.unreasoned.value) == (0, 0, 0)
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


WRONG = [{"attempts": 3}, {"error": ""}, {"topic": ""}, {"topic": "other"}, {"first_failure": 9.0}, {"seq": MESSAGES + 1}]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_reason_is_counted(tmp_path, wrong):
    """Each letter whose headers, or whose message, are not what they should be."""
    assert dead_letters(settled(tmp_path, letters(POISON, **wrong))).unreasoned.value == len(POISON)


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
