"""Scenario payments: what contains a poison pill?

Hypothesis. A message that never succeeds stalls its partition, whose lag buys every pod it can, and none helps. Nor does a CPU
trigger, the text's safety net. Nothing helps but getting the message out of the way.

Method. Steady traffic that the floor of 3 pods takes on 6 partitions, and one poison pill that is tried for ever: on the
author's ScaledObject, with allowIdleConsumers, a CPU trigger, the persistent-lag scaler, limitToPartitionsWithLag and
excludePersistentLag. Then with a dead-letter topic.

Asserted. Where nothing contains it there are as many pods as partitions (more with allowIdleConsumers), and no message of its
partition more. Where something does, no step up. Only with a dead-letter topic does its partition go on.

Refuted by a step up where it is contained, or a partition that goes on without a dead letter.
"""

import allure
import pytest

from lab.inputs.variant import Variant, policy
from lab.judge.aggregate import total
from lab.measure.delivery import CONTRACT, DELIVERED, unaccounted
from tests.scenarios.payments.measure.poison import poison_stall
from tests.scenarios.payments.trials import SCALEDOBJECT, processor, run

pytestmark = [pytest.mark.scenario, allure.epic("Real systems"), allure.feature("Payments")]

PARTITIONS = 6
LAG_THRESHOLD = 250  # the author's: what one pod may have waiting
STALLS = "the experiment's design: the poison stalls"
STALL = "no pod brings a poisoned partition past its poison"
MOVES_ON = "the poison is out of the way: no more waits than one pod's share"
POISON = {"poison": "3:400", "dlq": "off", "cpu_request_m": 150}
CONTAINMENTS: dict[str, tuple[str | Variant, dict[str, str]]] = {
    "lag alone": ("scaledobject", {}),
    "allowIdleConsumers": (policy(SCALEDOBJECT, allow_idle_consumers=True), {}),
    "lag and CPU": ("lag-and-cpu", {}),
    "persistent-lag scaler": ("persistent-lag", {}),
    "limitToPartitionsWithLag": (policy(SCALEDOBJECT, limit_to_partitions_with_lag=True), {}),
    "excludePersistentLag": (policy(SCALEDOBJECT, exclude_persistent_lag=True), {}),
    "retry and DLQ": ("scaledobject", {"dlq": "on"}),
}


def further(name):
    """The case ``name``, beyond the half hour of ``tox -e scenario``."""
    return pytest.param(name, marks=pytest.mark.extended)


@pytest.fixture
def poisoned(trials):
    """Runs the poisoned traffic with one of CONTAINMENTS."""

    def once(name):
        chosen, settings = CONTAINMENTS[name]
        return run(trials, "payments-poison", chosen, processor(**POISON | settings), partitions=PARTITIONS)

    return once


@pytest.mark.parametrize("name", ["lag alone", *map(further, ["lag and CPU", "persistent-lag scaler"])])
@allure.story("Poison: a stalled partition buys every pod it can, and none helps")
def test_a_poison_pill_scales_out_for_nothing(poisoned, evidence, name):
    """One message that never succeeds: as many pods as there are partitions, and not a message of its partition more."""
    record = poisoned(name)
    over = (poison_stall(record).most / PARTITIONS).named("most replicas over the partitions")

    with evidence.of({name: record}) as claim:
        claim.control(poison_stall(record).progress == 0, STALL, STALLS)
        source = "text 2: poison pill"
        claim(over >= 1, "the group gets as many pods as can own a partition, for nothing", source)


@pytest.mark.extended
@allure.story("Poison: allowIdleConsumers goes past the partitions")
def test_idle_consumers_are_bought_too(poisoned, evidence):
    """On the way to maxReplicaCount, as the text has it: nothing stops at what can be of use."""
    record = poisoned("allowIdleConsumers")
    past = (poison_stall(record).most / (PARTITIONS + 1)).named("most replicas over the partitions and one")

    with evidence.of(record) as claim:
        claim.control(poison_stall(record).progress == 0, STALL, STALLS)
        claim(past > 1, "the group gets pods that can't even own a partition", "KEDA's docs: allowIdleConsumers")


@pytest.mark.parametrize("name", ["retry and DLQ", further("excludePersistentLag")])
@allure.story("Poison: what contains it")
def test_a_poison_pill_is_contained(poisoned, evidence, name):
    """No pod is bought for it; only with a DLQ does its partition go on."""
    record = poisoned(name)

    with evidence.of({name: record}, delivery=None) as claim:
        claim(poison_stall(record).scale_ups == 0, "a stalled partition buys no pods", "KEDA's docs of the setting")
        claim.invariant(unaccounted(record) == 0, DELIVERED, CONTRACT)
        claim.control(poison_stall(record).short == 0, "the poison is met", STALLS)
        if name == "retry and DLQ":
            claim(poison_stall(record).waiting <= LAG_THRESHOLD, MOVES_ON, "policy: lagThreshold 250")
        else:
            claim.control(poison_stall(record).progress == 0, STALL, STALLS)


@pytest.mark.extended
@allure.story("Poison: limitToPartitionsWithLag counts work in flight")
def test_partitions_at_work_are_partitions_with_lag(poisoned, evidence):
    """Every partition that is being worked on has a message or two uncommitted, so the limit lets the group scale out."""
    record = poisoned("limitToPartitionsWithLag")

    with evidence.of(record, delivery=None) as claim:
        claim.invariant(unaccounted(record) == 0, DELIVERED, CONTRACT)
        claim.control(poison_stall(record).progress == 0, STALL, STALLS)
        sentence = "a message in flight makes a partition lag, so the limit does not hold the group"
        claim(poison_stall(record).scale_ups > 0, sentence)


@pytest.mark.extended
@allure.story("Poison: side by side")
def test_what_contains_a_poison_pill(poisoned, evidence):
    """All of them in one table, on the same traffic."""
    records = {name: poisoned(name) for name in CONTAINMENTS}
    for name, record in records.items():
        found = poison_stall(record)
        figures = {"most replicas": found.most, "steps up": found.scale_ups, "waiting on the partition": found.waiting}
        figures |= {"committed past the poison": found.progress, "waiting on the others": found.others}
        evidence.report(name, figures | {"pod-minutes": found.pod_minutes, "of it above the floor": found.useless})

    with evidence.of(records) as claim:
        stuck = total(poison_stall(one).progress for name, one in records.items() if name != "retry and DLQ")
        claim.control(stuck == 0, STALL, STALLS)
        claim(poison_stall(records["retry and DLQ"]).waiting <= LAG_THRESHOLD, MOVES_ON, "policy: lagThreshold 250")
