"""Fixtures of the scaler's tests: certificates on loopback, and a trigger that lags."""

import pytest

from lab.cluster.certs import Authority
from tests.unit.programs.lagscaler.fakes import Scaled


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """An authority, and a certificate for loopback."""
    made = Authority(tmp_path_factory.mktemp("certs"))
    return made, made.issue("tls", "lag-scaler", hosts=("127.0.0.1", "localhost"))


@pytest.fixture
def lagging():
    """A trigger whose two partitions have been 300 and 200 behind for longer than sustainSeconds."""
    scaled = Scaled()
    scaled.kafka.lags(300, 200)
    state = scaled.state()
    scaled.after(10, 5)
    assert scaled.metric(state) == 500
    return scaled, state
