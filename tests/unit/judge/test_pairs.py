"""Paired differences against a printed example, against every outcome there is, and against noise."""

import math
from itertools import product
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.judge.claim import BREACHED, HELD, NO_DATA, judge
from lab.judge.origin import MESSAGES, UNSCALED, Origin
from lab.judge.pairs import (
    Pairs,
    discern,
    interval,
    least_difference,
    over_noise,
    paired,
    sign_test,
    signed_rank,
    walsh_averages,
)
from lab.judge.quantity import Quantity, Undecided, repeated


def lag(*values):
    """The lag of some runs, None where a run has no number."""
    return repeated(Quantity("lag", "messages", value, "" if value is not None else "no sample") for value in values)


def test_the_estimate_and_interval_of_a_printed_example():
    """Hollander and Wolfe's depression scores (Hamilton factor IV of nine patients): -0.46, and from -0.786 to -0.010."""
    before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    differences = [later - earlier for earlier, later in zip(before, after, strict=True)]
    assert median(walsh_averages(differences)) == pytest.approx(-0.46)
    low, high, confidence = interval(differences)
    assert (low, high) == (pytest.approx(-0.786), pytest.approx(-0.010))
    assert confidence == pytest.approx(0.961, abs=0.001)


@pytest.mark.parametrize("n", [1, 2, 5, 6, 8])
def test_the_confidence_is_the_share_of_all_outcomes(n):
    """Of all signs of these sizes, the interval moved to the true centre of 0 holds it in just that share."""
    sums = [sum(rank for rank, sign in enumerate(signs, 1) if sign) for signs in product((0, 1), repeat=n)]
    assert signed_rank(n) == [sums.count(total) for total in range(n * (n + 1) // 2 + 1)]
    sizes = [2**rank for rank in range(n)]  # no two Walsh averages are equal
    held = 0
    for signs in product((-1, 1), repeat=n):
        low, high, confidence = interval([size * sign for size, sign in zip(sizes, signs, strict=True)])
        held += low <= 0 <= high
    assert confidence == pytest.approx(held / 2**n)


@pytest.mark.parametrize(
    ("above", "below", "p"),
    [(0, 0, 1), (1, 0, 1), (5, 0, 1 / 16), (6, 0, 1 / 32), (8, 1, 20 / 512), (3, 3, 1), (9, 1, 22 / 1024)],
)
def test_the_sign_test_is_the_binomial(above, below, p):
    """Both tails, and a difference of 0 is left out."""
    assert sign_test(above, below) == sign_test(below, above) == pytest.approx(p)


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=20), st.integers(-500, 500))
def test_a_shift_moves_estimate_and_interval(differences, shift):
    """And the estimate lies within its interval, whatever the order."""
    low, high, confidence = interval(differences)
    assert low <= median(walsh_averages(differences)) <= high
    moved = [one + shift for one in reversed(differences)]
    assert median(walsh_averages(moved)) == pytest.approx(median(walsh_averages(differences)) + shift)
    assert interval(moved) == (pytest.approx(low + shift), pytest.approx(high + shift), confidence)
    assert len(walsh_averages(differences)) == len(differences) * (len(differences) + 1) // 2


def test_sides_are_compared_pair_by_pair():
    """The differences, what they come to, and in what they are counted."""
    found = paired(lag(5, 7, 9, 10, 12, 20), lag(4, 5, 6, 6, 7, 20))
    assert [one.value for one in found.differences] == [1, 2, 3, 4, 5, 0]
    assert (found.n, found.above, found.below, found.p) == (6, 5, 0, 1 / 16)
    assert (found.estimate.value, found.low.value, found.high.value) == (2.5, 0, 5)
    assert str(found) == "+2.5 messages (+0 to +5, n = 6, 97 %)"
    assert found.figures()["pairs"] == 6


def test_a_pair_without_a_number_is_no_data():
    """Which pair, and why; nothing is estimated from the others. Unequal sides are no pairs, nor is nothing."""
    found = paired(lag(5, None, 9), lag(4, 5, 6))
    assert (found.estimate.value, found.n) == (None, 3)
    assert "pair 2: no sample" in found.estimate.why
    assert discern(found, SAME).value is None
    assert discern(FAR, found).why == "no sample"
    for one, other in (([], []), (lag(1, 2), lag(1, 2, 3)), (lag(1, 2, 3), lag(1, 2))):
        with pytest.raises(ValueError, match="are no pairs"):
            paired(one, other)
    assert paired(lag(*[None] * 300), lag(*[1] * 300)).n == 300  # numbers of pairs that are equal, and not one object


SAME = paired(lag(10, 11, 9, 10, 12, 10), lag(10, 10, 11, 10, 11, 9))  # up to 2 apart
FAR = paired(lag(15, 16, 17, 15, 18, 16), lag(10, 10, 11, 10, 11, 9))
BACKWARDS = paired(lag(10, 10, 11, 10, 11, 9), lag(15, 16, 17, 15, 18, 16))
NEAR = paired(lag(11, 12, 12, 11, 12, 10), lag(10, 10, 11, 10, 11, 9))
UNEVEN = paired(lag(30, 10, 10, 10, 30, 10), lag(10, 11, 10, 9, 10, 10))
AS_NOISE = paired(lag(*[12] * 6), lag(*[10] * 6))  # just as far apart as A/A are
TO_ZERO = paired(lag(10, *[40] * 5), lag(*[10] * 6))  # 30 apart, and the interval begins at 0
FROM_ZERO = paired(lag(*[10] * 6), lag(10, *[40] * 5))


def test_a_difference_beyond_the_noise_can_be_claimed():
    """In either direction. The least difference that can be told stands beside it, and its interval."""
    assert (least_difference(SAME).value, least_difference(SAME).unit) == (2, "messages")
    found = discern(FAR, SAME)
    assert found.value == FAR.estimate.value > 2
    assert discern(BACKWARDS, SAME).value == -found.value
    verdict = judge(found > 0, "the first is behind")
    assert verdict.verdict == HELD
    assert verdict.pairs == Pairs(6, FAR.low.value, FAR.high.value, FAR.confidence, 6, 2)
    assert f"{verdict.pairs}" in str(verdict)
    assert str(verdict.pairs) == "+5 to +7 (97 %), n = 6 pairs; 6 A/A pairs differ by up to 2"


@pytest.mark.parametrize(
    ("difference", "why"),
    [
        *((one, "is within the noise: A/A differ by up to 2, n = 6") for one in (NEAR, AS_NOISE)),
        *((one, "may be 0; A/A differ by up to 2") for one in (UNEVEN, TO_ZERO, FROM_ZERO)),
    ],
)
def test_a_difference_that_noise_makes_too_is_no_data(difference, why):
    """Whatever it is compared with: neither "is larger" nor "is not larger" is held."""
    found = discern(difference, SAME)
    assert why in found.why
    assert {judge(one, "x").verdict for one in (found > 0, found <= 0, found < 100)} == {NO_DATA}


def test_a_difference_that_noise_makes_too_is_not_told_from_it():
    """A claim that a group is left alone: held within the noise, breached beyond it, no data with few pairs or no noise."""
    near, far = over_noise(NEAR, SAME), over_noise(FAR, SAME)
    assert near.value == pytest.approx(abs(NEAR.estimate.value) / 2)
    assert [judge(one <= 1, "x").verdict for one in (near, far)] == [HELD, BREACHED]
    assert over_noise(BACKWARDS, SAME).value == far.value > 1
    reversed_pairs = judge(over_noise(BACKWARDS, SAME) <= 1, "x").pairs
    assert (reversed_pairs.low, reversed_pairs.high) == (-FAR.high.value / 2, -FAR.low.value / 2)
    few = over_noise(paired(lag(1), lag(1)), paired(lag(1), lag(2)))
    assert isinstance(few, Undecided)
    assert few.why.startswith("1 of 6 pairs (--repeat 6)")
    still = paired(lag(*[5] * 6), lag(*[5] * 6))
    assert "A/A do not differ" in over_noise(FAR, still).why
    assert over_noise(paired(lag(None), lag(1)), SAME).why == "pair 1: no sample"


@pytest.mark.parametrize("values", [(math.nan, 11, 9, 10, 12, 10), (10, 11, 9, 10, 12, math.nan)])
def test_without_a_number_for_each_pair_the_noise_is_not_known(values):
    """One A/A pair that is not a number, the first or the last: nothing is told from it, and nothing is held."""
    same = paired(lag(*values), lag(10, 10, 11, 10, 11, 9))
    for found in (least_difference(same), discern(FAR, same), over_noise(FAR, same)):
        assert (found.value, "is not a number" in found.why) == (None, True)
        assert judge(found > 0, "x").verdict == judge(found <= 1, "x").verdict == NO_DATA


@pytest.mark.parametrize(("pairs", "said"), [(1, "1 pair"), (2, "2 pairs"), (5, "5 pairs")])
def test_few_pairs_are_no_data_however_far_apart(pairs, said):
    """One pair is a point, and five hold with 93.75 %: a claim on them is neither held nor a breach of the record."""
    far, same = paired(lag(*[900] * pairs), lag(*range(pairs))), paired(lag(*range(pairs)), lag(*range(pairs)))
    for few in (discern(far, same), discern(far, SAME), discern(FAR, same)):
        assert isinstance(few, Undecided)
        assert few.why.startswith(f"{said}: a difference is claimed from 6 on (--repeat 6)")
        assert judge(few > 0, "x").verdict == judge(few <= 0, "x").verdict == NO_DATA
    assert not isinstance(discern(NEAR, SAME), Undecided)


def test_a_comparison_is_told_as_figures():
    """With the unit in the names, where there is one. A difference of 0 is neither above nor below."""
    found = paired(lag(6, 4, 9, 5, 4.5), lag(4, 5, 6, 5, 5))
    assert (found.above, found.below) == (2, 2)
    told = [f"{name} (messages)" for name in ("difference", "at least", "at most")]
    others = {"confidence": found.confidence, "pairs": 5, "pairs above": 2, "pairs below": 2, "sign test, p": 1.0}
    figures = found.figures()
    assert list(figures) == [*told, *others]
    assert {name: figures[name] for name in others} == others
    assert [figures[name].value for name in told] == [found.estimate.value, found.low.value, found.high.value]
    bare = [Quantity("x", "", value) for value in (1, 2)]
    assert list(paired(bare, bare).figures())[:3] == ["difference", "at least", "at most"]


def test_pairs_have_the_name_and_the_unit_of_the_first():
    """Where their runs are called differently."""
    lags, peaks = Origin(("lags",), MESSAGES), Origin(("peaks",), UNSCALED)
    found = paired([Quantity("lag", "messages", 3, origin=lags), Quantity("peak", "pods", 5, origin=peaks)], lag(1, 2))
    assert (found.estimate.name, found.estimate.unit, found.estimate.origin) == ("lag, first less second", "messages", lags)
    assert {one.name for one in found.differences} == {found.estimate.name}


def test_without_a_number_nothing_is_counted():
    """Neither above nor below, and no confidence: also where one is not a number."""
    for found in (paired(lag(9, math.nan), lag(1, 2)), paired(lag(math.inf, 1), lag(1, math.inf))):
        assert (found.estimate.value, found.estimate.why) == (None, "not a number")
    assert (found.confidence, found.above, found.below, found.p) == (0, 0, 0, 1)


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "+0"), (-0.12345, "-0.123"), (998.6, "+999"), (999.6, "+1,000"), (1000, "+1,000"), (-23_512.4, "-23,512")],
)
def test_a_difference_has_its_sign_and_no_power_of_ten(value, said):
    """Three significant digits, or all before the point."""
    assert str(Pairs(6, value, value, 0.97, 7, 2)) == f"{said} to {said} (97 %), n = 6 pairs; 7 A/A pairs differ by up to 2"


def test_what_is_beside_the_noise_has_its_number_of_pairs():
    """Over the noise, which is then 1. The difference itself is compared like any quantity."""
    assert judge(over_noise(FAR, SAME) <= 1, "x").pairs == Pairs(
        6, FAR.low.value / 2, FAR.high.value / 2, FAR.confidence, 6, 1.0
    )
    assert judge(discern(FAR, SAME) == FAR.estimate.value, "x").verdict == HELD


def test_more_pairs_than_the_fewest_decide_too():
    """Seven of each."""
    same = paired(lag(10, 11, 9, 10, 12, 10, 10), lag(10, 10, 11, 10, 11, 9, 10))
    far = paired(lag(*[20] * 7), lag(*[10] * 7))
    assert (discern(far, same).value, over_noise(far, same).value) == (10, 5)
