"""Rates from receipts and events: nothing is lost on the way to the chart."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.record.ledger.rollup import rates
from tests.thoroughness import examples

from .conftest import Table

START = 1_700_000_000.0
RECEIPT = st.tuples(
    st.sampled_from(("a", "b")),
    st.integers(1, 5000),
    st.floats(START, START + 20),
    st.one_of(st.just(0.0), st.floats(0, 5), st.sampled_from((0.2, 1.0, 2.0))),
)


def consumed(table: Table, batches: list[tuple[str, int, float, float]]) -> pd.DataFrame:
    """The rates of batches (pod, count, start, end), and of no events."""
    receipts = [(pod, 0, 0, count - 1, count, 0, start, end) for pod, count, start, end in batches]
    return rates(table("events", []), table("receipts", receipts).toPandas())


@settings(max_examples=examples(20), deadline=None)
@given(batches=st.lists(RECEIPT, min_size=1, max_size=200))
def test_the_bins_add_up_to_what_was_processed(table: Table, batches: list[tuple[str, int, float, float]]) -> None:
    """By pod and for the group, in bins of either width: as many messages as the receipts count, within their times."""
    found = consumed(table, [(pod, count, start, start + lasts) for pod, count, start, lasts in batches])
    for width in (0.2, 1.0):
        binned = found[found.bin_s == width]
        for pod in ("a", "b", ""):
            expected = sum(count for each, count, _, _ in batches if pod in (each, ""))
            assert binned[binned.pod == pod].messages.sum() == pytest.approx(expected, abs=1e-6)
        assert binned.t.min() >= min(start for _, _, start, _ in batches) - width - 1e-6
        assert binned.t.max() <= max(start + lasts for _, _, start, lasts in batches) + 1e-6
        assert not binned.duplicated(["t", "pod"]).any()


def test_a_batch_is_spread_in_proportion_to_its_time_in_a_bin(table: Table) -> None:
    """A batch of 100 from 0.3 to 1.3 s: a tenth, four fifths and so on, by hand."""
    found = consumed(table, [("a", 100, START + 0.3, START + 1.3)])
    by_bin = {(row.bin_s, round(row.t - START, 3)): row.messages for row in found[found.pod == "a"].itertuples()}
    fine = {(0.2, 0.2): 10, (0.2, 0.4): 20, (0.2, 0.6): 20, (0.2, 0.8): 20, (0.2, 1.0): 20, (0.2, 1.2): 10}
    assert by_bin == pytest.approx({**fine, (1.0, 0.0): 70, (1.0, 1.0): 30}, abs=1e-3)


def test_events_count_in_the_bin_of_their_schedule(table: Table) -> None:
    """Produced messages go by their ts, exactly at a bin's edge into the bin that begins there."""
    at = [0, 199_999_999, 200_000_000, 1_000_000_000]
    events = table("events", [(0, seq, 7, seq, int(START) * 10**9 + ts, 1) for seq, ts in enumerate(at)])
    found = rates(events, table("receipts", []).toPandas())
    assert set(found.series) == {"produced"}
    assert set(found.pod) == {""}
    by_bin = {(row.bin_s, round(row.t - START, 3)): row.messages for row in found.itertuples()}
    assert by_bin == {(0.2, 0.0): 2, (0.2, 0.2): 1, (0.2, 1.0): 1, (1.0, 0.0): 3, (1.0, 1.0): 1}
