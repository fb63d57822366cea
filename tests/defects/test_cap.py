"""The cap of the kafka trigger: as many replicas as partitions, nearly."""

from tests.defects.behaviour import behaviour, judge

P, T = 24, 10  # partitions, lagThreshold


@behaviour(
    question="Why does KEDA start one consumer more than the topic has partitions?",
    threads=("kedacore/keda#4483",),
    reported="5 partitions and allowIdleConsumers false: now and then there are 6 replicas, for some seconds.",
    shown="24 partitions, lagThreshold 10: a lag of 245 gives 25 replicas, a lag of 251 gives 24. The cap compares "
    "lag / lagThreshold as whole numbers, so it lets pass what lies between P and P + 1 thresholds. When lag "
    "is 240 again, the 25th stays: 240 / 25 is within the HPA's tolerance of 10 %.",
    cure="maxReplicaCount: P. It gives 24 for the same lag.",
    price="maxReplicaCount must be changed when partitions are added.",
)
def test_keda_4483_one_replica_past_the_partitions(topic, target):
    """25 of 24 on a lag of 245, and still on 240; 24 on 251, and 24 with maxReplicaCount."""
    group, deeper = topic(P), topic(P)
    group.produce(P * T + 5)
    deeper.produce(P * T + 11)
    past, cured = target(group.trigger(), replicas=12), target(group.trigger(), replicas=12, maxReplicaCount=P)
    capped = target(deeper.trigger(), replicas=12)
    judge(past.steady(), known=P + 1, cured=P)
    assert (capped.steady(), cured.steady()) == (P, P)
    group.leave(P * T)
    judge(past.steady(), known=P + 1, cured=P)


@behaviour(
    question="Why does the group stop at 22 of 24 replicas, with any lag?",
    threads=("kedacore/keda#4791", "kedacore/keda#2908"),
    reported="24 partitions, hours of lag, and 22 replicas; 64 partitions and 63. More lag changes nothing.",
    shown="24 partitions at 22 replicas stay at 22 with 41 times the lag that 24 are for. allowIdleConsumers false caps the "
    "metric at P x lagThreshold. Over 22 replicas that is 1.09 of the target, and the HPA's tolerance is 10 %.",
    cure='allowIdleConsumers: "true" with maxReplicaCount: P. The same group goes to 24. So does '
    "`scaleUp.tolerance: 0` in the behavior.",
    price="maxReplicaCount must be changed when partitions are added. The tolerance alone leaves P + 1 as it is.",
)
def test_keda_4791_stuck_below_the_partitions(topic, target):
    """22 stay 22 on a lag of 10,000; 24 with the uncapped metric, and 24 without tolerance."""
    group = topic(P)
    group.produce(10_000)
    stuck = target(group.trigger(), replicas=22)
    uncapped = target(group.trigger(allowIdleConsumers="true"), replicas=22, maxReplicaCount=P)
    exact = {"scaleUp": {"tolerance": "0"}}
    intolerant = target(group.trigger(), replicas=22, advanced={"horizontalPodAutoscalerConfig": {"behavior": exact}})
    judge(stuck.steady(), known=22, cured=P)
    assert stuck.metric() == P * T
    assert (uncapped.steady(), intolerant.steady()) == (P, P)


@behaviour(
    question="Is lagThreshold the lag of all partitions or the average of each?",
    threads=("kedacore/keda-docs#1653", "kedacore/keda-docs#1595"),
    reported="The page was changed from an average to a total, and then questioned again: it names no replicas.",
    shown="Neither a limit on the total nor an average over partitions: the lag that one replica is for. 41 messages at "
    "lagThreshold 10 give 5 replicas, on 24 partitions and on 6. replicas = ceil(lag of all partitions / lagThreshold).",
    cure="Compute it: messages that one replica works off per second x seconds of lag that you allow.",
    price="None.",
)
def test_docs_1653_total_or_average(topic, target):
    """ceil(41 / 10) = 5 on 24 partitions and on 6; a limit on the total would go on to the maximum."""
    wide, narrow = topic(P), topic(6)
    for group in (wide, narrow):
        group.produce(41)
    scaled = [target(group.trigger(), maxReplicaCount=20) for group in (wide, narrow)]
    for one in scaled:
        judge(one.steady(), known=5, cured=20)
        assert one.metric() == 41
