"""Ride-hailing: what does a month cost (docs/ride-hailing.md)?

Hypothesis. A month with the text's ScaledObjects costs 26 % less than with two fixed pods of trip analytics and two of fares.

Method. The pod-minutes of the measured evening and of the measured batch, thirty of each, and the floor of two pods in between.
The text names two things that were there before: two fixed pods that fall behind, and "a fixed over-provisioned fleet". So the
month is compared with both. The fleet is what the peak of 1,400 events/s takes, 7 pods. How long an evening lasts is the text's
own choice, so the month is computed for longer ones too.

Asserted. The text's 26 %, and from the other side the floor: no month costs less than its two pods.

Refuted by a smaller saving.
"""

import math

import allure
import pytest

from lab.judge.measure import quantity
from lab.measure.cost import cost
from lab.measure.delivery import CONTRACT, DELIVERED, unaccounted
from tests.scenarios.ride_hailing import claims

pytestmark = [pytest.mark.scenario, allure.epic("Real systems"), allure.feature("Ride-hailing")]

FARES, FLOOR = 2, 2  # fixed pods of fares before; the floor of trip analytics
FLEET = math.ceil(max(row.rate for row in claims.TIMELINE) / claims.POD_RATE)
BEFORE = {"two fixed pods": FARES + 2, "a fleet for the peak": FARES + FLEET}
LONGER = (1, 2, 4, 8)
SHARE = 0.74  # of before: the text's -26 %


@allure.story("What it costs")
def test_the_month_costs_less(evidence, evening, batch):
    """Pod-minutes of a month, from the measured evening and the measured batch, beside both fleets of before."""
    for name, pods in BEFORE.items():
        longer = {f"evening {times} times as long": share(evening, batch, pods, times) for times in LONGER}
        evidence.report(f"over {name}", longer | {"times as long for the text's 26 %": break_even(evening, batch, pods)})
    evidence.report("the evening", {"pod-minutes": cost(evening).real_pod_minutes, "idle": cost(evening).idle_ratio})

    with evidence.of({"evening": evening, "batch": batch}, delivery=None) as claim:
        of_four = share(evening, batch, BEFORE["two fixed pods"])
        claim.invariant(unaccounted(evening, batch) == 0, DELIVERED, CONTRACT)
        claim(of_four <= SHARE, "the month costs 26 % less", "text 4: monthly compute cost -26 %")
        half = FLOOR / BEFORE["two fixed pods"]
        source = "arithmetic: minReplicaCount 2 of four pods"
        claim.invariant(of_four >= half, "the floor alone is half of the four pods", source)


@quantity("x", "pod-minutes of a month over those of before")
def share(evening, batch, pods, times=1):
    """A month of evenings that are ``times`` as long, over ``pods`` fixed pods."""
    pod_minutes, minutes, nightly = parts(evening, batch)
    before, after = claims.monthly(pods, FLOOR, times * pod_minutes, times * minutes, nightly)
    return after / before


@quantity("x", "length of an evening, over the measured one, at which a month costs 26 % less")
def break_even(evening, batch, pods):
    """Over ``pods`` fixed pods; negative where the floor alone costs more than that."""
    return claims.break_even(SHARE, pods, FLOOR, *parts(evening, batch))


def parts(evening, batch):
    """Pod-minutes of one evening, its minutes, and pod-minutes of one batch, at real time."""
    minutes = (evening.end - evening.profile_start) / 60 * evening.scale.time
    return cost(evening).real_pod_minutes.number, minutes, cost(batch).real_pod_minutes.number
