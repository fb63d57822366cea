"""The session's cluster, where it is one of kind."""

import pytest


@pytest.fixture
def ours(cluster):
    """The session's cluster, which must be of kind."""
    assert cluster.runtime == "kind", "tests/kind needs --cluster kind"
    return cluster
