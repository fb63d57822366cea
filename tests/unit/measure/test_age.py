"""How old events are that wait, against a search that looks at every event; and on records in which every age is known."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.measure.age import oldest
from lab.measure.lateness import behind, share_in_time
from lab.measure.timelag import timelag
from lab.record import ages
from lab.record.ages import Waiting
from lab.record.store import Record
from tests.records import FOLDER

from . import built

START, END = 10.0, 40.0
JUDGED = [folder.parent.parent for folder in sorted(FOLDER.glob("records/*/ledger/events"))[:2]]
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


@pytest.mark.parametrize("folder", JUDGED, ids=[folder.name for folder in JUDGED])
def test_of_a_real_record_the_same_is_found(folder):
    """A part of its events at a time, none of which is in order."""
    found = Record(folder)
    every = all_at_once(found)
    found.__dict__["waiting"] = ages.waiting(
        ages.lives(found.event_parts("partition", "offset", "ts", most=1000), found._coverage)
    )
    assert len(found.waiting.at) <= len(found.receipts) + 1
    assert_same(found.waiting, every, found.profile_start, found.end)


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
