"""The trials that several parts of the scenario judge."""

import pytest
import yaml

from lab import yamlfile
from tests.scenarios.ride_hailing import claims
from tests.scenarios.ride_hailing.trials import FARES, TRIPS_COMMITTED_SOONER, policy


@pytest.fixture
def evening(trials, tmp_path):
    """Friday evening on the text's ScaledObject, its lagThreshold divided like the scale divides the time."""
    content = yamlfile.read(policy("trip-analytics"))
    metadata = content["spec"]["triggers"][0]["metadata"]
    metadata["lagThreshold"] = str(round(int(metadata["lagThreshold"]) / trials.scale.time))
    file = tmp_path / f"trip-analytics-{metadata['lagThreshold']}.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    return trials.run(profile="trips", policy=file, workload=TRIPS_COMMITTED_SOONER, partitions=claims.PARTITIONS)


@pytest.fixture
def batch(trials):
    """A night's batch of fares on the text's ScaledObject."""
    return trials.run(profile="fares", policy=policy("fare-reconciliation"), workload=FARES, partitions=claims.PARTITIONS)
