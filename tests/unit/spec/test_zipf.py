"""Entity ids: skewed as declared, the same in every run."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.spec.keys import Entities


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 5_000), min_size=1, max_size=8))
def test_ids_do_not_depend_on_the_sizes_asked_for(seed, sizes):
    """The n-th id is a function of seed and n alone."""
    whole = Entities(seed, entities=1000).take(sum(sizes))
    source = Entities(seed, entities=1000)
    assert np.array_equal(whole, np.concatenate([source.take(size) for size in sizes]))


@settings(max_examples=20)
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
