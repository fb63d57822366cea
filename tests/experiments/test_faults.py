"""Faults: does a group come through faults while it scales out and in?

Hypothesis. Whatever is killed and stopped while bursts scale a group, no message is lost, each copy is one that a fault left in
flight, and what decides the replicas is back soon after.

Method. Profile ``ten-bursts`` on ``lag-4500`` with a window down of a minute, so that each burst scales out and in; with a
floor of 4 pods and of none. A schedule of faults of every kind, one in 4 s, drawn anew for each seed.

Asserted. The invariants of faults and nothing else: each event at least once, each copy explained, replicas within their bounds
and not zero while there is lag, an HPA that decides again as its model does.

Refuted by one message lost, or one copy that nothing explains.
"""

import allure
import pytest

from lab.inputs.faults import Faults
from lab.inputs.variant import policy
from tests.experiments.workloads import slim

FLOORS, SEEDS, INTERVAL_S = (4, 0), 9, 4.0
pytestmark = [pytest.mark.faults, allure.epic("Scaling on lag"), allure.feature("Faults")]


def pytest_generate_tests(metafunc):
    """A test for each floor and seed, from the seed of --faults on; with --replay-faults one for each floor."""
    first, replayed = (metafunc.config.getoption(f"lab_{name}") for name in ("faults", "replay_faults"))
    first = 1 if first is None else first
    seeds = [None] if replayed else range(first, first + SEEDS)
    metafunc.parametrize(("floor", "seed"), [(floor, seed) for seed in seeds for floor in FLOORS])


@pytest.mark.duration(135)
@allure.story("Bursts scale a group out and in, and what it stands on fails meanwhile")
def test_a_group_comes_through_faults(trials, evidence, floor, seed):
    """One trial under a schedule of its own."""
    drawn = {} if seed is None else {"faults": Faults(seed, interval_s=INTERVAL_S)}
    bursts = policy("lag-4500", min_replicas=floor, scale_down_window=60)
    runs = trials.run(profile="ten-bursts", policy=bursts, workload=slim(session_timeout_ms=6000), **drawn)

    with evidence.of(runs):
        pass
