"""A group as a fluid: assignments, rebalances, and messages that are conserved."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.foresee.group import NOBODY, Consumers, Group, Rebalance, assigned
from tests.unit.foresee.groups import EVEN, P


@given(st.integers(1, 60), st.lists(st.integers(0, 70), min_size=1, max_size=8))
def test_an_assignment_is_even_and_sticky(partitions, sizes):
    """No two members differ by more than one partition, and no more partitions move than the new quotas ask for."""
    owners = np.full(partitions, NOBODY)
    for members in sizes:
        before, owners = owners, assigned(owners, members)
        if not members:
            assert (owners == NOBODY).all()
            continue
        counts = np.bincount(owners, minlength=members)
        assert counts.max() - counts.min() <= 1
        had = np.bincount(before[(before >= 0) & (before < members)], minlength=members)
        kept = int((owners == before).sum())
        floor, more = divmod(partitions, members)
        quota = [floor + 1] * more + [floor] * (members - more)
        assert kept == sum(min(have, most) for have, most in zip(sorted(had, reverse=True), quota, strict=True))


@pytest.mark.parametrize(
    ("balancer", "stands_still"), [("range", P), ("roundrobin", P), ("cooperative-sticky", 0), ("consumer", P // 2)]
)
def test_what_a_rebalance_stops(balancer, stands_still):
    """From 2 to 4 members: eager stops everything at once, cooperative nothing at first, KIP-848 what moves."""
    owner = np.full(P, NOBODY)
    group = Rebalance(Consumers(100, 3.0, balancer), owner, 2)
    group.resize(10.0, 4)
    assert (owner == NOBODY).sum() == stands_still
    rounds = 0
    while group.ends is not None:
        group.round(group.ends)
        rounds += 1
    assert rounds == (2 if balancer == "cooperative-sticky" else 1)
    assert group.working == 4
    assert np.bincount(owner).tolist() == [6] * 4


def test_who_comes_during_a_round_is_in_it():
    """The classic protocol: a round that is on takes late joiners in, and revokes for all of them."""
    group = Rebalance(Consumers(100, 3.0, notice_s=0.5, round_s=1.0), np.full(P, NOBODY), 2)
    group.resize(10.0, 3)
    group.resize(10.3, 4)
    assert group.ends == 10.5
    group.round(10.5)
    assert group.ends == 11.5
    group.round(11.5)
    assert (group.ends, group.working) == (None, 4)


@given(
    st.lists(st.tuples(st.floats(0.01, 20), st.floats(0, 5_000)), min_size=1, max_size=12),
    st.integers(1, 24),
    st.floats(1, 500),
)
def test_messages_are_conserved(steps, members, rate):
    """What arrived is either processed or in the backlog, and no pod processes faster than it can."""
    group = Group(Consumers(rate, 3.0), EVEN, 1)
    group.owner[0] = assigned(group.owner[0], members)
    arrived = 0.0
    for seconds, arriving in steps:
        before = group.processed.sum()
        group.step(seconds, arriving)
        arrived += seconds * arriving
        assert group.processed.sum() + group.backlog.sum() == pytest.approx(arrived)
        assert group.processed.sum() - before <= members * rate * seconds * (1 + 1e-9)
    assert (group.backlog >= -1e-9).all()
