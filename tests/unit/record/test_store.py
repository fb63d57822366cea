"""A stored record is judged as it was closed or not at all: what is changed, gone or added is named in one line."""

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pytest

from lab.__main__ import main
from lab.errors import InputError, NoData
from lab.measure.delivery import delivery
from lab.record.ledger.settle import recheck
from lab.record.seal import FILE
from lab.record.store import Record, add, find, opened, write_json
from tests.unit.measure.built import record, report, sealed
from tests.unit.record.conftest import batches, messages, reconciled

MESSAGES = 40


@pytest.fixture
def stored(tmp_path):
    """A record of 40 messages of one partition, processed in four batches, in a folder of records."""
    folder = tmp_path / "records" / "built"
    (folder / "ledger" / "events").mkdir(parents=True)
    events, table = messages(MESSAGES), batches(MESSAGES, 10)
    events.to_parquet(folder / "ledger" / "events" / "part-0.parquet")
    table.to_parquet(folder / "receipts.parquet")
    verdict = reconciled(*(each.itertuples(index=False, name=None) for each in (events, table)))
    write_json(folder / "reconciliation.json", asdict(verdict))
    tally = report(1, "producer", "produced", sent=MESSAGES, acked=MESSAGES, unknown=0, failed=0)
    record(folder, group_events=[tally])
    return folder


def without_one_receipt(folder):
    """Take one receipt out of the store."""
    table = pd.read_parquet(folder / "receipts.parquet")
    table.drop(index=2).to_parquet(folder / "receipts.parquet")


def without_receipts(folder):
    """Take all of them."""
    (folder / "receipts.parquet").unlink()


def with_a_byte_flipped(folder):
    """Damage one byte in the middle of the events."""
    file = folder / "ledger" / "events" / "part-0.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def with_more_events(folder):
    """Put a file beside the events, where it would be read as one of them."""
    shutil.copy(folder / "ledger" / "events" / "part-0.parquet", folder / "ledger" / "events" / "part-1.parquet")


def told_otherwise(change):
    """Change what trial.json says, as a hand might."""

    def damage(folder):
        content = json.loads((folder / FILE).read_text())
        change(content)
        (folder / FILE).write_text(json.dumps(content))

    return damage


def test_a_record_as_it_was_closed_is_judged(stored):
    """By its identity, from its folder, and with measures beside it, which are derived from it."""
    write_json(stored / "measures.json", {"any": 1})
    assert delivery(find(stored.parent, "built")).processed.value == MESSAGES
    assert delivery(find(stored.parent.parent, "built")).lost.value == 0


@pytest.mark.parametrize(
    ("damages", "named"),
    [
        ([without_one_receipt], "receipts.parquet is changed"),
        ([without_receipts, with_a_byte_flipped], "receipts.parquet is gone; ledger/events/part-0.parquet is changed"),
        ([with_more_events], "ledger/events/part-1.parquet is added"),
        ([told_otherwise(lambda trial: trial["offsets"].update({"0": {"end": 0, "committed": 7}}))], f"{FILE} is changed"),
        ([told_otherwise(lambda trial: trial.update(ended="deadline: x"))], f"{FILE} is changed"),
        ([told_otherwise(lambda trial: trial["events"].append({"t": 1.0}))], f"{FILE} is changed"),
        (
            [told_otherwise(lambda trial: trial["files"].pop("receipts.parquet"))],
            f"{FILE} is changed; receipts.parquet is added",
        ),
        ([told_otherwise(lambda trial: trial["files"].pop(FILE))], f"{FILE} has no checksum"),
    ],
)
def test_what_is_damaged_is_named_and_nothing_is_judged(stored, damages, named, capsys):
    """All of it in one line. The stored reconciliation still says that nothing is lost: it is not believed."""
    for damage in damages:
        damage(stored)
    with pytest.raises(InputError, match=f"files: '{named}' is not allowed"):
        find(stored.parent, "built")
    assert main(["judge", str(stored)]) != 0
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.strip().splitlines()
    assert named in line


def test_what_was_read_of_a_record_is_released(stored):
    """All but trial.json, and it is read again: a session of hundreds of trials had 50 MB more with each."""
    record = opened(stored)
    before = record.receipts
    assert "receipts" in vars(record)
    record.release()
    assert vars(record).keys() == {"folder", "trial"}
    assert record.receipts is not before
    assert record.receipts.equals(before)


def test_what_a_test_adds_is_part_of_the_record(stored):
    """Nothing is added to a damaged one, whose damage it would mend."""
    add(stored, "queries.json", {"a": 1})
    assert json.loads((opened(stored).folder / "queries.json").read_text()) == {"a": 1}
    without_receipts(stored)
    with pytest.raises(InputError, match=r"'receipts.parquet is gone'"):
        add(stored, "queries.json", {"a": 2})


def test_a_sealed_record_is_on_the_disk(stored, monkeypatch):
    """Each file and the names in each folder, before trial.json says so, and then that itself."""
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(Path(f"/proc/self/fd/{handle}").readlink()))
    sealed(stored)
    before, last = synced[:-2], synced[-2:]
    assert last == [stored / f".{FILE}.partial", stored]
    folders = {stored.parent, stored, stored / "ledger", stored / "ledger" / "events"}
    assert folders | {stored / name for name in opened(stored).trial.files} <= set(before)


def test_a_ledger_that_settles_otherwise_is_named(stored, spark):
    """A receipt was lost before the record was closed, or someone made the checksums anew; as it is, it is believed."""
    recheck(spark(), Record(stored))
    without_one_receipt(stored)
    with pytest.raises(InputError, match=r"reconciliation.json: processed: 40 is not allowed; allowed: 30, which"):
        recheck(spark(), sealed(stored))


def test_without_a_ledger_there_is_nothing_to_settle(stored):
    """No data, with the reason; not a pass."""
    (stored / "reconciliation.json").unlink()
    with pytest.raises(NoData, match=r"no reconciliation.json: Kafka was gone"):
        recheck(None, sealed(stored, missing={"ledger": "Kafka was gone"}))
