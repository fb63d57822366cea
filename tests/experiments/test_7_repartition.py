"""Experiment 7: what happens when partitions are added?

Hypothesis. Added partitions raise KEDA's cap. The group sees them at its next metadata refresh (default: 5 minutes) or
rebalance. With auto.offset.reset=latest what was written before the assignment is passed over in silence (KIP-1327).

Method. Profile ``repartition``: 30 pods' worth of traffic while 24 partitions become 48, on policy ``grow``, with reset
earliest and a refresh of 1 s and of 300 s, and with latest. The ledger counts what was passed over.

Asserted. With a refresh of a second new partitions are consumed within 10 s and the group goes past 24. Earliest passes over
nothing, latest does. A group at its ceiling (``lag-4500``) sees none of them. The forced rebalance dips by less than 20 % and
is over within 5 s.

Refuted by a dip of 20 % or more, or a message that earliest passes over.
"""

import allure
import pytest

from lab.inputs.events import Grow
from lab.inputs.inputs import REPLAYED
from lab.judge.bounds import DIP, RECOVERY_S
from lab.measure.delivery import AT_LEAST_ONCE
from tests.experiments.measure.repartition import ForcedRebalance, forced_rebalance, repartition
from tests.experiments.sources import DELIVERY
from tests.experiments.workloads import slim

pytestmark = [allure.epic("Scaling on lag"), allure.feature("7 Repartition")]

SHORT_MS, DEFAULT_MS = 1_000, 300_000
WHOLE = "with reset earliest new partitions are read from their beginning"
RISES = "the ceiling of the replicas is P, and P has grown"


@pytest.fixture
def grown(trials):
    """Runs the change with consumers of these settings, named; (reset, refresh in ms) for each."""

    def run(policy="grow", **settings):
        plan = {"profile": "repartition", "policy": policy, "until": REPLAYED, "during": {"repartition": Grow(48)}}
        works = {
            name: slim(auto_offset_reset=reset, metadata_refresh_ms=refresh_ms)
            for name, (reset, refresh_ms) in settings.items()
        }
        return trials.blocks({name: plan | {"workload": work} for name, work in works.items()})

    return run


def report_forced(evidence, found):
    """Writes what the rebalance that new partitions force costs into the report; runs by name."""
    for name, runs in found.items():
        forced = forced_rebalance(runs)
        evidence.report(name, {field: getattr(forced, field) for field in ForcedRebalance.declared()})


@pytest.mark.spike
@pytest.mark.duration(40)
@allure.story("24 partitions become 48: none is passed over, and the ceiling rises")
def test_the_ceiling_rises_with_the_partitions(grown, evidence):
    """A refresh of a second finds all of them while the trial lasts, and KEDA asks for more pods than there were partitions."""
    found = grown(**{"refresh 1 s": ("earliest", SHORT_MS)})
    (short,) = found.values()
    report_forced(evidence, found)

    with evidence.of(found, delivery=AT_LEAST_ONCE) as claim:
        claim.invariant(repartition(short).skipped == 0, WHOLE, DELIVERY)
        claim(repartition(short).unconsumed == 0, "a refresh of a second finds each new partition", "Kafka: metadata refresh")
        claim(repartition(short).after > 24, RISES, "policy: the ceiling is P")


@pytest.mark.extended
@allure.story("New partitions are consumed soon and whole")
def test_new_partitions_are_consumed_whole(grown, evidence):
    """A short refresh finds them, earliest reads them from their beginning, and the ceiling rises."""
    found = grown(**{"refresh 1 s": ("earliest", SHORT_MS), "refresh 300 s": ("earliest", DEFAULT_MS)})
    short, default = found.values()
    report_forced(evidence, found)
    grew = repartition(short)

    with evidence.of(found) as claim:
        claim(forced_rebalance(short).depth < DIP, "the rebalance that new partitions force costs no more than any step")
        claim(forced_rebalance(short).recovery_s < RECOVERY_S, "the group soon has its throughput back")
        claim(grew.consumed_s < 10, "a metadata refresh of a second finds the new partitions soon", "pilot of experiment 7")
        claim.invariant(grew.skipped == 0, WHOLE, DELIVERY)
        claim.invariant(
            repartition(default).skipped == 0, "with the default refresh new partitions are read late, but whole", DELIVERY
        )
        claim(grew.after > 24, RISES, "policy: the ceiling is P")

    evidence.conclude(
        "topic.metadata.refresh.interval.ms",
        SHORT_MS,
        f"all 24 new partitions consumed after {grew.consumed_s:.1f} s; "
        f"with the default of 300 s {repartition(default).unconsumed} were never consumed in the trial",
    )


@pytest.mark.extended
@allure.story("latest passes records over in silence")
@allure.label("known", "KIP-1327")
def test_latest_passes_records_over(grown, evidence):
    """What was written before the assignment is never read."""
    found = grown(**{"refresh 1 s": ("latest", SHORT_MS)})
    (short,) = found.values()

    with evidence.of(found, delivery=None) as claim:
        claim(repartition(short).skipped > 0, "with reset latest the messages from before the assignment are lost", "KIP-1327")

    evidence.conclude("auto.offset.reset", "earliest", f"latest passed over {repartition(short).skipped:,} messages")


@pytest.mark.extended
@allure.story("A group at its ceiling does not see new partitions")
def test_a_group_at_its_ceiling_does_not_see_them(grown, evidence):
    """Without a scale step nothing makes the group look before the default refresh of five minutes."""
    found = grown("lag-4500", **{"refresh 300 s, 24 replicas at most": ("earliest", DEFAULT_MS)})
    (ceiling,) = found.values()

    with evidence.of(found) as claim:
        unseen = repartition(ceiling).unconsumed
        claim(unseen == 24, "a group that does not rebalance does not see new partitions", "Kafka: metadata refresh")
