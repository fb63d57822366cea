"""Ride-hailing: does trip analytics keep up on a Friday evening (docs/ride-hailing.md)?

Hypothesis. With the text's ScaledObject trip analytics keeps up with 1,400 events/s. Two fixed pods fall behind by 1,000 a
second.

Method. The ScaledObject as its author deploys it (manifests/ridehailing), whose times and lags the scale divides alike, and two
fixed pods, on the text's timeline. Its table is set beside three others, minute by minute: what its own numbers add up to, what
the model of KEDA, HPA and group foretells at real time, and what was measured.

Asserted. The growth of lag in both cases, the foretold peak, the first step at T+45 and the lag at T+600, each with the text's
number. Nothing is lost or processed twice.

Refuted by a number beyond the text's.
"""

import allure
import pytest

from lab.judge.quantity import Quantity
from lab.measure import lateness
from lab.measure.cost import cost
from lab.measure.lag import growth
from lab.measure.scaling import scale_events
from tests.scenarios.ride_hailing import claims
from tests.scenarios.ride_hailing.evening import TABLE, foretold, report_timeline, simulated
from tests.scenarios.ride_hailing.measure.evening import first_step, lag_over_floor
from tests.scenarios.ride_hailing.trials import BEFORE

pytestmark = [pytest.mark.scenario, allure.epic("Real systems"), allure.feature("Ride-hailing")]


@allure.story("Trip analytics")
def test_trip_analytics_keeps_up_with_friday_evening(trials, evidence, evening):
    """The text's timeline row by row, with its ScaledObject and with two pods."""
    fixed = trials.run(**BEFORE)
    report_timeline(evidence, evening, foretold())
    for name, record in {"ScaledObject": evening, "two pods": fixed}.items():
        figures = {"oldest event (s, as seen)": lateness.oldest(record), "idle ratio": cost(record).idle_ratio}
        figures |= {"pod-minutes (real)": cost(record).real_pod_minutes, "flips": scale_events(record).flips}
        evidence.report(name, figures)
    peak = Quantity("peak lag, foretold at real time", "messages", float(simulated().lag.max()))

    with evidence.of({"ScaledObject": evening, "two pods": fixed}) as claim:
        fixed_growth = growth(fixed, "spike")
        source = "text 4: 1,000 a second"
        claim.control(fixed_growth > 950, "two fixed pods fall behind by 1,400 events/s less their 400", source)
        late = growth(evening, "spike", last=0.5)
        claim(late < 0, "in the second half of 1,400 events/s the group with the ScaledObject catches up", "text 4: catches up")
        claim(peak < 35_000, "lag stays below the highest of the text's own table", TABLE)
        claim(first_step(evening) < 45, "KEDA takes the first step by the text's T+45", TABLE)
        claim(lag_over_floor(evening, claims.TIMELINE[-1].at) <= 1, "the group has caught up by T+600", TABLE)
        claim(scale_events(evening).above_floor_at_end == 0, "the group gives back what it took", "policy: the floor")
