"""Which broker coordinates a group, and whether all copies are in sync: pure, from a cluster's metadata."""

import pytest

from lab.kafka.replicas import Partition, coordinating, whole

ALL, TWO = frozenset({1, 2, 3}), frozenset({1, 3})


@pytest.mark.parametrize(
    ("group", "hashed"),
    [
        ("a", 97),
        ("ab", 31 * 97 + 98),
        ("enrich", 1_298_335_483),  # -1298335483 in Java: its amount counts
        ("polygenelubricants", 0),  # the least int, whose amount is no int: Kafka takes 0
    ],
)
def test_a_groups_coordinator_follows_from_javas_hash_of_its_name(group, hashed):
    """As Kafka takes it; for 50 partitions, which is its default, and for 4."""
    assert coordinating(group, 50) == hashed % 50
    assert coordinating(group, 4) == hashed % 4


def test_a_topic_is_whole_when_every_copy_is_in_sync():
    """A copy that lags behind, and a partition that no broker leads, are not."""
    good = Partition(1, ALL, ALL)
    assert whole([good, good])
    assert not whole([good, Partition(1, ALL, TWO)])
    assert not whole([good, Partition(None, ALL, ALL)])
