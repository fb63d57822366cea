"""Scenario zero loss, three brokers: is what a broker acknowledged processed, when brokers die while the group scales?

Hypothesis. With three copies of each partition, two of which acknowledge, no single broker's death loses an acknowledged
message: not the leader's, nor the coordinator's, nor one for good. With one copy the same death loses what the broker had.

Method. The author's ScaledObject and workload on three KRaft brokers. Profile ``brokers-die``: while the group goes from 6
pods to 24, the broker that leads most partitions gets SIGKILL, later the group's coordinator, each started again. In the lull
one dies for good. The control (``broker-dies``): the leader dies with its disk, with one copy and with three.

Asserted. All acknowledged messages are processed or dead letters; those whose acknowledgement never came are counted apart.
One copy breaks just that.

Refuted by one acknowledged message that is neither.
"""

import allure
import pytest

from lab.inputs.events import COORDINATOR, LEADER, LOST, Brokers, KillBroker, StartBrokers
from lab.inputs.inputs import REPLAYED
from lab.judge.aggregate import total
from lab.measure.delivery import delivery
from lab.measure.scaling import scale_events
from tests.experiments.sources import DESIGN
from tests.scenarios.zero_loss.measure.failover import acknowledged, failover
from tests.scenarios.zero_loss.test_zero_loss import POLICY, WORKLOAD

pytestmark = [pytest.mark.scenario, pytest.mark.extended, allure.epic("Real systems"), allure.feature("Zero loss")]

PROMISE = "text 5: zero message loss"
KEPT = "every acknowledged message is processed or a dead letter"


@allure.story("Brokers die while the group scales")
def test_no_acknowledged_message_is_lost_when_brokers_die(trials, evidence):
    """Leader, coordinator, and one broker for good, while the group goes from 6 pods to 24 and back."""
    during = {
        "leader": KillBroker(LEADER),
        "leader-starts": StartBrokers(),
        "coordinator": KillBroker(COORDINATOR),
        "coordinator-starts": StartBrokers(),
        "lost": KillBroker(LEADER),
    }
    record = trials.run(profile="brokers-die", policy=POLICY, workload=WORKLOAD, brokers=Brokers(), during=during)
    found, steps, died = acknowledged(record), scale_events(record), failover(record)
    evidence.report(
        "three brokers",
        {
            "acknowledged": found.acked,
            "unknown": found.unknown,
            "processed": found.processed,
            "dead letters": found.dead,
            "processed twice": delivery(record).doubled,
            "longest standstill (s)": died.standstill_s,
            "until in sync again (s)": died.in_sync_s,
            "most replicas": steps.most_replicas,
        },
    )

    with evidence.of(record, delivery=None) as claim:
        claim.control(died.killed == 3, "three brokers were killed", DESIGN)
        claim.control(steps.scale_ups > 0, "the group was scaled up meanwhile", DESIGN)
        claim.control(steps.scale_downs > 0, "the group was scaled down meanwhile", DESIGN)
        claim.invariant(found.gone == 0, KEPT, PROMISE)
        claim.invariant(found.surplus == 0, "no message is on the topic that was not sent", PROMISE)
        source = "KIP-98: idempotent producer"
        claim.invariant(found.resent == 0, "an idempotent producer's retries write no message twice", source)
        source = "delivery contract (docs/decisions/11, 18)"
        claim.invariant(delivery(record).uncommitted == 0, "the group has committed all that is on the topic", source)
        claim(steps.above_floor_at_end == 0, "the group gives back what it took", "policy: the floor")


@allure.story("One copy and a lost disk")
def test_one_copy_loses_what_three_keep(trials, evidence):
    """The same death of the same broker, with its disk: three copies lose nothing, one loses what that broker had."""
    during = {"leader": KillBroker(LEADER, LOST), "leader-starts": StartBrokers()}
    plan = {"profile": "broker-dies", "policy": POLICY, "workload": WORKLOAD, "during": during}
    three = plan | {"brokers": Brokers()}
    one = plan | {"brokers": Brokers(replication=1, min_insync=1), "until": REPLAYED}
    runs = trials.blocks({"three copies": three, "one copy": one})

    for name, record in runs.items():
        found, died = acknowledged(record), failover(record)
        figures = {"acknowledged": found.acked, "unknown": found.unknown, "on the topic": found.stored}
        evidence.report(name, figures | {"gone": found.gone, "longest standstill (s)": died.standstill_s})

    with evidence.of(runs, delivery=None) as claim:
        claim.invariant(acknowledged(runs["three copies"]).gone == 0, KEPT, PROMISE)
        claim.control(
            acknowledged(runs["one copy"]).gone > 0,
            "with one copy the same death loses acknowledged messages, and the ledger says so",
            f"{DESIGN}: replication 1",
        )
        killed = total(failover(record).killed for record in runs.values())
        claim.control(killed == 2, "a broker was killed in each trial", DESIGN)
