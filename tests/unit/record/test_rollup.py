"""Rates from receipts and events: nothing is lost on the way to the chart."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.record.ledger.fold import BIN_NS
from lab.record.ledger.rollup import rates
from tests.thoroughness import examples

START = 1_700_000_000.0
RECEIPT = st.tuples(
    st.sampled_from(("a", "b")),
    st.integers(1, 5000),
    st.floats(START, START + 20),
    st.one_of(st.just(0.0), st.floats(0, 5), st.sampled_from((0.2, 1.0, 2.0))),
)


NOTHING = pd.DataFrame({"bin": [], "messages": []}).astype({"bin": "int64"})


def receipts(batches: list[tuple[str, int, float, float]]) -> pd.DataFrame:
    """The receipts of batches (pod, count, start, end)."""
    made = pd.DataFrame(batches, columns=["pod", "count", "start", "end"])
    return made.astype({"count": "int64", "start": float, "end": float})


def consumed(batches: list[tuple[str, int, float, float]]) -> pd.DataFrame:
    """The rates of batches (pod, count, start, end), and of no events."""
    return rates(NOTHING, receipts(batches))


@settings(max_examples=examples(20), deadline=None)
@given(batches=st.lists(RECEIPT, min_size=1, max_size=200))
def test_the_bins_add_up_to_what_was_processed(batches: list[tuple[str, int, float, float]]) -> None:
    """By pod and for the group, in bins of either width: as many messages as the receipts count, within their times."""
    found = consumed([(pod, count, start, start + lasts) for pod, count, start, lasts in batches])
    for width in (0.2, 1.0):
        binned = found[found.bin_s == width]
        for pod in ("a", "b", ""):
            expected = sum(count for each, count, _, _ in batches if pod in (each, ""))
            assert binned[binned.pod == pod].messages.sum() == pytest.approx(expected, abs=1e-6)
        assert binned.t.min() >= min(start for _, _, start, _ in batches) - width - 1e-6
        assert binned.t.max() <= max(start + lasts for _, _, start, lasts in batches) + 1e-6
        assert not binned.duplicated(["t", "pod"]).any()


def test_a_batch_is_spread_in_proportion_to_its_time_in_a_bin() -> None:
    """A batch of 100 from 0.3 to 1.3 s: a tenth, four fifths and so on, by hand."""
    found = consumed([("a", 100, START + 0.3, START + 1.3)])
    by_bin = {(row.bin_s, round(row.t - START, 3)): row.messages for row in found[found.pod == "a"].itertuples()}
    fine = {(0.2, 0.2): 10, (0.2, 0.4): 20, (0.2, 0.6): 20, (0.2, 0.8): 20, (0.2, 1.0): 20, (0.2, 1.2): 10}
    assert by_bin == pytest.approx({**fine, (1.0, 0.0): 70, (1.0, 1.0): 30}, abs=1e-3)


def test_events_count_in_the_bin_of_their_schedule() -> None:
    """Produced messages are in their bin of 0.2 s, and in the second that it belongs to."""
    first = int(START) * 10**9 // BIN_NS
    found = rates(pd.DataFrame({"bin": [first, first + 1, first + 5], "messages": [2.0, 1.0, 1.0]}), receipts([]))
    assert set(found.series) == {"produced"}
    assert set(found.pod) == {""}
    by_bin = {(row.bin_s, round(row.t - START, 3)): row.messages for row in found.itertuples()}
    assert by_bin == {(0.2, 0.0): 2, (0.2, 0.2): 1, (0.2, 1.0): 1, (1.0, 0.0): 3, (1.0, 1.0): 1}
