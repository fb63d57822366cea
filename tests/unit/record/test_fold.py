"""The pass over the events, without Spark: whatever batches they come in, what is left checks as they do, and so do rates."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab import validation
from lab.record.ledger.fold import BIN_NS, COLUMNS, SEQS, ends_of, fold, read
from lab.record.ledger.reconcile import check
from lab.record.ledger.settle import rates
from lab.record.reconciliation import Reconciliation
from tests.thoroughness import examples

from . import oracle
from .conftest import folded, frame
from .oracle import Partition
from .test_reconcile import partitions, tables

EMPTY = pd.DataFrame({"partition": [], "first": [], "last": []}, dtype="int64")


@settings(max_examples=examples(40), deadline=None)
@given(
    cases=st.lists(partitions(), max_size=8),
    tasks=st.lists(st.lists(st.integers(0, 12), max_size=5), max_size=4),
    backwards=st.booleans(),
)
def test_it_agrees_with_every_offset_checked_on_its_own(
    cases: list[Partition], tasks: list[list[int]], backwards: bool
) -> None:
    """Gaps, overlaps, wrong sums, receipts from nowhere; cut anywhere, by several tasks, in the wrong order within a batch."""
    numbered = dict(enumerate(cases))
    events, *others = tables(numbered)
    receipts, letters = map(frame, ("receipts", "dead_letters"), others)
    rows = sorted((partition, offset, seq, ts, crc) for partition, offset, _, seq, ts, crc in events)
    verdict = check(folded(rows[::-1] if backwards else rows, receipts, tasks), receipts, letters)
    assert verdict == oracle.check(numbered)
    told = verdict.processed + verdict.dead_messages + verdict.lost_messages + verdict.unseen_messages
    assert verdict.produced == told
    assert validation.read(Reconciliation, asdict(verdict), "a record") == verdict


@settings(max_examples=examples(40), deadline=None)
@given(seqs=st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 600_000), max_size=200), size=st.integers(1, 50))
def test_different_seqs_are_counted_once(seqs: list[int], size: int) -> None:
    """However far apart, in whatever order, in one batch or in several tasks."""
    rows = [(0, offset, seq, offset * BIN_NS // 2, 1) for offset, seq in enumerate(seqs)]
    found = folded(rows, EMPTY, [[size, size], [size]])
    assert found.seqs == len(set(seqs))
    # At a bin's edge an event is in the bin that begins there, whatever batch it comes in.
    scheduled = dict(zip(found.scheduled["bin"], found.scheduled["messages"], strict=True))
    assert scheduled == Counter(offset // 2 for offset in range(len(seqs)))


def test_of_many_events_little_is_left() -> None:
    """A million events with a receipt for each hundred leave a row for each end, each batch and each bin: no row an event."""
    at = np.arange(1_000_000)
    table = pa.table({"partition": 0 * at, "offset": at, "seq": at, "ts": at * 1000, "crc": at})
    receipts = pd.DataFrame({"partition": 0, "first": at[::100], "last": at[99::100]})
    out = list(fold(table.to_batches(max_chunksize=100_000), ends_of(receipts)))
    assert sum(one.num_rows for one in out) == 2 * len(receipts) + 10 + 5 + 4  # ends, runs, bins, bitmaps


PLACES = [(partition, offset) for partition in (0, 1) for offset in range(50)]


@pytest.mark.parametrize(
    "places", [PLACES, PLACES[::-1], sorted(PLACES, key=lambda place: place[::-1])], ids=["in order", "backwards", "by turns"]
)
def test_of_a_batch_in_any_order_a_run_of_each_partition_is_left(places: list[tuple[int, int]]) -> None:
    """It is sorted before it is cut."""
    partition, offset = np.array(places).T
    table = pa.table({"partition": partition, "offset": offset, "seq": offset, "ts": offset, "crc": offset})
    assert sum(one.num_rows for one in fold(table.to_batches(), {})) == 2 + 1 + 1  # runs, a bin, a bitmap


def test_the_sums_of_several_batches_are_put_together() -> None:
    """Of each end that the log has its crc and the sum up to it, and of each partition its messages and its end.

    The batches have holes, partitions that are in two of them, and one whose offsets go on where another's stop.
    """
    logged = [
        *((0, 0, 11), (0, 2, 7), (0, 3, 5), (1, 4, 13), (1, 5, 3), (1, 6, 9), (1, 8, 2), (2, 0, 21)),
        *((1, 0, 4), (1, 1, 6), (1, 2, 8), (1, 3, 10)),
        *((0, 4, 1), (0, 5, 20), (2, 1, 17)),
    ]
    ranges = [(0, 0, 0), (0, 2, 3), (0, 1, 5), (1, 0, 3), (1, 4, 6), (1, 8, 8), (2, 0, 1)]
    rows = [(partition, offset, seq, 0, crc) for seq, (partition, offset, crc) in enumerate(logged)]
    found = folded(rows, pd.DataFrame(ranges, columns=["partition", "first", "last"]), [[8, 4]])
    assert found.sums.to_dict("index") == {
        (0, 0): {"crc": 11, "upto": 11},
        (0, 2): {"crc": 7, "upto": 18},
        (0, 3): {"crc": 5, "upto": 23},
        (0, 5): {"crc": 20, "upto": 44},
        (1, 0): {"crc": 4, "upto": 4},
        (1, 3): {"crc": 10, "upto": 28},
        (1, 4): {"crc": 13, "upto": 41},
        (1, 6): {"crc": 9, "upto": 53},
        (1, 8): {"crc": 2, "upto": 55},
        (2, 0): {"crc": 21, "upto": 21},
        (2, 1): {"crc": 17, "upto": 38},
    }
    assert found.bounds.to_dict("index") == {
        0: {"n": 5, "log_end": 6},
        1: {"n": 8, "log_end": 9},
        2: {"n": 2, "log_end": 2},
    }


def test_the_last_nanosecond_of_a_bin_is_in_it() -> None:
    """At today's times, which no double tells to the nanosecond. The events of a bin are counted over batches."""
    edge = 8_500_000_000
    times = [edge * BIN_NS - 1, edge * BIN_NS, edge * BIN_NS + 1]
    found = folded([(0, offset, offset, ts, 1) for offset, ts in enumerate(times)], EMPTY, [[1, 1, 1]]).scheduled
    assert dict(zip(found["bin"], found["messages"], strict=True)) == {edge - 1: 1, edge: 2}


START = 1_700_000_000.0
RECEIPT = st.tuples(
    st.sampled_from(("a", "b")),
    st.integers(1, 5000),
    st.floats(START, START + 20),
    st.one_of(st.just(0.0), st.floats(0, 5), st.sampled_from((0.2, 1.0, 2.0))),
)


def rates_of(batches: list[tuple[str, int, float, float]], bins: dict[int, float]) -> pd.DataFrame:
    """The rates of batches (pod, count, start, end), and of so many events in each of ``bins``."""
    kinds = {"pod": object, "count": "int64", "start": float, "end": float}
    scheduled = pd.DataFrame(bins.items(), columns=["bin", "messages"]).astype({"bin": "int64", "messages": float})
    return rates(scheduled, pd.DataFrame(batches, columns=list(kinds)).astype(kinds))


@settings(max_examples=examples(20), deadline=None)
@given(batches=st.lists(RECEIPT, min_size=1, max_size=200))
def test_the_bins_add_up_to_what_was_processed(batches: list[tuple[str, int, float, float]]) -> None:
    """By pod and for the group, in bins of either width: as many messages as the receipts count, within their times."""
    found = rates_of([(pod, count, start, start + lasts) for pod, count, start, lasts in batches], {})
    for width in (0.2, 1.0):
        binned = found[found.bin_s == width]
        for pod in ("a", "b", ""):
            expected = sum(count for each, count, _, _ in batches if pod in (each, ""))
            assert binned[binned.pod == pod].messages.sum() == pytest.approx(expected, abs=1e-6)
        assert binned.t.min() >= min(start for _, _, start, _ in batches) - width - 1e-6
        assert binned.t.max() <= max(start + lasts for _, _, start, lasts in batches) + 1e-6
        assert not binned.duplicated(["t", "pod"]).any()


def by_bin(found: pd.DataFrame) -> dict[tuple[float, float], float]:
    """The messages by (width, begin) of their bin, s after START."""
    return {(row.bin_s, round(row.t - START, 3)): row.messages for row in found.itertuples()}


def test_a_batch_is_spread_in_proportion_to_its_time_in_a_bin() -> None:
    """A batch of 100 from 0.3 to 1.3 s: a tenth, four fifths and so on, by hand."""
    found = rates_of([("a", 100, START + 0.3, START + 1.3)], {})
    fine = {(0.2, 0.2): 10, (0.2, 0.4): 20, (0.2, 0.6): 20, (0.2, 0.8): 20, (0.2, 1.0): 20, (0.2, 1.2): 10}
    assert by_bin(found[found.pod == "a"]) == pytest.approx({**fine, (1.0, 0.0): 70, (1.0, 1.0): 30}, abs=1e-3)


def test_what_was_produced_is_in_the_bins_of_both_widths() -> None:
    """Produced messages are in their bin of 0.2 s, and in the second that it belongs to."""
    first = int(START) * 10**9 // BIN_NS
    found = rates_of([], {first: 2, first + 1: 1, first + 5: 1})
    assert (set(found.series), set(found.pod)) == ({"produced"}, {""})
    assert by_bin(found) == {(0.2, 0.0): 2, (0.2, 0.2): 1, (0.2, 1.0): 1, (1.0, 0.0): 3, (1.0, 1.0): 1}


def test_the_ends_of_a_partition_are_those_of_its_own_receipts() -> None:
    """Sorted, and each once."""
    receipts = pd.DataFrame({"partition": [2, 0, 2], "first": [5, 0, 0], "last": [9, 4, 5]})
    assert {number: ends.tolist() for number, ends in ends_of(receipts).items()} == {2: [0, 5, 9], 0: [0, 4]}


def test_events_are_read_by_the_names_of_their_files(tmp_path: Path) -> None:
    """In whatever batches the names come, and of no more columns than are needed."""
    files = [tmp_path / f"{number}.parquet" for number in range(3)]
    for number, file in enumerate(files):
        pd.DataFrame({**{key: [number] for key in COLUMNS}, "more": [0]}).to_parquet(file)
    names = [pa.record_batch({"file": [str(file) for file in some]}) for some in (files[:2], files[2:])]
    assert [one.to_pydict() for one in read(names)] == [{key: [number] for key in COLUMNS} for number in range(3)]


def test_a_seq_that_two_tasks_have_is_one() -> None:
    """Beside others of its bitmap."""
    assert folded([(0, 0, 7, 0, 1), (0, 1, 7, 0, 1), (0, 2, 6, 0, 1)], EMPTY, [[1], [1]]).seqs == 2


def test_a_seq_beyond_the_first_bitmap_is_counted() -> None:
    """Also where no seq is in the first one."""
    assert folded([(0, 0, SEQS + 5, 0, 1)], EMPTY).seqs == 1
