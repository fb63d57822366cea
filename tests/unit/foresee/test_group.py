"""A group as a fluid: assignments, rebalances, and lag in whole messages that are conserved."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.foresee import whole
from lab.foresee.curve import ages
from lab.foresee.group import NOBODY, Consumers, Group, Rebalance, assigned
from lab.foresee.simulate import simulate
from lab.foresee.situation import Situation
from lab.inputs.profile import Profile, Step
from tests.thoroughness import examples
from tests.unit.foresee.groups import EVEN, P, lag_150, lasting


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


@given(
    st.lists(st.tuples(st.floats(0.01, 20), st.floats(0, 900)), min_size=1, max_size=12), st.integers(0, 24), st.floats(0, 30)
)
def test_what_a_group_did_last_is_in_flight(steps, members, in_flight_s):
    """Through any rates: what was processed in the last ``in_flight_s``, and before the start as in the first step."""
    group = Group(Consumers(30.0, 3.0, in_flight_s=in_flight_s), EVEN, 1)
    group.owner[0] = assigned(group.owner[0], members)
    at, done = [0.0], [0.0]
    for seconds, rate in steps:
        group.step(seconds, rate)
        at.append(at[-1] + seconds)
        done.append(group.processed.sum())
    since = at[-1] - in_flight_s
    before = np.interp(since, at, done) if since >= 0 else since * done[1] / at[1]
    assert (group.lags - group.backlog).sum() == pytest.approx(done[-1] - before, abs=1e-6)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.tuples(st.floats(12, 200), st.floats(100, 2300)), min_size=1, max_size=6), st.floats(0.1, 10))
def test_a_group_that_keeps_up_is_as_late_as_its_commits(steps, in_flight_s):
    """Whenever the rate changes, and whatever to: the oldest event that is not committed came ``in_flight_s`` ago."""
    begins = np.cumsum([0.0, *(seconds for seconds, _ in steps)])
    traffic = Profile(tuple(Step(at, rate, "spike") for at, (_, rate) in zip(begins[:-1], steps, strict=True)), begins[-1])
    here = Situation(traffic, EVEN, Consumers(100.0, 3.0, in_flight_s=in_flight_s))
    at, age = ages(simulate(here, lag_150(minReplicaCount=P)), here.arrivals)
    assert age[at > in_flight_s] == pytest.approx(in_flight_s, abs=0.02)  # lag is in whole messages


AMOUNTS = st.lists(st.floats(0, 50), min_size=1, max_size=200).map(np.array)
MANY = (1, 12, 100, 1000)


@given(AMOUNTS)
def test_each_is_rounded_and_their_sum_is_the_floor_of_all(amounts):
    """Up or down by less than a message, whatever the amounts."""
    found = whole.by_partition(amounts)
    assert found.sum() == whole.total(amounts) == np.floor(amounts.sum() + whole.ROUNDING)
    assert (np.abs(found - amounts) < 1).all()
    assert (found == np.floor(found)).all()


@given(
    st.lists(st.tuples(st.floats(0.01, 20), st.floats(0, 500)), min_size=1, max_size=8), st.integers(0, 12), st.integers(1, 90)
)
def test_a_group_shows_the_whole_messages_that_it_has(steps, members, partitions):
    """Through any rates, pods and partitions: whole messages on partitions, none missing and none too many."""
    group = Group(Consumers(30.0, 3.0, in_flight_s=2.5), np.full(partitions, 1 / partitions), 1)
    group.owner[0] = assigned(group.owner[0], members)
    for seconds, rate in steps:
        group.step(seconds, rate)
        lags = group.lags[0]
        assert whole.by_partition(lags).sum() == whole.total(lags) <= lags.sum() + whole.ROUNDING < whole.total(lags) + 1.001


@given(AMOUNTS, st.lists(st.floats(0, 5), min_size=1, max_size=10))
def test_what_only_grows_is_never_counted_down(amounts, growth):
    """Ends and commits; and where all partitions grow alike, their lag as well: a message stays where it has come."""
    before = np.zeros(len(amounts))
    for factor in np.cumsum(growth):
        now = whole.counts(amounts * factor)
        assert (now >= before).all()
        assert (np.abs(now - amounts * factor) <= 1).all()
        before = now
    even = [whole.by_partition(np.full(len(amounts), factor)) for factor in np.cumsum(growth)]
    assert all((later >= earlier).all() for earlier, later in pairwise(even))


def trickle(rate, partitions, **consumers):
    """``rate`` messages/s from 300 s on, after none."""
    traffic = Profile((Step(0, 0, "baseline"), Step(300, rate, "spike")), 3600.0)
    return Situation(traffic, np.full(partitions, 1 / partitions), Consumers(10.0, 20.0, **consumers))


@pytest.mark.parametrize("partitions", MANY)
def test_one_message_wakes_a_group_of_any_size(partitions):
    """0.1/s wake at KEDA's first poll after 300 s; what lasts is seen as soon, where half a message a second is too many."""
    assert simulate(trickle(0.1, partitions), lag_150(minReplicaCount=0, lagThreshold="10")).changes[0] == (360.0, 0, 1)
    slow = lasting(minReplicaCount=1, lagThreshold="20", sustainSeconds="60", allowIdleConsumers="true")
    first, same = (simulate(trickle(10.5, count), slow).changes[0] for count in (partitions, 1))
    assert first == same


@settings(max_examples=examples(40), deadline=None)
@given(st.floats(0.05, 9), st.floats(0, 5), st.integers(1, 40), st.integers(0, 20), st.sampled_from(MANY[1:]))
def test_partitions_alone_change_no_decision(rate, in_flight, threshold, activation, partitions):
    """One pod at most, which a trickle may wake and let sleep: over many partitions it does so as over one."""
    scaled = lag_150(minReplicaCount=0, maxReplicaCount=1, lagThreshold=str(threshold), activationLagThreshold=str(activation))
    one, many = (simulate(trickle(rate, count, in_flight_s=in_flight), scaled) for count in (1, partitions))
    assert many.changes == one.changes
    assert (np.abs(many.lag - one.lag) <= 1).all()
