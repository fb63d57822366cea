"""When a message was processed, against a search that looks at every receipt."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.measure.timelag import timelag
from lab.record.ages import Coverage

from . import built
from .conftest import report

RECEIPTS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 9), st.floats(0, 100)),
    max_size=12,
)


@given(RECEIPTS, st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), min_size=1, max_size=30))
def test_the_earliest_receipt_that_covers_an_offset_counts(receipts, events):
    """Overlapping, repeated and missing receipts included."""
    stored = pd.DataFrame(
        [{"partition": p, "first": first, "last": first + more, "end": end} for p, first, more, end in receipts],
        columns=["partition", "first", "last", "end"],
    )
    asked, offsets = (np.array(column) for column in zip(*events, strict=True))
    found = Coverage.of(stored).at(asked, offsets)
    for value, (partition, offset) in zip(found, events, strict=True):
        ends = [end for p, first, more, end in receipts if p == partition and first <= offset <= first + more]
        assert value == min(ends, default=np.inf)


@pytest.fixture
def record(tmp_path):
    """A spike of 30 s with a message every second, each processed 2 s after it was due but the last three."""
    steps = [
        {"at": 0, "rate": 1, "phase": "baseline"},
        {"at": 10, "rate": 1, "phase": "spike"},
        {"at": 40, "rate": 1, "phase": "drain"},
    ]
    profile = {"steps": steps, "duration": 50}
    receipts = [built.receipt("a", at + 1, at + 2, 1) | {"first": at, "last": at} for at in range(37)]
    events = [report(0, "producer", "profile", start=0.0)]
    found = built.record(tmp_path, inputs={"profile": profile}, group_events=events)
    pd.DataFrame(receipts).to_parquet(tmp_path / "receipts.parquet")
    ledger = tmp_path / "ledger" / "events"
    ledger.mkdir(parents=True)
    rows = pd.DataFrame({"partition": 0, "offset": range(50), "ts": [at * 10**9 for at in range(50)]})
    rows.to_parquet(ledger / "part.parquet")
    return found


def test_the_last_third_of_the_spike_is_measured(record):
    """Ten messages are due in it; three were never processed, and are as old as the trial lets them be."""
    found = timelag(record)
    assert (found.messages.value, found.median_s.value, found.worst_s.value) == (10, 2.0, 63.0)
    assert found.share.value == pytest.approx(0.7)


def test_without_a_ledger_there_is_no_age(record):
    """No data, and not 0."""
    for file in (record.folder / "ledger" / "events").iterdir():
        file.unlink()
    (record.folder / "ledger" / "events").rmdir()
    assert "ledger" in timelag(record).p95_s.why
