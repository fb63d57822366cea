"""Faults: does a group come through faults while it scales out and in?

Hypothesis. Whatever is killed and stopped while bursts scale a group, no message is lost, each copy is one that a fault left in
flight, and what decides the replicas is back soon after.

Method. Profile ``ten-bursts`` on ``lag-4500`` with a window down of a minute and a floor of 4 pods or of none. A schedule of
faults of every kind, one in 4 s, drawn anew for each seed. For some a proxy cuts off, slows or loses what consumers and
broker send; for some there is poison.

Asserted. The invariants of faults: each event at least once, each copy explained, replicas within their bounds and not zero
while there is lag, an HPA that decides again as its model does. Only poison is dead.

Refuted by one message lost or one copy unexplained.
"""

import allure
import pytest

from lab.inputs.faults import KILL, KINDS, NETWORK, Faults
from lab.inputs.variant import policy
from tests.experiments.workloads import slim
from tests.scenarios.zero_loss.measure.deadletters import dead_letters

FLOORS, SEEDS, INTERVAL_S = (4, 0), 9, 4.0
FEW_SEEDS, NETWORK_KINDS, POISON_RATE = 3, (KILL, *NETWORK), 0.002
pytestmark = [pytest.mark.faults, allure.epic("Scaling on lag"), allure.feature("Faults")]


def pytest_generate_tests(metafunc):
    """A test for each floor and seed, from the seed of --faults on, and some more; with --replay-faults one a floor."""
    first, replayed = (metafunc.config.getoption(f"lab_{name}") for name in ("faults", "replay_faults"))
    first = 1 if first is None else first
    seeds = [None] if replayed else range(first, first + SEEDS)
    plans = [pytest.param(floor, seed, KINDS, 0, id=f"{floor}-{seed}") for seed in seeds for floor in FLOORS]
    others = (("network", NETWORK_KINDS, 0), ("poison", KINDS, POISON_RATE))
    for seed in () if replayed else seeds[:FEW_SEEDS]:
        plans += [pytest.param(FLOORS[0], seed, *how, id=f"{FLOORS[0]}-{seed}-{name}") for name, *how in others]
    metafunc.parametrize(("floor", "seed", "kinds", "poison_rate"), plans)


@pytest.mark.duration(135)
@allure.story("Bursts scale a group out and in, and what it stands on fails meanwhile")
def test_a_group_comes_through_faults(trials, evidence, floor, seed, kinds, poison_rate):
    """One trial under a schedule of its own."""
    drawn = {} if seed is None else {"faults": Faults(seed, interval_s=INTERVAL_S, kinds=kinds)}
    bursts = policy("lag-4500", min_replicas=floor, scale_down_window=60)
    work = slim(session_timeout_ms=6000, poison_rate=poison_rate)
    runs = trials.run(profile="ten-bursts", policy=bursts, workload=work, **drawn)

    with evidence.of(runs) as claim:
        if poison_rate:
            letters = dead_letters(runs)
            claim.invariant(letters.without_letter == 0, "each poison message is a dead letter")
            claim.invariant(letters.surplus == 0, "and no other message is")
