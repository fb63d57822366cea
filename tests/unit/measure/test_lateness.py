"""How old events are that wait, against a search that looks at every event; and on records in which every age is known."""

import shutil

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.measure.lateness import behind, ceiling_delay, oldest, share_in_time, timelag
from lab.record import ages
from lab.record.ages import Coverage
from lab.record.store import Record

from . import built, whole

START, END = 10.0, 40.0
MOMENTS = st.integers(0, 40).map(float)


@given(
    st.lists(st.tuples(MOMENTS, st.one_of(st.integers(0, 20).map(float), st.just(np.inf))), min_size=1, max_size=40),
    st.integers(1, 9),
    st.integers(1, 50),
)
def test_what_waits_is_found_as_by_looking_at_every_event(events, size, most):
    """Whatever the order in which events are done, however they are cut into parts, and however many are held at once."""
    parts = []
    for first in range(0, len(events), size):
        part = sorted(events[first : first + size], key=lambda event: event[0])
        parts.append((np.array([at for at, _ in part]), np.array([at + length for at, length in part])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ages, "MOST_LIVES", most)
        found = ages.waiting(parts)
    grid = np.arange(0.25, 60, 0.5)  # never where an event begins or is done
    age = [max((t - at for at, length in events if at <= t < at + length), default=0.0) for t in grid]
    assert found.oldest(grid).tolist() == age
    # Everything that begins or ends is at a whole second, so half a second counts for each moment of the grid.
    assert found.late(3.0, 5.0, 50.0) == 0.5 * sum(late > 3 for t, late in zip(grid, age, strict=True) if 5 < t < 50)
    assert (np.minimum(found.done, 99) - found.at).max() == max(min(at + length, 99) - at for at, length in events)
    assert len(found.at) <= len({at + length for at, length in events})


def record(folder, rows, letters=(), **more):
    """A trial from 0 to 40 s with events of (partition, offset, at, done); without ``done`` one has no receipt."""
    content, told = built.profile(START, 31, (0, "spike"), (30, "drain"))
    receipts = [
        built.receipt("a", done - 0.1, done, 1, partition) | {"first": offset, "last": offset}
        for partition, offset, _, done in rows
        if done is not None
    ]
    ledger = folder / "ledger" / "events"
    ledger.mkdir(parents=True)
    table = pd.DataFrame(
        [(partition, offset, number, round(at * 1e9)) for number, (partition, offset, at, _) in enumerate(rows)],
        columns=["partition", "offset", "seq", "ts"],
    )
    table.to_parquet(ledger / "part.parquet")
    if letters:
        pd.DataFrame(letters, columns=["partition", "offset", "failed"]).to_parquet(folder / "dead_letters.parquet")
    return built.record(
        folder, inputs=content, group_events=told, receipts=receipts, times={"settling": 0, "ended": END}, **more
    )


def one_stalls():
    """Ten events a second on two partitions; each is done at once, but those of partition 0 from 20 s on never are."""
    for number in range(300):
        at, partition = START + number / 10, number % 2
        yield partition, number // 2, at, at + 0.1 if partition or at < 20 else None


def test_one_partition_that_stands_still_is_late(tmp_path):
    """An event older than 2 s exists from 22 s to 40 s, though half of the events are done in time, 0.1 s after their own.

    The same is found in parts of seven events, none of which is in order.
    """
    rows = sorted(one_stalls(), key=lambda row: row[1] * 7919 % 150)
    found = record(tmp_path, rows)
    never = sum(done is None for *_, done in rows)
    assert behind(found, 2.0).value == pytest.approx(18)
    assert behind(found, 30.0).value == 0
    assert share_in_time(found, 0.2).value == pytest.approx(1 - never / len(rows))
    assert share_in_time(found, 0.05).value == 0
    parts = found.event_parts("partition", "offset", "ts", most=7)
    found.__dict__["waiting"] = ages.waiting(ages.lives(parts, found._coverage))
    assert behind(found, 2.0).value == pytest.approx(18)


def test_a_ceiling_that_is_too_low_makes_events_older():
    """150 messages/s for 30 s, where a pod takes 100, and partitions leave work for two."""
    shape = {"steps": [{"at": 0, "rate": 150, "phase": "spike"}], "duration": 30}
    rest = {"workload": {"process_ms": "10", "concurrency": 1}, "profile": shape, "partitions": 2, "scale": {"time": 5}}
    given = [whole.inputs(policy=whole.scaled(maxReplicaCount=most), **rest) for most in (1, 2, 3)]
    found = [ceiling_delay(built.Shown(inputs=one)) for one in given]
    assert [one.value for one in found] == [pytest.approx(5 * 15), 0, 0]  # at real time


def test_a_message_that_was_skipped_in_the_middle_grows_old(tmp_path):
    """Nobody processed offset 1, though offset 2 was: it is as old as the trial lets it be."""
    found = record(tmp_path, [(0, 0, 11.0, 12.0), (0, 1, 12.0, None), (0, 2, 13.0, 14.0)])
    assert oldest(found).value == pytest.approx(END - 12)


def test_a_dead_letter_waits_no_more(tmp_path):
    """It is as old as it was when it was given up."""
    found = record(tmp_path, [(0, 0, 11.0, None), (0, 1, 12.0, 19.0)], letters=[(0, 0, 18.5)])
    assert oldest(found).value == pytest.approx(7.5)
    assert behind(found, 2.0).value == pytest.approx(6)  # from 13 s, by the first until 18.5 s, by the second until 19 s


def test_without_times_there_is_no_age(tmp_path):
    """No data, with the reason: nothing was produced, a small record of before has no times, and another has no ledger."""
    assert "nothing was produced" in oldest(record(tmp_path / "idle", [])).why
    old = record(tmp_path / "old", [(0, 0, 11.0, 12.0)])
    file = old.folder / "ledger" / "events" / "part.parquet"
    pd.read_parquet(file).drop(columns="ts").to_parquet(file)
    for why in ("has no ts", "ledger"):
        again = Record(old.folder)
        assert all(why in one.why for one in (oldest(again), behind(again, 2.0), timelag(again).p95_s))
        shutil.rmtree(old.folder / "ledger", ignore_errors=True)


def test_the_median_age_is_over_time(tmp_path):
    """One event waits from 20 s to 30 s: half of that time its age is above 5 s."""
    found = record(tmp_path, [(0, 0, 20.0, 30.0)])
    assert found.waiting.median(20, 30) == pytest.approx(5, abs=0.02)
    assert found.waiting.median(10, 40) == 0


RECEIPTS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 9), st.floats(0, 100)), max_size=12)


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


def test_the_last_third_of_the_spike_is_measured(tmp_path):
    """Ten messages are due in it, at 30 s to 39 s; three were never processed, and are as old as the trial lets them be."""
    rows = [(0, number, START + number, START + number + 2.0 if number < 27 else None) for number in range(30)]
    found = timelag(record(tmp_path, rows))
    assert (found.messages.value, found.median_s.value, found.worst_s.value) == (10, 2.0, END - 37)
    assert found.share.value == pytest.approx(0.7)
