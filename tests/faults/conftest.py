"""Runs trials on the session's cluster."""

import pytest

from lab.trial import runner


@pytest.fixture(scope="module")
def run(cluster, spark, tmp_path_factory):
    """Runs a trial, or the two sides of a duet; returns their records."""
    return lambda *sides: runner.run(cluster, sides, tmp_path_factory.mktemp("results"), spark)
