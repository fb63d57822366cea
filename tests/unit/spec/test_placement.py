"""Where a key goes: as Kafka's own clients place it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.spec.keys import partitions_of, shares
from lab.spec.profile import Profile, Step


def murmur2(data):
    """``Utils.murmur2`` of Kafka's Java client, line by line."""
    mask = 0xFFFFFFFF
    m, h = 0x5BD1E995, (0x9747B28C ^ len(data)) & mask
    for at in range(0, len(data) // 4 * 4, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        k = (k ^ (k >> 24)) * m & mask
        h = (h * m & mask) ^ k
    h = (h ^ (h >> 13)) * m & mask
    return h ^ (h >> 15)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20), st.integers(1, 1000))
def test_keys_are_placed_as_murmur2_says(ids, count):
    """The same partition as the reference, for any 8 bytes."""
    expected = [(murmur2(one.to_bytes(8, "big")) & 0x7FFFFFFF) % count for one in ids]
    assert partitions_of(np.array(ids, dtype=np.uint64), count).tolist() == expected


@pytest.mark.parametrize("zipf", [0.0, 1.1])
def test_shares_are_those_of_the_seed(zipf):
    """They sum to 1, depend on the seed, and are even only where keys are."""
    traffic = Profile((Step(0, 2000, "baseline"),), 50.0, zipf)
    found = shares(traffic, 1, 24)
    assert found.sum() == pytest.approx(1)
    assert (found == shares(traffic, 1, 24)).all()
    assert (found != shares(traffic, 2, 24)).any()
    assert (found.max() > 2 / 24) is np.bool_(zipf > 1)
