"""Scales against real time: a similar record has no error, and an error is found with its size and its verdict."""

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.inputs.scale import Scale
from lab.judge.quantity import Quantity
from lab.judge.samples import Offset
from lab.measure.lag import hold
from lab.measure.reaction.step import Reaction
from lab.measure.similarity import FAITHFUL, NO_DATA, UNDECIDED, UNFAITHFUL, Block, at_real_time, compare, error, figures, judge
from tests.thoroughness import examples

from . import similar

FACTORS = st.sampled_from([3, 5, 15, 30])
# A similar record also starts its pods in a thirtieth of the time, and ends its dips. What these measures look at takes a time
# of its own, or is read in windows of seconds as seen, so a record that is similar in everything is not similar in them.
PHYSICAL = (
    "reaction.step.ColdStart.",
    "reaction.step.Reaction.divided_s",
    "scaling_cost.",
    "dip.",
    "drain.BestDrain.best_s",
    "drain.Drain.between_commits",
)


@cache
def written(factor, **how):
    """The figures of a similar record."""
    with tempfile.TemporaryDirectory() as folder:
        return figures(similar.write(Path(folder), factor, **how))


def rows(real, compressed, blocks=3):
    """The rows of so many equal blocks, by the name of their number."""
    found = compare("plateau", {"quick": [[compressed]] * blocks, "real": [[real]] * blocks}, "real")
    return {row.name: row for row in found if not row.measure.removeprefix("lab.measure.").startswith(PHYSICAL)}


@settings(max_examples=examples(12))
@given(factor=FACTORS, peak=st.sampled_from([0.9, 1.0, 1.7]), late_s=st.sampled_from([30, 60, 200]))
def test_a_similar_record_has_no_error(factor, peak, late_s):
    """Whatever the factor: each measure, stretched by its dimension, is that of real time."""
    how = {"peak": peak, "late_s": late_s}
    found = rows(written(1, **how), written(factor, **how))
    known = {name: row for name, row in found.items() if row.verdict != NO_DATA}
    assert len(known) > 30
    assert all(row.measure.startswith("lab.measure.") for row in known.values())
    for name, row in known.items():
        size = 1 if row.relative else max(1.0, abs(row.reference))
        assert row.estimate / size == pytest.approx(0, abs=0.03), name
        assert row.verdict == FAITHFUL, name


def test_an_error_is_found_with_its_size():
    """A peak that is half as high again, and ages that are three times as great."""
    found = rows(written(1), written(30, peak=1.5, late_s=180))
    assert found["peak lag"].estimate == pytest.approx(0.5, abs=1e-3)
    assert found["median age when processed"].estimate == pytest.approx(2, abs=1e-2)
    assert {found[name].verdict for name in ("peak lag", "median age when processed")} == {UNFAITHFUL}
    assert found["most replicas"].verdict == FAITHFUL


def test_a_rate_that_a_scale_multiplies_is_divided():
    """At four times the rate a message is a quarter of one, and a rate of lag as well. Infinity is no number at any."""
    full = Scale("full", 1, 4)
    with tempfile.TemporaryDirectory() as folder:
        found = hold(similar.write(Path(folder), 1))
    assert at_real_time(found.peak_lag, full).value == found.peak_lag.number / 4
    assert at_real_time(found.growth, full).value == found.growth.number / 4
    assert at_real_time(Quantity("x", "s", float("inf"), origin=Reaction.total_s.origin), full).value is None


def test_a_run_without_a_number_is_no_data():
    """Of either side, and at either scale."""
    whole_, lacking = written(1), [replace(one, value=None) for one in written(1)]
    for found in ({"quick": [[whole_, lacking]], "real": [[whole_]]}, {"quick": [[whole_]], "real": [[lacking]]}):
        assert {row.verdict for row in compare("plateau", found, "real")} == {NO_DATA}


@pytest.mark.parametrize(
    ("sides", "relative", "tolerance"),
    [
        ([(100, 100)], True, 0.1),
        ([(100, 400)], True, 0.1),
        ([(0, 2), (0, 0), (0, 0)], False, 0),
        ([(-100, 100), (-100, -130), (-90, -90)], False, 9),
    ],
)
def test_the_tolerance_is_a_tenth_whatever_the_noise(sides, relative, tolerance):
    """Of the median block, of which each is the mean of its sides."""
    found = error([Block((100.0,))], [Block(tuple(map(float, one))) for one in sides])
    assert found[0] is relative
    assert found[2] == pytest.approx(tolerance)


@given(st.lists(st.floats(0.9, 1.1), min_size=6, max_size=6), st.floats(1, 2))
def test_noise_makes_nothing_faithful(errors, factor):
    """A scale whose runs are further off is not shown faithful where one whose runs are nearer is not."""
    near, far = ([Block((1 + (one - 1) * by,)) for one in errors] for by in (1, factor))
    reference = [Block((1.0,))] * 3
    words = [judge(*error(sample, reference)[1:]) for sample in (near, far)]
    assert words[1] != FAITHFUL or words[0] == FAITHFUL


@pytest.mark.parametrize(
    ("low", "high", "confidence", "verdict"),
    [
        (-0.1, 0.1, 0.95, FAITHFUL),
        (-0.05, 0.11, 0.95, UNDECIDED),
        (-0.3, 0.3, 0.95, UNDECIDED),
        (0.11, 0.2, 0.95, UNFAITHFUL),
        (-0.2, -0.11, 0.9, UNFAITHFUL),
        (0.0, 0.0, 0.66, UNDECIDED),
        (5.0, 6.0, 0.66, UNDECIDED),
    ],
)
def test_the_whole_interval_decides(low, high, confidence, verdict):
    """And only one that is worth something."""
    assert judge(Offset((low + high) / 2, low, high, confidence), 0.1) == verdict


def test_a_pair_of_sides_is_one_run():
    """Its value is their mean: two sides of a duet share a machine and a moment."""
    assert Block((2.0, 4.0)).value == 3
    found = compare("plateau", {"quick": [[written(30)] * 2] * 3, "real": [[written(1)] * 2] * 2}, "real")
    assert {(row.n, row.reference_n) for row in found if row.verdict != NO_DATA} == {(3, 2)}
