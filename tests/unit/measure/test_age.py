"""How old events are that wait, against a search that looks at every event; and on records in which every age is known."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.measure.age import Waiting, oldest, waiting
from lab.measure.lateness import behind
from lab.measure.timelag import timelag
from lab.record.store import Record

from . import built

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
    assert waiting(found).median(20, 30) == pytest.approx(5, abs=0.02)
    assert waiting(found).median(10, 40) == 0
