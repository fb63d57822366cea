"""The age of the oldest uncommitted record, against a log whose every record's time is known."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lab.model.window import Ends


def sampled(ends, every_s=10, horizon_s=300):
    """The ends, one sample every 10 s."""
    kept = Ends(horizon_s)
    for index, end in enumerate(ends):
        kept.add(index * every_s, end)
    return kept


@given(st.lists(st.integers(0, 50), min_size=2, max_size=31), st.data())
def test_within_what_was_seen_the_age_is_right_to_one_interval(grown, data):
    """Every record is written at some second of its interval; the answer lies in the interval of the one asked for."""
    written, ends = [], [0]
    for index, count in enumerate(grown):
        seconds = sorted(data.draw(st.lists(st.integers(1, 10), min_size=count, max_size=count)))
        written += [index * 10 + second for second in seconds]
        ends.append(len(written))
    assume(written)
    committed = data.draw(st.integers(0, len(written) - 1))
    now = len(grown) * 10
    assert sampled(ends, horizon_s=1000).age(committed) == pytest.approx(now - written[committed], abs=10)


@given(st.lists(st.integers(0, 1000), min_size=3, max_size=40), st.integers(0, 2000))
def test_who_commits_more_has_no_older_record(grown, committed):
    """The age falls as offsets are committed, is never negative, and 0 at the log's end."""
    ends = [1000]
    for count in grown:
        ends.append(ends[-1] + count)
    kept = sampled(ends)
    assert kept.age(committed) >= kept.age(committed + 1) >= 0
    assert kept.age(ends[-1]) == 0


def test_evenly_growing():
    """10 messages a second: 50 behind is 5 s; 1,000 is 100 s, half of it from before the first sample, at the mean rate."""
    kept = sampled([1000, 1100, 1200, 1300, 1400, 1500])
    assert kept.age(1450) == pytest.approx(5)
    assert kept.age(1000) == pytest.approx(50)
    assert kept.age(500) == pytest.approx(100)


def test_after_a_pause_the_next_record_is_as_young_as_it_is():
    """Nothing came for 90 s, then one message: it is at most one interval old, not 100 s."""
    assert sampled([70] * 10 + [71]).age(70) == pytest.approx(10)


def test_a_quiet_log_that_is_behind_is_as_old_as_it_was_seen():
    """No growth, so no rate: at least since the first sample, and older with every sample."""
    assert sampled([70] * 5).age(60) == 40
    assert sampled([70] * 6).age(60) == 50


def test_a_log_made_anew_is_another():
    """A topic deleted and created again, or truncated: its old ends say nothing of the new ones."""
    kept = sampled([5000, 5100, 3, 13])
    assert len(kept) == 2
    assert kept.age(8) == pytest.approx(5)


def test_kept_ends_are_bounded():
    """One sample before the horizon is the one the line into it starts from."""
    assert len(sampled(range(1000))) == 31
