"""The trials that several parts of the scenario judge."""

import pytest

from tests.scenarios.ride_hailing import claims
from tests.scenarios.ride_hailing.trials import FARES, TRIPS, policy


@pytest.fixture
def evening(trials):
    """Friday evening on the text's ScaledObject, whose lagThreshold the scale divides like the time."""
    return trials.run(profile="trips", policy=policy("trip-analytics"), workload=TRIPS, partitions=claims.PARTITIONS)


@pytest.fixture
def batch(trials):
    """A night's batch of fares on the text's ScaledObject."""
    return trials.run(profile="fares", policy=policy("fare-reconciliation"), workload=FARES, partitions=claims.PARTITIONS)
