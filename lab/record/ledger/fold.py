"""One pass over the events, batch by batch, to what a reconciliation needs of them: Arrow batches in, small tables out.

A batch is cut into runs: offsets of a partition that follow one another, of which there are few. Of each run its sum of crcs
leaves, and of each receipt's end in it the sum up to there. A partition's sums are put together from those of its runs:
nothing is sorted, shuffled or joined. :func:`read` and :func:`fold` are sent to Spark's Python workers by value, because a
cluster elsewhere has no lab: so this module imports nothing of the lab's. Workers read files by name, not rows of the JVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = ("partition", "offset", "seq", "ts", "crc")  # of the events
BIN_NS = 200_000_000  # a bin of the schedule
SEQS = 2**18  # in a bitmap
BATCH = 2**19  # events that are read at a time
RUN, END, SEQ, BIN = range(4)  # kinds of rows
# RUN: first = key, count messages, sum of crcs. END: offset = key, crc = count, sum from its run's ``first`` to it.
# SEQ: bits of the seqs from key x SEQS on. BIN: count events scheduled in the bin key.
DDL = "kind int, partition int, key long, first long, count long, sum long, bits binary"

KINDS = {"int": pa.int32(), "long": pa.int64(), "double": pa.float64(), "string": pa.string(), "binary": pa.binary()}


def arrow_schema(ddl: str) -> pa.Schema:
    """Arrow's schema of the columns that Spark knows as ``ddl``: "name type, name type"."""
    return pa.schema([(name, KINDS[kind]) for name, kind in map(str.split, ddl.split(", "))])


ROWS = arrow_schema(DDL)
Longs = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Folded:
    """What is left of the events.

    ``bounds``: by partition, its ``n`` messages and its ``log_end`` (the last offset + 1). ``sums``: by partition and offset of
    the receipts' ends that the log has, the message's ``crc`` and the sum of crcs ``upto`` it. ``seqs``: how many different
    ones. ``scheduled``: messages by ``bin`` of BIN_NS since the epoch.
    """

    bounds: pd.DataFrame
    sums: pd.DataFrame
    seqs: int
    scheduled: pd.DataFrame


def ends_of(receipts: pd.DataFrame) -> dict[int, Longs]:
    """The first and last offsets of ``receipts`` by partition, sorted, each once."""
    numbers = receipts["partition"].unique().tolist()
    own = (receipts.loc[receipts["partition"] == number, ["first", "last"]] for number in numbers)
    return {number: np.unique(one.to_numpy(np.int64)) for number, one in zip(numbers, own, strict=True)}


def read(names: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The COLUMNS of the events in the Parquet files of each of ``names`` (file)."""
    for batch in names:
        for name in batch.column("file").to_pylist():
            with pq.ParquetFile(name) as file:
                yield from file.iter_batches(BATCH, columns=list(COLUMNS))


def fold(batches: Iterable[pa.RecordBatch], ends: Mapping[int, Longs]) -> Iterator[pa.RecordBatch]:
    """Fold ``batches`` of COLUMNS into ROWS. Runs and ends leave with their batch, bits and bins at the end."""
    seqs: dict[int, Bits] = {}
    bins: dict[int, int] = {}
    for batch in batches:
        if batch.num_rows:
            partition, offset, seq, ts, crc = (batch.column(name).to_numpy() for name in COLUMNS)
            _mark(seqs, seq)
            for number, count in zip(*np.unique(ts // BIN_NS, return_counts=True), strict=True):
                bins[int(number)] = bins.get(int(number), 0) + int(count)
            yield _runs(partition, offset, crc, ends)
    yield _rows(BIN, key=np.fromiter(bins, np.int64, len(bins)), count=np.fromiter(bins.values(), np.int64, len(bins)))
    for number, bits in seqs.items():
        yield _rows(SEQ, key=np.array([number]), bits=[bits.tobytes()])


def merge(table: pa.Table) -> Folded:
    """Put together what :func:`fold` made of all events, in whatever order it comes."""
    kinds = table["kind"].to_numpy()
    numbers = table.drop_columns(["kind", "bits"])
    runs, ends, scheduled = (numbers.filter(pa.array(kinds == kind)).to_pandas() for kind in (RUN, END, BIN))
    runs = runs.sort_values(["partition", "key"], ignore_index=True)
    upto = runs.groupby("partition")["sum"].cumsum() - runs["sum"]  # before each run
    before = pd.Series(upto.to_numpy(), pd.MultiIndex.from_frame(runs[["partition", "key"]]))
    parts = runs.assign(end=runs["key"] + runs["count"]).groupby("partition")
    bounds = pd.DataFrame({"n": parts["count"].sum(), "log_end": parts["end"].max()})
    sums = pd.DataFrame(
        {
            "crc": ends["count"].to_numpy(),
            "upto": ends["sum"].to_numpy() + before.reindex(pd.MultiIndex.from_frame(ends[["partition", "first"]])).to_numpy(),
        },
        index=pd.MultiIndex.from_frame(ends[["partition", "key"]], names=["partition", "offset"]),
    )
    found: dict[int, Bits] = {}
    for number, bits in zip(*(table.filter(pa.array(kinds == SEQ))[name].to_pylist() for name in ("key", "bits")), strict=True):
        own = np.frombuffer(bits, np.uint8)
        found[number] = found[number] | own if number in found else own
    seqs = sum(int(np.bitwise_count(bits).sum()) for bits in found.values())
    bins = scheduled.groupby("key", as_index=False)["count"].sum()
    return Folded(bounds, sums, seqs, bins.set_axis(["bin", "messages"], axis=1).astype({"messages": float}))


def _mark(seqs: dict[int, Bits], seq: Longs) -> None:
    """Set the bit of each of ``seq``."""
    numbers = seq // SEQS
    order = np.argsort(numbers, kind="stable")  # nearly in order already
    numbers, places = numbers[order], (seq % SEQS)[order]
    begins = np.flatnonzero(np.diff(numbers, prepend=-1))
    for begin, end in zip(begins, [*begins[1:], len(seq)], strict=True):
        bits = seqs.setdefault(int(numbers[begin]), np.zeros(SEQS // 8, np.uint8))
        flags = np.zeros(SEQS, np.bool_)
        flags[places[begin:end]] = True
        bits |= np.packbits(flags, bitorder="little")


def _runs(partition: Longs, offset: Longs, crc: Longs, ends: Mapping[int, Longs]) -> pa.RecordBatch:
    """The runs of a batch, and the receipts' ends in them."""
    steps = np.diff(partition)
    if (np.where(steps, steps, np.diff(offset)) < 0).any():  # not in order
        order = np.lexsort((offset, partition))
        partition, offset, crc = partition[order], offset[order], crc[order]
    ahead = np.where(np.diff(partition), 0, np.diff(offset))  # of the one before it in its partition
    begins = np.flatnonzero(np.concatenate(([True], ahead != 1)))
    lengths = np.diff(np.append(begins, len(offset)))
    through = np.cumsum(crc)
    before = through[begins] - crc[begins]
    lasts = begins + lengths - 1
    rows = [_rows(RUN, partition=partition[begins], key=offset[begins], count=lengths, sum=through[lasts] - before)]
    numbers, firsts = np.unique(partition[begins], return_index=True)
    for number, (begin, end) in zip(numbers, pairwise(np.append(begins[firsts], len(offset))), strict=True):
        wanted = ends.get(int(number))
        if wanted is None:
            continue
        own = offset[begin:end]
        low, high = np.searchsorted(wanted, (own[0], own[-1] + 1))
        places = np.searchsorted(own, wanted[low:high])
        places = begin + places[own[places] == wanted[low:high]]
        run = np.searchsorted(begins, places, side="right") - 1
        rows.append(
            _rows(
                END,
                partition=partition[places],
                key=offset[places],
                first=offset[begins[run]],
                count=crc[places],
                sum=through[places] - before[run],
            )
        )
    (whole,) = pa.Table.from_batches(rows).combine_chunks().to_batches()
    return whole


def _rows(kind: int, **columns: object) -> pa.RecordBatch:
    """Rows of ``kind``; a column that is not given is empty."""
    length = len(columns["key"])  # type: ignore[arg-type]
    given: dict[str, object] = {"kind": np.full(length, kind)} | columns
    arrays = [pa.array(given[one.name], one.type) if one.name in given else pa.nulls(length, one.type) for one in ROWS]
    return pa.record_batch(arrays, schema=ROWS)
