"""Certificates for a scaler on loopback."""

import pytest

from lab.cluster.certs import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """An authority, and a certificate for loopback."""
    made = Authority(tmp_path_factory.mktemp("certs"))
    return made, made.issue("tls", "lag-scaler", hosts=("127.0.0.1", "localhost"))
