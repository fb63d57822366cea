"""Ride-hailing: what does a month cost (docs/ride-hailing.md)?

Hypothesis. A month with the text's ScaledObjects costs 26 % less than with two fixed pods of trip analytics and two of fares.

Method. The pod-minutes of the measured evening and of the measured batch, thirty of each, and the floor of two pods in between.

Asserted. The text's 26 %.
"""

import allure
import pytest

from lab.judge.measure import quantity
from lab.measure.cost import cost
from lab.measure.delivery import CONTRACT, DELIVERED, unaccounted
from tests.scenarios.ride_hailing import claims

pytestmark = [pytest.mark.scenario, allure.epic("Real systems"), allure.feature("Ride-hailing")]

FIXED_PODS, FLOOR = 4, 2  # before: two pods of trip analytics and two of fares; after: the floor of trip analytics


@allure.story("What it costs")
def test_the_month_costs_less(evidence, evening, batch):
    """Pod-minutes of a month, from the measured evening and the measured batch."""
    before, after = FIXED_PODS * claims.MONTH_MIN, month(evening, batch)
    evidence.report("month", {"before (pod-minutes)": before, "after (pod-minutes)": after, "idle": cost(evening).idle_ratio})

    with evidence.of({"evening": evening, "batch": batch}) as claim:
        share = (after / before).named("pod-minutes of a month over those of four fixed pods")
        claim(unaccounted(evening, batch) == 0, DELIVERED, kind="invariant", source=CONTRACT)
        claim(share <= 0.74, "the month costs 26 % less", source="text 4: monthly compute cost -26 %")


@quantity("pod-minutes", "pod-minutes of a month")
def month(evening, batch):
    """The floor all month, an evening a day and a batch a night, at real time."""
    minutes = (evening.end - evening.profile_start) / 60 * evening.scale.time
    pod_minutes = cost(evening).real_pod_minutes.number, minutes, cost(batch).real_pod_minutes.number
    return claims.monthly(FIXED_PODS, FLOOR, *pod_minutes)[1]
