"""Acknowledged messages beside the ledger, and standstills after a broker's death, on records whose numbers are known."""

from dataclasses import replace

import pytest

from lab.record.trial import Offsets
from tests.scenarios.zero_loss.measure.failover import acknowledged, failover
from tests.unit.measure import built
from tests.unit.measure.test_delivery import EXACT, TALLY, tail, trial


@pytest.mark.parametrize(
    ("tally", "change", "expected"),
    [
        ({}, {}, (0, 0)),
        ({}, {"ledger": replace(EXACT, produced=93, processed=93)}, (7, 0)),
        ({"acked": 97, "unknown": 3}, {}, (0, 0)),  # all three were written
        ({"acked": 97, "unknown": 3}, {"ledger": replace(EXACT, produced=98, processed=98)}, (0, 0)),  # one of them
        ({"acked": 97, "unknown": 3}, {"ledger": replace(EXACT, produced=96, processed=96)}, (1, 0)),
        ({"acked": 97, "unknown": 1, "failed": 2}, {}, (0, 2)),
        ({}, {"ledger": replace(EXACT, produced=103, processed=103, resent=3)}, (0, 0)),
        ({}, {"ledger": replace(EXACT, processed=90, lost_messages=10)}, (10, 0)),
        ({}, {"ledger": tail(1, 45, 49), "offsets": {0: Offsets(50, 50), 1: Offsets(50, 45)}}, (5, 0)),
        ({}, {"ledger": tail(1, 45, 49)}, (5, 0)),  # committed, and never processed: lost, and counted once
        ({}, {"ledger": tail(1, 45, 49), "offsets": {0: Offsets(50, 50), 1: Offsets(50, 45)}, "until": "replayed"}, (0, 0)),
    ],
)
def test_unknown_acknowledgements_are_kept_apart(tally, change, expected, tmp_path):
    """A message of unknown fate may be there or not: neither is a loss, and what is beyond both is one."""
    found = acknowledged(trial(tmp_path, tallies=(TALLY | tally,), **change))
    assert (found.gone.value, found.surplus.value) == expected
    assert found.stored.value == change.get("ledger", EXACT).produced - change.get("ledger", EXACT).resent


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
    under_way = [built.receipt("a", 9, 10.5, 1, number) for number in (0, 1)]
    receipts = [*under_way, built.receipt("a", 11, 12, 1, 0), built.receipt("a", 18, 19, 1, 1)]
    record = built.record(tmp_path, inputs={"partitions": 2}, receipts=receipts, events=(death(10.0), start))
    found = failover(record)
    assert (found.killed.value, found.standstill_s.value, found.in_sync_s.value) == (1, 9.0, 3.0)
    found = failover(built.record(tmp_path / "still", inputs={"partitions": 2}, receipts=[], events=(death(10.0),)))
    assert found.standstill_s.value is None
    assert "no broker was killed" in failover(built.record(tmp_path / "alive", receipts=[])).killed.why
