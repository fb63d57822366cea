"""A/A: what do equal groups differ by?

Hypothesis. Two groups that are equal in everything, on the same events at the same moment, still differ: by the order in which
the kernel runs them, by rebalances, by the phase of their syncs. No smaller difference can be told of two that are not equal.

Method. An A/A duet of each plan that an experiment compares in duets: experiments 1 and 10 have them too. The least difference
that can be told of a measure is the largest that any pair shows, in either direction. The next pair exceeds it with
probability 1 / (n + 1): a half for the one pair of a single session, 14 % with ``--repeat 6``.

Asserted. Nothing is lost or doubled by either side. The table asserts nothing: it is the scale to read every comparison by.

Refuted by one message lost or doubled.
"""

import allure
import pytest

from lab.measure.overview import least_differences
from tests.experiments.test_1_signal import ON_LAG
from tests.experiments.test_10_persistent_lag import BUILT_IN, on_bursts

pytestmark = [pytest.mark.extended, allure.epic("Scaling on lag"), allure.feature("A/A")]

PLANS = {"plateau, lag-4500": ON_LAG, "bursty, lag-4500": on_bursts("bursty", BUILT_IN)}


@allure.story("The least difference of each measure that can be told here")
def test_what_equal_groups_differ_by(trials, evidence):
    """Every main measure of both sides, pair by pair."""
    found = {name: trials.duet(plan, plan) for name, plan in PLANS.items()}
    least = {name: least_differences(*sides) for name, sides in found.items()}
    for measure in next(iter(least.values())):
        row = {name: each[measure] for name, each in least.items()}
        if any(one.value is not None for one in row.values()):
            evidence.report(measure, row | {"pairs": len(next(iter(found.values()))[0])})

    sides = {f"{name}, {side}": runs for name, both in found.items() for side, runs in zip("ab", both, strict=True)}
    with evidence.of(sides):
        pass
