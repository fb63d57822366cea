"""The window: the seed text's pseudo-code against ours, and the age of the oldest uncommitted record against a known log."""

from collections import deque

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lab.inputs.triggers.persistent_lag import Rule
from lab.model.window import Ends, Window

INTERVAL, SUSTAIN, THRESHOLD = 10, 120, 100


def should_scale_up(samples, threshold, sustain):
    """``shouldScaleUp``: the time from the first to the last high sample."""
    high = [at for at, lag in samples if lag > threshold]
    return bool(high) and high[-1] - high[0] >= sustain


def evaluate_persistence(by_partition, threshold, sustain):
    """``EvaluatePersistence``: whether any partition has a long stretch anywhere, and the mean of the lags now."""
    persistent = 0
    for samples in by_partition.values():
        longest, begun = 0, None
        for at, lag in samples:
            begun = (begun if begun is not None else at) if lag > threshold else None
            longest = max(longest, at - begun if begun is not None else 0)
        persistent += longest >= sustain
    return persistent > 0, sum(samples[-1][1] for samples in by_partition.values()) / len(by_partition)


def kept(by_partition, size=30):
    """``groupByPartition`` of what ``SlidingWindow`` still holds: the last samples of all partitions, as they were taken."""
    window = deque(maxlen=size)
    for reading in zip(*by_partition.values(), strict=True):
        window.extend(zip(by_partition, reading, strict=True))
    return {number: [sample for of, sample in window if of == number] for number in by_partition}


def ours(by_partition, sustain=SUSTAIN):
    """What our window hands over after the same samples."""
    window = Window(Rule(THRESHOLD, sustain, 0, 0, INTERVAL, 30, 0, ages=False, allow_idle=True))
    for index, (at, _) in enumerate(next(iter(by_partition.values()))):
        window.add(at, {number: samples[index][1] for number, samples in by_partition.items()})
    return window.read(at).metric


def samples(lags):
    """One sample every 10 s."""
    return [(index * INTERVAL, lag) for index, lag in enumerate(lags)]


@given(st.lists(st.sampled_from([0, 99, 100, 101, 500]), min_size=13, max_size=31))
def test_what_lasts_for_us_persists_for_the_seed(lags):
    """Whenever one partition alone hands over more than the threshold, both functions of the seed say that it persists."""
    series = samples([0, *lags])
    if ours({0: series}) > THRESHOLD:
        assert should_scale_up(series, THRESHOLD, SUSTAIN)
        assert evaluate_persistence({0: series}, THRESHOLD, SUSTAIN)[0]


def test_two_spikes_are_no_stretch():
    """``shouldScaleUp`` looks at the first and the last high sample only; what was between them is nothing to it."""
    series = samples([0, 500, *[0] * 11, 500])
    assert should_scale_up(series, THRESHOLD, SUSTAIN)
    assert not evaluate_persistence({0: series}, THRESHOLD, SUSTAIN)[0]
    assert ours({0: series}) == 0


def test_a_stretch_that_is_over_is_over():
    """``EvaluatePersistence`` takes the longest stretch anywhere in the window: it goes on minutes after the lag is gone."""
    series = samples([0, *[500] * 13, *[0] * 10])
    assert evaluate_persistence({0: series}, THRESHOLD, SUSTAIN)[0]
    assert ours({0: series}) == 0


def test_of_many_partitions_the_seeds_window_holds_seconds():
    """30 samples of 24 partitions are the last 10 s, so that nothing lasts for 120; ours keeps 30 intervals of each."""
    case = {number: samples([500] * 60) for number in range(24)}
    held = kept(case)
    assert max(times[-1][0] - times[0][0] for times in held.values()) == 10
    assert not evaluate_persistence(held, THRESHOLD, SUSTAIN)[0]
    assert ours(case) == 24 * 500


def test_thirty_samples_are_no_three_hundred_seconds():
    """Its "conservative" tuning can never fire: from the first of 30 samples to the last it is 290 s."""
    case = {0: samples([500] * 60)}
    assert not evaluate_persistence(kept(case), THRESHOLD, 300)[0]
    assert evaluate_persistence(kept(case), THRESHOLD, 290)[0]
    assert ours(case, 300) == 500


def test_one_message_is_one_message():
    """At the threshold the seed's answer goes from nothing to everything; ours by the message."""
    at, above = ({0: samples([0, *[lag] * 14]), 1: samples([0, *[90] * 14])} for lag in (100, 101))
    assert [evaluate_persistence(case, THRESHOLD, SUSTAIN)[0] for case in (at, above)] == [False, True]
    assert [ours(case) for case in (at, above)] == [190, 191]


def test_the_total_is_compared_with_what_all_replicas_may_hold():
    """The seed hands over the mean of the partitions: 24 of 90 messages would ask for one replica where 22 are due."""
    case = {number: samples([0, *[90] * 14]) for number in range(24)}
    assert evaluate_persistence(case, THRESHOLD, SUSTAIN) == (False, 90)
    assert ours(case) == 24 * 90


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
