"""The trials that several parts of the scenario judge."""

import pytest

from tests.scenarios.ride_hailing import claims
from tests.scenarios.ride_hailing.trials import EVENING, FARES, policy


@pytest.fixture
def evening(trials):
    """Friday evening on the text's ScaledObject."""
    return trials.run(**EVENING)


@pytest.fixture
def batch(trials):
    """A night's batch of fares on the text's ScaledObject."""
    return trials.run(profile="fares", policy=policy("fare-reconciliation"), workload=FARES, partitions=claims.PARTITIONS)
