"""Scenario zero loss: a published text's promise that every message gets processed, put to the test.

Hypothesis. A consumer that commits after its work, retries a failing message after 1, 2 and 4 s and then makes it a dead letter
ends every message in one of two ways, however the group is scaled and even when a pod is killed: processed, or in the
dead-letter topic with its reason. A retry stops its own partition, whose order is kept, and no other. maxReplicaCount 30 on 24
partitions gives no 30 consumers: KEDA caps what it reports, since allowIdleConsumers is false.

Method. The author's ScaledObject (manifests/zeroloss), adopted: only what ties it to his cluster is replaced. Profile
``zero-loss``: a rate that 6 pods take, one that 24 don't quite take, and the first again while the group scales down. 1 % of
the messages fail at first, 0.1 % for ever, chosen by (seed, seq), and computed anew from the record to check what became of
them. In the middle the pod that owns most partitions gets SIGKILL. Spark reconciles all messages with receipts and letters.

Asserted. What the hypothesis says. What is processed twice was the killed pod's, and done within a second of the kill: the
text's guarantee is at least once. What the text promises and does not hold is a breach here, and in docs/zero-loss.md.
"""

import allure
import pytest

from lab import paths
from lab.errors import NoData, known
from lab.judge import objective
from lab.measure.cap import cap
from lab.measure.cost import cost
from lab.measure.deadletters import dead_letters
from lab.measure.flips import stability
from lab.measure.idle import idle
from lab.measure.integrity import integrity
from lab.measure.killed import killed
from lab.measure.retrying import partition_rate, retrying
from lab.spec.workload import PARTITIONS, Workload

pytestmark = [pytest.mark.scenario, allure.epic("Real systems"), allure.feature("Zero loss")]

POLICY = paths.MANIFESTS / "zeroloss" / "scaledobject.yaml"
# 100 messages/s a pod. Retries as the text has them: 1, 2 and 4 s, then the dead-letter topic.
SHARES = (0.01, 0.001)  # of messages that fail at first, and for ever
WORKLOAD = Workload(process_ms="5-15", concurrency=1, cpu_request_m=50, fail_rate=SHARES[0], poison_rate=SHARES[1])


def delays_s(record):
    """The delays before each retry, as this record's scale compressed them."""
    return [1 / record.scale.time * delay for delay in (1, 2, 4)]


@pytest.fixture
def sustained(trials):
    """The group under sustained traffic, with failures, scaled up and down, and one pod killed."""
    return trials.run(profile="zero-loss", policy=POLICY, workload=WORKLOAD, fault="sigkill")


@pytest.fixture
def told(evidence):
    """Sets what the text says beside what was measured; a figure that the record does not hold is no data."""

    def figure(claim, measure):
        try:
            return evidence.report(claim, {"measured": measure()})
        except NoData:
            return evidence.report(claim, {"measured": None})

    return figure


@allure.story("Every message is processed or a dead letter")
def test_every_message_is_processed_or_a_dead_letter(sustained, evidence, told):
    """produced == processed + dead, dead exactly as injected; and what is doubled is the kill's."""
    told('"zero message loss": messages lost', lambda: integrity(sustained).lost + integrity(sustained).unseen)
    told('"every message gets processed": messages that were not, but are dead letters', lambda: dead_letters(sustained).dead)
    told('"every time": messages processed twice', lambda: integrity(sustained).doubled)
    told('"after 3 retries": attempts at a dead letter', lambda: float(sustained.dead_letters["attempts"].max()))
    told("dead letters written twice", lambda: dead_letters(sustained).again)
    told("partitions of the killed pod", lambda: len(killed(sustained).partitions))
    told("their longest standstill (s)", lambda: known(killed(sustained).standstill_s, "receipt after the kill"))

    with evidence.of(sustained) as judge:
        judge(objective.SCALED_UP, lambda: stability(sustained).scale_ups)
        judge(objective.SCALED_DOWN, lambda: stability(sustained).scale_downs)
        judge(objective.UNKNOWN, lambda: integrity(sustained).unknown_or_failed)
        judge(objective.GONE, lambda: integrity(sustained).lost + integrity(sustained).unseen)
        judge(objective.ACCOUNTED, lambda: dead_letters(sustained).unaccounted)
        judge(objective.INJECTED, lambda: dead_letters(sustained).dead)
        judge(objective.NOT_BURIED, lambda: dead_letters(sustained).missing)
        judge(objective.BURIED_ALIVE, lambda: dead_letters(sustained).surplus)
        judge(objective.PROCESSED_TOO, lambda: dead_letters(sustained).both)
        judge(objective.REASONED, lambda: dead_letters(sustained).unreasoned)
        judge(objective.MISMATCHED, lambda: integrity(sustained).mismatched)
        judge(objective.UNCOMMITTED, lambda: integrity(sustained).uncommitted)
        judge(objective.ONLY_THE_KILL, lambda: killed(sustained).unexplained)
        judge(objective.LEFT_UNCOMMITTED, lambda: killed(sustained).oldest_s)


@allure.story("A retry stops its own partition and no other")
def test_a_retry_stops_its_own_partition_and_no_other(sustained, evidence):
    """What the same pods do with their other partitions while one waits for its retry."""

    def row():
        found = retrying(sustained)
        figures: dict[str, float | None] = {"attempts that failed": found.failed, "recovered": found.recovered}
        figures |= {"given up": found.given_up}
        figures |= {"stalls": found.stalls, "median (s)": found.median_s, "longest (s)": found.longest_s}
        return figures | {"stalls compared": found.compared}

    evidence.report("retries", row)

    with evidence.of(sustained) as judge:
        judge(objective.UNBLOCKED, lambda: retrying(sustained).others)


@allure.story("maxReplicaCount 30 on 24 partitions")
def test_a_ceiling_above_the_partitions_gives_no_more_consumers(sustained, evidence, told):
    """KEDA's cap holds the group at 22 to 24; 25 is what lag between 24 and 25 lagThresholds asks for."""
    told('"1:1 partition-to-pod ratio during peak + buffer": most replicas of 30', lambda: stability(sustained).most_replicas)
    told("stood still, while lag was above 24 lagThresholds, for (s)", lambda: cap(sustained).standing_s)
    told("messages/s then", lambda: cap(sustained).rate)
    told("at most, as its retries leave", lambda: PARTITIONS * partition_rate(0.01, *SHARES, delays_s(sustained)))
    told("and at real time", lambda: PARTITIONS * partition_rate(0.01, *SHARES, [1, 2, 4]))
    told("pods without a partition, of more than 24", lambda: idle(sustained).idle_pods)
    told('"scales beyond partition count": messages of those', lambda: idle(sustained).messages_by_surplus)
    told('"prevents rapid oscillations": flips', lambda: stability(sustained).flips)
    told("peak lag", lambda: float(sustained.lag["lag"].max()))
    told('"optimal resource utilization": share of pod time without work', lambda: cost(sustained).idle_ratio)

    with evidence.of(sustained) as judge:
        judge(objective.NEAR_P, lambda: cap(sustained).standing_at)
        judge(objective.PAST_P, lambda: stability(sustained).most_replicas)
        judge(objective.FLIPS, lambda: stability(sustained).flips)
        judge(objective.FLOOR, lambda: stability(sustained).above_floor_at_end)
