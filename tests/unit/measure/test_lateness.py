"""How old events are that wait, against a search that looks at every event; and on records in which every age is known."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.measure.lateness import behind, oldest, share_in_time, timelag
from lab.record import ages
from lab.record.ages import Coverage, Waiting
from lab.record.store import Record

from . import built
from .conftest import report

START, END = 10.0, 40.0
MOMENTS = st.integers(0, 40).map(float)


@given(st.lists(st.tuples(MOMENTS, st.one_of(st.integers(0, 20).map(float), st.just(np.inf))), min_size=1, max_size=12))
def test_what_waits_is_found_as_by_looking_at_every_event(events):
    """Whatever the order in which events are done."""
    events.sort(key=lambda event: event[0])
    found = Waiting(np.array([at for at, _ in events]), np.array([at + length for at, length in events]))
    grid = np.arange(0.25, 60, 0.5)  # never where an event begins or is done

    def age(t):
        return max((t - at for at, length in events if at <= t < at + length), default=0.0)

    assert found.oldest(grid).tolist() == [age(t) for t in grid]
    # Everything that begins or ends is at a whole second, so half a second counts for each moment of the grid.
    assert found.late(3.0, 5.0, 50.0) == 0.5 * sum(age(t) > 3 for t in grid if 5 < t < 50)


def all_at_once(found):
    """Every event of the record in order of time, with when it was done: it takes much memory."""
    events = found.events("partition", "offset", "ts").sort_values("ts", kind="stable")
    receipts = list(found.receipts[["partition", "first", "last", "end"]].itertuples(index=False, name=None))
    receipts += [(number, offset, offset, at) for number, offset, at in found.dead_letters.itertuples(index=False, name=None)]
    done = np.full(len(events), np.inf)
    for number, first, last, end in receipts:
        covered = (events["partition"] == number) & events["offset"].between(first, last)
        done[covered] = np.minimum(done[covered], end)
    return Waiting(events["ts"].to_numpy(dtype=float) / 1e9, done)


def assert_same(found, every, start, end):
    """Whatever is asked of the events that ``found`` has left is what ``every`` event says."""
    grid = np.linspace(start - 1, end + 1, 999)
    assert found.oldest(grid).tolist() == every.oldest(grid).tolist()
    assert found.median(start, end) == every.median(start, end)
    for objective in (0.0, 0.1, 3.0):
        assert found.late(objective, start, end) == pytest.approx(every.late(objective, start, end), rel=1e-12, abs=1e-9)
    assert (np.minimum(found.done, end) - found.at).max() == (np.minimum(every.done, end) - every.at).max()


@given(
    st.lists(st.tuples(MOMENTS, st.one_of(st.integers(0, 20).map(float), st.just(np.inf))), min_size=1, max_size=40),
    st.integers(1, 9),
    st.integers(1, 50),
)
def test_in_parts_the_same_is_found(events, size, most):
    """However the events are cut into parts, and however many are held before they are thinned."""
    parts = []
    for first in range(0, len(events), size):
        part = sorted(events[first : first + size], key=lambda event: event[0])
        parts.append((np.array([at for at, _ in part]), np.array([at + length for at, length in part])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ages, "MOST_LIVES", most)
        found = ages.waiting(parts)
    events.sort(key=lambda event: event[0])
    every = Waiting(np.array([at for at, _ in events]), np.array([at + length for at, length in events]))
    assert_same(found, every, START, END)
    assert len(found.at) <= len({at + length for at, length in events})


def record(folder, rows, letters=(), **more):
    """A trial from 0 to 40 s with events of (partition, offset, at, done); without ``done`` one has no receipt."""
    content, told = built.profile(START, 30, (0, "spike"))
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


@pytest.mark.parametrize("most", [7, 1000])
def test_of_a_record_the_same_is_found(tmp_path, most):
    """A part of its events at a time, none of which is in order."""
    found = record(tmp_path, sorted(one_stalls(), key=lambda row: row[1] * 7919 % 150), letters=[(0, 60, 30.0)])
    every = all_at_once(found)
    found.__dict__["waiting"] = ages.waiting(
        ages.lives(found.event_parts("partition", "offset", "ts", most=most), found._coverage)
    )
    assert_same(found.waiting, every, found.profile_start, found.end)


def test_one_partition_that_stands_still_is_late(tmp_path):
    """An event older than 2 s exists from 22 s to 40 s, though half of the lag's share of the arrivals keeps up."""
    arrivals = {START + second: 5 * max(0, second - 10) for second in range(31)}
    found = record(tmp_path, list(one_stalls()), samples=built.lags(arrivals), transitions=built.replicas((0, 1, 1)))
    assert behind(found, 2.0).value == pytest.approx(18)
    assert behind(found, 30.0).value == 0


def test_the_share_in_time_counts_events_that_were_never_done_as_late(tmp_path):
    """Every second event from 20 s on has no receipt; the others took 0.1 s."""
    rows = list(one_stalls())
    never = sum(done is None for *_, done in rows)
    found = record(tmp_path, rows)
    assert share_in_time(found, 0.2).value == pytest.approx(1 - never / len(rows))
    assert share_in_time(found, 0.05).value == 0


def test_a_message_that_was_skipped_in_the_middle_grows_old(tmp_path):
    """Nobody processed offset 1, though offset 2 was: it is as old as the trial lets it be."""
    found = record(tmp_path, [(0, 0, 11.0, 12.0), (0, 1, 12.0, None), (0, 2, 13.0, 14.0)])
    assert oldest(found).value == pytest.approx(END - 12)


def test_a_dead_letter_waits_no_more(tmp_path):
    """It is as old as it was when it was given up."""
    found = record(tmp_path, [(0, 0, 11.0, None), (0, 1, 12.0, 19.0)], letters=[(0, 0, 18.5)])
    assert oldest(found).value == pytest.approx(7.5)
    assert behind(found, 2.0).value == pytest.approx(6)  # from 13 s, by the first until 18.5 s, by the second until 19 s


def test_small_records_of_before_have_no_times(tmp_path):
    """No data, with the reason, for every age."""
    record(tmp_path, [(0, 0, 11.0, 12.0)])
    file = tmp_path / "ledger" / "events" / "part.parquet"
    pd.read_parquet(file).drop(columns="ts").to_parquet(file)
    for measured in (oldest(Record(tmp_path)), behind(Record(tmp_path), 2.0), timelag(Record(tmp_path)).p95_s):
        assert "has no ts" in measured.why


def test_nothing_produced_has_no_age(tmp_path):
    """No data."""
    assert "nothing was produced" in oldest(record(tmp_path, [])).why


def test_the_median_age_is_over_time(tmp_path):
    """One event waits from 20 s to 30 s: half of that time its age is above 5 s."""
    found = record(tmp_path, [(0, 0, 20.0, 30.0)])
    assert found.waiting.median(20, 30) == pytest.approx(5, abs=0.02)
    assert found.waiting.median(10, 40) == 0


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
def spiked(tmp_path):
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


def test_the_last_third_of_the_spike_is_measured(spiked):
    """Ten messages are due in it; three were never processed, and are as old as the trial lets them be."""
    found = timelag(spiked)
    assert (found.messages.value, found.median_s.value, found.worst_s.value) == (10, 2.0, 63.0)
    assert found.share.value == pytest.approx(0.7)


def test_without_a_ledger_there_is_no_age(spiked):
    """No data, and not 0."""
    for file in (spiked.folder / "ledger" / "events").iterdir():
        file.unlink()
    (spiked.folder / "ledger" / "events").rmdir()
    assert "ledger" in timelag(spiked).p95_s.why
