"""To zero, and from zero."""

from lab.model.hpa_log import RESCALED
from tests.defects.behaviour import behaviour, judge

SLOWLY = {"scaleDown": {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 600}]}}
POLLS_S = 6  # several polls of 1 s, and more than cooldownPeriod: long enough for what must not happen to happen


@behaviour(
    question="Why are all replicas stopped at once, when my scaleDown policy allows one at a time?",
    threads=("kedacore/keda#7770", "kedacore/keda#7204", "kedacore/keda#3140"),
    reported="`behavior.scaleDown` gives back one pod a minute; after cooldownPeriod all remaining pods stop together.",
    shown="A policy of one pod in ten minutes, five replicas, no lag: the HPA takes one, and when cooldownPeriod is over KEDA "
    "goes from four to zero in one step. Its own step is not the HPA's, so `behavior` does not rule it.",
    cure="minReplicaCount: 1, or a cooldownPeriod that is longer than the policy needs for all replicas. With "
    "minReplicaCount 1 four stay.",
    price="One idle replica; or replicas that stay for cooldownPeriod, as the HPA allows.",
)
def test_keda_7770_from_many_to_zero_in_one_step(topic, target):
    """KEDA's own event names the step; with minReplicaCount 1 there is none."""
    group = topic()
    group.produce(50)
    # It begins with five: what the HPA has added within a period it may take back within it, whatever the policy says.
    settings = {"behavior": SLOWLY, "replicas": 5, "cooldownPeriod": 5}
    zero, one = (target(group.trigger(), minReplicaCount=least, **settings) for least in (0, 1))
    for each in (zero, one):
        assert each.steady() == 5
    group.leave(0)
    zero.wait(lambda: bool(zero.deactivations()), "the step to zero")
    judge(zero.deactivations()[0], known=(4, 0), cured=(1, 0))
    assert (zero.replicas(), one.steady(), one.deactivations()) == (0, 4, [])


@behaviour(
    question="Why does a new group on an empty topic never go to zero?",
    threads=("kedacore/keda#2033", "kedacore/keda#7414"),
    reported="minReplicaCount 0, a topic without a message, and one replica for ever.",
    shown="A group that has committed nothing has, with offsetResetPolicy latest, a lag of 1 for each partition. "
    "Ten empty partitions are a lag of 10, whatever is in them, and the group stays up.",
    cure='`scaleToZeroOnInvalidOffset: "true"` (see the next question), or activationLagThreshold of at least the '
    "number of partitions, or one commit for each partition when the group is made. With "
    "activationLagThreshold 10 the same group goes to zero.",
    price="With activationLagThreshold P the first P messages wake nobody.",
)
def test_keda_2033_an_uncommitted_group_is_never_at_zero(topic, target):
    """A lag of 10 on an empty topic; 0 replicas with an activation threshold, and with a commit."""
    new, known = topic(committed=False), topic()
    kept = target(new.trigger(), minReplicaCount=0)
    cured = target(new.trigger(activationLagThreshold="10"), minReplicaCount=0)
    committed = target(known.trigger(), minReplicaCount=0)
    for one in (cured, committed):
        one.reach(0)
    judge(kept.rest(POLLS_S), known=1, cured=0)
    assert kept.metric() == 10


@behaviour(
    question="Does one message wake a group with activationLagThreshold 1?",
    threads=("kedacore/keda#2800",),
    reported="A threshold for activation is asked for, as many scalers have their own.",
    shown="No. A group is active when its lag is greater than the threshold: with 1 it takes two messages. One "
    "waits for ever. The threshold is for waking alone: lagThreshold is not compared with it.",
    cure="activationLagThreshold: 0, the default. The same message then starts one replica.",
    price="Any message wakes the group, and lag that is no work keeps it awake (transaction markers do).",
)
def test_keda_2800_activation_is_above_the_threshold(topic, target):
    """One message of two that are needed: 0 replicas; 1 with threshold 0, and with the second message."""
    group = topic()
    group.produce(1)
    settings = {"minReplicaCount": 0, "replicas": 0}
    asleep, awake = target(group.trigger(activationLagThreshold="1"), **settings), target(group.trigger(), **settings)
    awake.reach(1)
    judge(asleep.rest(POLLS_S), known=0, cured=1)
    group.produce(1)
    asleep.reach(1)


@behaviour(
    question="Why does a new group with scaleToZeroOnInvalidOffset never start?",
    threads=("kedacore/keda#7414", "kedacore/keda#2033"),
    reported='With "true" it works, and then from nowhere it does not leave zero; somebody starts the app once, and it '
    "works again.",
    shown="A group that has committed nothing has no lag then, for either offsetResetPolicy. 100 messages wait, "
    "there are no replicas, and without a replica there is never a commit. Where offsets expire "
    "(offsets.retention.minutes) a group gets there by itself.",
    cure="Leave it false, with offsetResetPolicy earliest: then lag is what the log holds, and the same group wakes.",
    price="With latest in place of earliest an empty group stays at one replica (see the question before).",
)
def test_keda_7414_a_group_that_has_never_committed_stays_at_zero(topic, target):
    """100 messages, and no replica, with both policies; with false the group wakes."""
    group = topic(committed=False)
    asleep = [
        target(group.trigger(scaleToZeroOnInvalidOffset="true", offsetResetPolicy=policy), minReplicaCount=0, replicas=0)
        for policy in ("latest", "earliest")
    ]
    group.produce(100)
    awake = target(group.trigger(offsetResetPolicy="earliest"), minReplicaCount=0, replicas=0)
    awake.reach(10)
    for one in asleep:
        judge(one.rest(POLLS_S), known=0, cured=1)


@behaviour(
    question="Which idleReplicaCount may I use?",
    threads=("kedacore/keda#8172", "kedacore/keda#2314"),
    reported="With idleReplicaCount 1 and minReplicaCount 2 the pods go up and down between 1 and 2 all the time.",
    shown="Only 0. With idleReplicaCount 1 and minReplicaCount 3 a group without lag flaps for ever: KEDA takes it to 1 at "
    "each poll, and the HPA, whose minimum is 3, takes it back at each sync. KEDA's webhook admits it. With 0 the group goes "
    "from three to zero and back to three, in one step each: at zero the HPA is off.",
    cure="idleReplicaCount: 0, or none.",
    price="The first message waits for a pod to start. Without it, minReplicaCount idle replicas.",
)
def test_keda_8172_idle_at_one_flaps(topic, target):
    """The HPA rescales again and again with 1; with 0 all three go once, and come back once."""
    group = topic()
    settings = {"minReplicaCount": 3, "replicas": 3}
    one = target(group.trigger(), idleReplicaCount=1, **settings)
    zero = target(group.trigger(), idleReplicaCount=0, **settings)
    zero.reach(0)
    one.wait(lambda: bool(one.deactivations()), "the first step to idle")
    zero.rest(POLLS_S)
    rescaled = [sync.outcome.replicas for sync in one.syncs() if sync.outcome.words == RESCALED]
    judge(len(rescaled) >= 3, known=True, cured=False)
    assert zero.deactivations() == [(3, 0)]
    group.produce(5)
    zero.reach(3)
