"""Lag that is no work, and lag that is not seen."""

from tests.defects.behaviour import behaviour, judge

TRIES = 8
POLLS_S = 6  # several polls of 1 s, and more than cooldownPeriod


@behaviour(
    question="Why does excludePersistentLag take lag away that is being worked off?",
    threads=("kedacore/keda#7516",),
    reported="Partitions of slow consumers count as stuck after one poll without a commit; a number of polls is asked for.",
    shown="The offset is compared with that of the previous question, whoever asked. Right after a commit the lag "
    "of 90 is told once; the next question, milliseconds later, is told 0. By arithmetic, at one question in "
    "15 s of the HPA's, a group that commits every 20 s looks stuck in one of four.",
    cure="`useCachedMetrics: true`: then only the polls compare, and every sync in between gets their value. A "
    "pollingInterval longer than the longest batch.",
    price="Lag is seen later, by up to pollingInterval.",
)
def test_keda_7516_persistent_is_since_the_last_question(topic, target):
    """90, then 0 at once, after a commit; with cached metrics the poll's value both times."""
    group = topic()
    group.produce(100)
    live = target(group.trigger(excludePersistentLag="true"))
    cached = target(group.trigger(excludePersistentLag="true", cached=True), pollingInterval=600)
    live.ready()
    cached.ready()
    seen = set()
    for done in range(1, TRIES + 1):  # the HPA's own question may come between the commit and ours
        group.leave(100 - 10 * done)
        first, second = live.metric(), live.metric()
        seen.add((first > 0, second > 0))
    judge((True, False) in seen, known=True, cured=False)
    assert (True, True) not in seen, "cured upstream: lag that is worked off is told twice in a row"
    assert [cached.metric(), cached.metric()] == [100, 100]


@behaviour(
    question="Why is there a lag of one for each partition for ever, when a producer uses transactions?",
    threads=("kedacore/keda#5675",),
    reported="Commit markers take an offset that no consumer ever gets. Each partition keeps a lag of 1, and one "
    "replica stays.",
    shown="One transaction over ten partitions: a group that has committed all that it was given still has a lag of "
    "10, and stays up. excludePersistentLag does not help: it scales to no more than the minimum, but it does "
    "not let the group go to zero.",
    cure="activationLagThreshold of at least the number of partitions. The same group then goes to zero. A "
    "consumer that commits its position, not the last offset + 1, has no such lag either (Java clients do).",
    price="As many messages as there are partitions wake nobody.",
)
def test_keda_5675_transaction_markers_are_lag(topic, target):
    """Ten markers keep a replica, with excludePersistentLag too; not with an activation threshold, nor without transactions."""
    marked, plain = topic(), topic()
    marked.produce(30, transactional=True)
    plain.produce(30)
    for group in (marked, plain):
        group.commit([3] * 10)  # what a consumer commits after the last message of each partition
    kept = target(marked.trigger(), minReplicaCount=0)
    excluded = target(marked.trigger(excludePersistentLag="true"), minReplicaCount=0)
    cured = target(marked.trigger(activationLagThreshold="10"), minReplicaCount=0)
    control = target(plain.trigger(), minReplicaCount=0)
    for one in (cured, control):
        one.reach(0)
    for one in (kept, excluded):
        judge(one.rest(POLLS_S), known=1, cured=0)
    assert kept.metric() == 10


@behaviour(
    question="Do records that retention has deleted count as lag, where nothing was committed?",
    threads=("kedacore/keda#7936",),
    reported="offsetResetPolicy earliest and no commit: lag is the end of the log, so everything that ever was in it.",
    shown="No: of 200 messages 150 were deleted, and lag is 50 (before 2.21 it was 200). Tried with an "
    "explicit topic and allowIdleConsumers true, so that no cap hides it.",
    cure="KEDA 2.21 or newer.",
    price="One more request to Kafka for a group that has committed nothing.",
    seen=False,
)
def test_keda_7936_expired_records_of_an_uncommitted_group(topic, target):
    """50 of 200 are left, and 50 are counted."""
    group = topic(committed=False)
    group.produce(200)
    group.expire(15)
    scaled = target(group.trigger(offsetResetPolicy="earliest", allowIdleConsumers="true"))
    scaled.ready()
    assert scaled.metric() == 50, f"back again: {scaled.metric()} of 50 messages that exist"


@behaviour(
    question="Do records that retention has deleted count as lag, where the group is behind them?",
    threads=("kedacore/keda#7936",),
    reported="(found here, beside that thread) The correction is for groups without a commit.",
    shown="A group that has committed 0, whose log now begins at 15 in each of ten partitions: lag is 200, and 50 "
    "messages exist. Lag is the log's end less the committed offset; the log's start is not asked for.",
    cure="None in KEDA. A consumer that runs resets its offset by auto.offset.reset and commits, and that ends it.",
    price="Pods for messages that are gone, until that commit.",
)
def test_keda_7936_expired_records_of_a_group_that_is_behind(topic, target):
    """50 of 200 are left, and 200 are counted; 50 after the commit that a consumer makes."""
    group = topic()
    group.produce(200)
    group.expire(15)
    scaled = target(group.trigger(offsetResetPolicy="earliest", allowIdleConsumers="true"))
    scaled.ready()
    judge(scaled.metric(), known=200.0, cured=50.0)
    group.commit([15] * 10)
    assert scaled.metric() == 50


@behaviour(
    question="Does excludePersistentLag take partitions away that were never committed?",
    threads=("kedacore/keda#5906", "kedacore/keda#5274"),
    reported="Partitions with offset -1, whose messages have expired, count for ever and take all pods.",
    shown="It does not, whatever offsetResetPolicy is: ten partitions without a commit count 1 each with latest, "
    "and all that is in the log with earliest, at every question.",
    cure="One commit for each partition when the group is made. Then the partitions that don't move are left out.",
    price="None.",
)
def test_keda_5906_uncommitted_partitions_are_never_persistent(topic, target):
    """The same metric at every question without a commit; 0 from the second on with one."""
    group, known = topic(committed=False), topic()
    for one in (group, known):
        one.produce(100)
    policies = ("latest", "earliest")
    uncommitted = [target(group.trigger(excludePersistentLag="true", offsetResetPolicy=policy)) for policy in policies]
    committed = target(known.trigger(excludePersistentLag="true"))
    for each in (*uncommitted, committed):
        each.ready()
    for each, lag in zip(uncommitted, (10.0, 100.0), strict=True):
        judge([each.metric() for _ in range(3)], known=[lag] * 3, cured=[0.0] * 3)
    assert [committed.metric() for _ in range(2)][-1] == 0
