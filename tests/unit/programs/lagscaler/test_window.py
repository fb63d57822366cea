"""The window: what lasts, by partition, against an oracle that looks at every second."""

import bisect
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lab.inputs.triggers.common import ScalerError
from lab.inputs.triggers.persistent_lag import Rule
from lab.model.signal import Signal
from lab.model.window import Window

INTERVAL, SIZE, SUSTAIN = 10, 30, 120


def rule(**changes):
    """Lag in messages, 100 a replica, sustained for 120 s, no stabilization, unless told otherwise."""
    given = {"target": 100, "sustain_s": SUSTAIN, "up_s": 0, "down_s": 0, "interval_s": INTERVAL, "size": SIZE}
    return Rule(**given | {"activation": 0, "ages": False, "allow_idle": True} | changes)


def seen(readings, **changes):
    """A window that has seen (time, value) ``readings``; a value is one partition's, or a dict by partition."""
    window = Window(rule(**changes))
    for at, value in readings:
        window.add(at, value if isinstance(value, dict) else {0: value})
    return window


def filled(values, **changes):
    """A window that has seen ``values``, one an interval, and the time of the last one."""
    return seen([(index * INTERVAL, value) for index, value in enumerate(values)], **changes), (len(values) - 1) * INTERVAL


def line(samples, at):
    """The value at ``at`` of (time, value) samples, exactly; the last one is held."""
    after = bisect.bisect_right(samples, at, key=lambda sample: sample[0])
    assert after > 0
    begin, low = samples[after - 1]
    end, high = samples[after] if after < len(samples) else (begin + 1, low)
    return Fraction(low) + Fraction(high - low) * Fraction(at - begin) / Fraction(end - begin)


def by_second(samples, now, span):
    """The value at every whole second of the last ``span``; as samples are on whole seconds, every corner is among them."""
    return [line(samples, at) for at in range(now - span, now + 1)]


def steepest(samples):
    """The lag's fastest change, messages/s."""
    return max(abs(after - before) / (end - begin) for (begin, before), (end, after) in pairwise(samples))


@st.composite
def sampled(draw, least=13, most=32):
    """Samples some 10 s apart on whole seconds, with a spike, a plateau or noise, and a time after them."""
    count = draw(st.integers(least, most))
    gaps = draw(st.lists(st.integers(7, 13), min_size=count, max_size=count))
    level = st.sampled_from([0, 0, 1, 50, 99, 100, 101, 1000]) | st.integers(0, 2000)
    values = draw(st.lists(level, min_size=count, max_size=count))
    times = [sum(gaps[: index + 1]) for index in range(count)]
    return list(zip(times, values, strict=True)), times[-1] + draw(st.integers(0, 9))


@given(sampled(), st.integers(0, 1200), st.sampled_from([0, 10, 60, 73]))
def test_least_and_most_are_the_oracles_and_a_stretch_is_above_as_long(case, level, span):
    """Of every second of the span, corner or not; the least is above a level if and only if the stretch above it is longer."""
    samples, now = case
    signal = Signal(SIZE * INTERVAL, 3 * INTERVAL)
    for at, value in samples:
        signal.add(at, value)
    every = by_second(samples, now, span)
    assert signal.least(now, span) == pytest.approx(float(min(every)), abs=1e-6)
    assert signal.most(now, span) == pytest.approx(float(max(every)), abs=1e-6)
    stretch = signal.stretch(now, level)
    assume(abs(stretch - span) > 1e-6)  # where the begin of the stretch and of the window coincide, to rounding
    assert (stretch > span) == all(value > level for value in every)


@given(sampled(20, 20), sampled(20, 20), st.sampled_from([0, 60, 73]), st.sampled_from([0, 30]), st.sampled_from([0, 50]))
def test_the_metric_is_the_sum_over_partitions_of_what_lasts_then_stabilized(one, other, sustain, up, down):
    """M by brute force at each reading, R the least and H the greatest of it, each a line between readings."""
    times = [at for at, _ in one[0]]
    now = times[-1]
    lags = [[(at, value) for at, (_, value) in zip(times, case[0], strict=True)] for case in (one, other)]
    readings = [(at, {number: lag[index][1] for number, lag in enumerate(lags)}) for index, at in enumerate(times)]
    window = seen(readings, sustain_s=sustain, up_s=up, down_s=down)
    settled = [at for at in times if at - sustain >= times[0]]
    sustained = [(at, sum(min(by_second(lag, at, sustain)) for lag in lags)) for at in settled]
    raised = [(at, min(by_second(sustained, at, up))) for at in settled if at - up >= settled[0]]
    assume(len(raised) > 1)
    expected = max(line(raised, at) for at in range(max(now - down, raised[0][0]), now + 1))
    read = window.read(now)
    assert read.metric >= round(float(expected), 3) - 0.002
    if down == 0 or raised[0][0] <= now - down:
        # Before its windows are covered ours may already know of a 0, and of nothing else.
        assert read.metric == pytest.approx(float(expected), abs=0.002)
    assert read.sustained == pytest.approx(float(sustained[-1][1]), abs=1e-6)


@given(sampled(30, 30), st.sampled_from([0, 30]), st.sampled_from([0, 50]), st.floats(0, 2))
def test_a_little_later_is_a_little_other_metric(case, up, down, moment):
    """No cliff in time: where the window passes an edge the metric moves no faster than the lag did at its steepest."""
    samples, _ = case
    window = seen([(at, value + 1) for at, value in samples], sustain_s=60, up_s=up, down_s=down)
    now = samples[-1][0] + 3
    assert abs(window.read(now + moment).metric - window.read(now).metric) <= steepest(samples) * moment + 0.002


def test_what_is_sustained_is_handed_over_whole_and_gone_when_it_is():
    """A step to 5,000: nothing for sustainSeconds, then the line the lag itself went, then all of it; 0 at the first 0."""
    window, now = filled([0] * 13 + [5000] * 12)
    assert window.read(now).metric == 0
    assert [window.read(now + after).metric for after in (0, 2.5, 5, 7.5, 10)] == [0, 1250, 2500, 3750, 5000]
    assert window.stretch(now + 5, 2500) == pytest.approx(120)
    window.add(now + 20, {0: 0})
    assert window.read(now + 20).metric == 0


def test_activity_is_what_there_is_now():
    """A group that keeps up under traffic has lag now and then and none that lasts: it is active, its metric 0."""
    window, now = filled([0] * 13 + [40])
    assert (window.read(now).metric, window.read(now).active) == (0, True)
    assert not filled([0] * 13 + [40], activation=40)[0].read(now).active
    window, now = filled([0] * 10 + [40] + [0] * 2)
    assert not window.read(now).active
    window, now = filled([0] * 10 + [40] + [0] * 2, down_s=60)
    assert window.read(now).active


def test_without_idle_consumers_the_metric_stops_at_the_partitions():
    """P * target exactly: no replica more than P is ever asked for, and no message decides about one."""
    many = {0: 5000, 1: 1}
    assert filled([many] * 13, allow_idle=True)[0].read(120).metric == 5001
    assert filled([many] * 13, allow_idle=False)[0].read(120).metric == 200


def test_of_ages_the_worst_counts_for_every_partition():
    """P times the age of the oldest: at lagSeconds on any partition every partition is given a consumer of its own."""
    window, now = filled([{0: 3, 1: 15, 2: 0}] * 13, ages=True, target=30)
    assert window.read(now).metric == 45
    assert window.read(now).now == 15
    assert filled([{0: 300, 1: 0}] * 13, ages=True, target=30, allow_idle=False)[0].read(now).metric == 60


def test_nothing_is_said_before_sustain_seconds_are_seen():
    """After a start or a restart lag may have lasted or not: an error, on which KEDA and the HPA hold, and never a guess."""
    window, now = filled([500] * 12)
    with pytest.raises(ScalerError, match="partition 0: seen for less than sustainSeconds 120"):
        window.read(now)
    window.add(120, {0: 500})
    assert window.read(120).metric == 500
    with pytest.raises(ScalerError, match="no sample yet"):
        Window(rule()).read(0)
    with pytest.raises(ScalerError, match="scaleUpStabilization 60"):
        filled([500] * 13, up_s=60)[0].read(120)
    # A zero is known at once, whatever came before: nothing lasted through it.
    assert filled([500, 0, 500])[0].read(20).metric == 0
    assert filled([0], up_s=60, down_s=60)[0].read(0).metric == 0


def test_missing_samples_are_bridged_for_three_intervals():
    """By a straight line; after a longer gap the window begins anew, and until the next sample nothing is said."""
    window, now = filled([500] * 20)
    assert window.read(now + 30).metric == 500
    with pytest.raises(ScalerError, match="partition 0: no sample for 31 s; 30 s are bridged"):
        window.read(now + 31)
    window.add(now + 30, {0: 300})
    assert window.read(now + 30).metric == 300
    window.add(now + 61, {0: 300})
    with pytest.raises(ScalerError, match="seen for less than"):
        window.read(now + 61)


def test_one_partition_without_an_answer_is_an_error_of_the_whole():
    """The others' lag is not handed over as if it were the group's."""
    window, now = filled([{0: 500, 1: 500}] * 13 + [{0: 500, 1: None}] * 4)
    with pytest.raises(ScalerError, match="partition 1: no sample for 40 s"):
        window.read(now)
    assert filled([{0: 500, 1: 500}] * 13 + [{0: 500, 1: None}] * 3)[0].read(150).metric == 1000


def test_new_partitions_had_no_lag_and_gone_ones_are_forgotten():
    """Repartitioned: what lasted is still there, and the new partitions' lag must last before it counts."""
    window, now = filled([{0: 500}] * 13 + [{0: 500, 1: 70}] * 12)
    assert window.read(now).metric == 500
    window.add(now + 10, {0: 500, 1: 70})
    window.add(now + 20, {0: 500, 1: 70})
    assert window.read(now + 20).metric == 570
    for later, there in ((30, 570), (40, 570), (50, 500)):
        window.add(now + later, {0: 500})
        assert window.read(now + later).metric == there, "a partition missing from an answer is bridged, then forgotten"
    assert window.partitions == {0}
    window, now = filled([{0: 300, 1: 200}] * 13 + [{0: 300}] + [{0: 300, 1: 200}])
    assert window.read(now).metric == 500, "back within three intervals it was never gone, and nothing has to last anew"


def test_a_new_partition_after_a_gap_is_not_said_to_have_had_no_lag():
    """What it had at a sample too long ago is not known; an edit of the rule keeps the time of the last reading."""
    window, now = filled([{0: 500}] * 13)
    window = edited(window, target=50)
    window.add(now + 10, {0: 500, 1: 70})
    assert window.read(now + 10).metric == 500
    window, now = filled([{0: 500}] * 13)
    window.add(now + 31, {0: 0, 1: 500})
    with pytest.raises(ScalerError, match="partition 1: seen for less than"):
        window.read(now + 31)


def edited(window, **changes):
    """The window of the same trigger with ``changes`` in its rule."""
    made = Window(rule(**changes))
    made.adopt(window)
    return made


def test_an_edit_keeps_what_was_handed_over_and_what_has_been_waited_for():
    """scaleDownStabilization holds through an edit of the threshold, and scaleUpStabilization is not begun anew."""
    window, now = filled([500] * 20 + [0] * 5, up_s=30, down_s=300)
    assert window.read(now).metric == 500
    assert edited(window, target=50, up_s=30, down_s=300).read(now).metric == 500
    assert edited(window, up_s=30).read(now).metric == 0
    window, now = filled([500] * 20, up_s=60)
    assert edited(window, target=50, up_s=60).read(now + 5).metric == 500
    # Without idle consumers what is held is no more than the partitions times the new target.
    window, now = filled([{0: 500, 1: 500}] * 20 + [{0: 0, 1: 0}], down_s=300, allow_idle=False)
    assert window.read(now).metric == 200
    assert edited(window, target=50, down_s=300, allow_idle=False).read(now).metric == 100


def test_samples_are_bounded():
    """Size + 2 a partition, however long it runs; a time that repeats or goes back is dropped."""
    window, now = filled([{0: 1, 1: 2}] * 500, up_s=60, down_s=300)
    assert window.samples <= 2 * (SIZE + 2) + (6 + 2) + 2 * (30 + 2)
    before = window.samples
    window.add(now, {0: 99, 1: 99})
    window.add(now - 5, {0: 99, 1: 99})
    assert (window.samples, window.read(now).metric) == (before, 3)
