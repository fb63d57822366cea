"""pollingInterval and cooldownPeriod, which rule less than their names say."""

from tests.defects.behaviour import behaviour, judge

NEVER_S = 600  # longer than any test


@behaviour(
    question="Why does KEDA not respect pollingInterval?",
    threads=("kedacore/keda#5695", "kedacore/keda#6168"),
    reported="pollingInterval is 5 or 60, and lag is asked for at other times.",
    shown="With pollingInterval 600 and minReplicaCount 1, 30 messages give 3 replicas within some syncs of the "
    "HPA: each sync asks Kafka. With minReplicaCount of 1 or more, no idleReplicaCount and no cached metrics "
    "KEDA 2.21 does not poll for itself at all.",
    cure="`useCachedMetrics: true` on the trigger. The HPA then gets the value of the last poll, and the same lag "
    "changes nothing.",
    price="Lag is seen later, by up to pollingInterval, and the HPA decides several times on one old value.",
)
def test_keda_5695_the_hpa_asks_by_itself(topic, target):
    """3 replicas though the next poll is ten minutes away; with cached metrics 1."""
    group = topic()
    live = target(group.trigger(), pollingInterval=NEVER_S)
    cached = target(group.trigger(cached=True), pollingInterval=NEVER_S)
    live.ready()
    cached.ready()
    group.produce(30)
    judge(live.steady(), known=3, cured=1)
    assert (cached.steady(), cached.metric()) == (1, 0)


@behaviour(
    question="Does cooldownPeriod keep replicas after the lag is gone?",
    threads=("kedacore/keda#7770",),
    reported="cooldownPeriod is set against flapping between N and the minimum.",
    shown="With cooldownPeriod 600 five replicas go to minReplicaCount 1 as soon as lag is gone. With "
    "minReplicaCount 0 they go to 1 as soon; only the step to 0 waits.",
    cure="`behavior.scaleDown.stabilizationWindowSeconds` in horizontalPodAutoscalerConfig. A window of 600 keeps all five.",
    price="The window's pod-minutes after every peak.",
)
def test_keda_7770_cooldown_keeps_no_replica_above_one(topic, target):
    """5 to 1 with a cooldown of ten minutes, for minReplicaCount 1 and 0; 5 stay with a window."""
    group = topic()
    group.produce(50)
    least = [target(group.trigger(), minReplicaCount=count, cooldownPeriod=NEVER_S) for count in (1, 0)]
    window = target(group.trigger(), behavior={"scaleDown": {"stabilizationWindowSeconds": NEVER_S}})
    for one in (*least, window):
        one.reach(5)
    group.leave(0)
    for one in least:
        judge(one.steady(), known=1, cured=5)
    assert window.steady() == 5
