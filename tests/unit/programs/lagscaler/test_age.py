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


@given(st.lists(st.integers(0, 12), min_size=2, max_size=20), st.data())
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


@pytest.mark.parametrize(
    ("ends", "committed", "age"),
    [
        (range(1000, 1600, 100), 1450, 5),
        (range(1000, 1600, 100), 500, 100),  # half of it from before the first sample, at the mean rate
        ([70] * 10 + [71], 70, 10),  # after a pause the next record is at most one interval old, not 100 s
        ([70] * 5, 60, 40),  # no growth, so no rate: at least since the first sample
        ([70] * 6, 60, 50),
        ([5000, 5100, 3, 13], 8, 5),  # a log made anew, or truncated: the old ends say nothing of the new ones
    ],
)
def test_the_age_where_it_was_not_seen_whole(ends, committed, age):
    """Beyond what was seen the mean rate counts; a log that stands still grows older."""
    assert sampled(ends).age(committed) == pytest.approx(age)


def test_kept_ends_are_bounded():
    """One sample before the horizon is the one the line into it starts from; of a log made anew there are its own."""
    assert len(sampled(range(1000))) == 31
    assert len(sampled([5000, 5100, 3, 13])) == 2
