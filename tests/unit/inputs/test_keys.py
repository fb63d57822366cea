"""Entities are Zipf-distributed by seed, and their keys go to the partitions that Kafka gives them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.inputs.keys import Entities, partitions_of, shares
from lab.inputs.profile import Profile, Step
from tests.thoroughness import examples


@settings(max_examples=examples(20))
@given(st.integers(0, 2**32), st.lists(st.integers(0, 5_000), min_size=1, max_size=8))
def test_ids_do_not_depend_on_the_sizes_asked_for(seed, sizes):
    """The n-th id is a function of seed and n alone."""
    whole = Entities(seed, entities=1000).take(sum(sizes))
    source = Entities(seed, entities=1000)
    assert np.array_equal(whole, np.concatenate([source.take(size) for size in sizes]))


@settings(max_examples=examples(20))
@given(st.integers(0, 2**32), st.integers(1, 2000))
def test_ranks_are_spread_one_to_one(seed, entities):
    """Every rank has an id of its own, within range."""
    ids = Entities(seed, entities=entities).ids_of_ranks(np.arange(entities))
    assert sorted(ids.tolist()) == list(range(entities))


def test_the_hottest_entity_has_its_share():
    """With s = 1.1 over 1000 entities the hottest draws 1 / sum k^-1.1 of all events."""
    source = Entities(7, entities=1000)
    hottest = source.ids_of_ranks(np.array([0]))[0]
    share = 1 / np.sum(np.arange(1, 1001) ** -1.1)
    drawn = np.mean(source.take(200_000) == hottest)
    assert abs(drawn - share) < 0.005


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
    found = shares(traffic, 1, 24, 100_000)
    counts = np.bincount(partitions_of(Entities(1, 100_000, zipf).take(traffic.total), 24))
    assert found.tolist() == (counts / counts.sum()).tolist()
    assert (found != shares(traffic, 2, 24, 100_000)).any()
    assert (found.max() > 2 / 24) is np.bool_(zipf > 1)
