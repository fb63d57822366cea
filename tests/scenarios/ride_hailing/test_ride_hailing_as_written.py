"""Ride-hailing: is what the text gets wrong found (docs/ride-hailing.md)?

Hypothesis. A field that KEDA does not know, and rows of the timeline that contradict the text's own numbers, can be found
before any cluster.

Method. The matching's ScaledObject as printed; the timeline beside the lag that its rates and replicas add up to; the users
that its rate takes.

Asserted. The field is named as one that KEDA does not read, and the rows from T+45 on are too high.

Refuted by a field of which nothing is said, or a row that adds up.
"""

import allure
import pytest

from lab.inputs import scaledobject_file
from tests.scenarios.ride_hailing import claims
from tests.scenarios.ride_hailing.programs.shape import CYCLE_S
from tests.scenarios.ride_hailing.trials import policy

pytestmark = [pytest.mark.scenario, allure.epic("Real systems"), allure.feature("Ride-hailing")]


@allure.story("As the text has it")
def test_what_the_text_gets_wrong_is_said():
    """A field KEDA does not read is named; a row of the timeline that its own numbers contradict is found."""
    file = policy("driver-matching-as-written")
    assert any(one.endswith("metadata.metricName: KEDA ignores it") for one in scaledobject_file.load(file).remarks)
    wrong = [row.at for row, own in zip(claims.TIMELINE, claims.implied(claims.TIMELINE), strict=True) if row.lag < own / 1.1]
    assert wrong == []  # never too low ...
    high = [row.at for row, own in zip(claims.TIMELINE, claims.implied(claims.TIMELINE), strict=True) if row.lag > own * 1.1]
    assert high == [45, 60, 90, 120, 180, 360, 480, 600]  # ... and from T+45 on too high
    assert claims.TIMELINE[4].rate * CYCLE_S == 175  # of the 5,000 that it starts
