"""A trigger's source that is away: what KEDA makes of errors."""

from contextlib import contextmanager

import psutil

from lab.cluster import broker
from lab.host import processes
from lab.kafka import topics
from tests.defects.behaviour import behaviour, judge

OUTAGE_S = 90  # the report's slowest took 17 s (docs/upstream/keda-zero-on-error); a request of KEDA's to Kafka may take 30 s
COOLDOWN_S = 5
OF_SCALER, OF_OBJECT = "keda_scaler_detail_errors_total", "keda_scaled_object_errors_total"
ERRORS = 20  # polls come every second, and syncs twice a second: some 7 s of errors
FALLBACK = {"fallback": {"failureThreshold": 2, "replicas": 6}}


@contextmanager
def outage(kafka):
    """The broker is down within the block, and back with all its data after it."""
    command = psutil.Process(kafka.daemon.process.pid).cmdline()
    kafka.stop()
    try:
        yield
    finally:
        kafka.daemon = processes.start(kafka.run, "kafka", command)
        broker.wait_for(kafka.bootstrap, kafka.daemon.check)


@contextmanager
def suspension(kafka):
    """The broker is suspended within the block, and answers again after it."""
    process = psutil.Process(kafka.daemon.process.pid)
    process.suspend()
    try:
        yield
    finally:
        process.resume()
        broker.wait_for(kafka.bootstrap, kafka.daemon.check)


@behaviour(
    question="Does KEDA scale to zero while a trigger's source does not answer?",
    threads=("kedacore/keda#1850",),
    reported="The metric's API is not reachable, and the workload goes to zero.",
    shown="Yes, when the source fails slowly, minReplicaCount is 0 and cooldownPeriod is over. Three replicas went "
    "to zero on metrics-api and prometheus (no answer within KEDA's 3 s) and on an external scaler "
    "(UNAVAILABLE after 4 s). The kafka trigger did not in 90 s with a broker that is suspended, nor in 20 s "
    "with one that refuses. Cause, by the source: the poll and the HPA's question close each other's scaler "
    "cache, and ErrCacheClosed counts as inactive without an error. It is so since 2.20; in 2.19.0 a closed "
    "cache is an error (Go tests of 2.19.0, 2.20.1 and 2.21.0: docs/upstream/keda-zero-on-error).",
    cure="minReplicaCount: 1. The group then stays at 3.",
    price="One idle replica.",
)
def test_keda_1850_zero_on_a_source_that_fails_slowly(target, topic, sources, kafka):
    """At 3 replicas the sources begin to fail: which of them take the workload to zero after cooldownPeriod."""
    group = topic()
    group.produce(30)
    triggers = sources.triggers() | {"kafka": group.trigger()}
    scaled = {kind: target(trigger, minReplicaCount=0, cooldownPeriod=COOLDOWN_S) for kind, trigger in triggers.items()}
    kept = target(triggers["metrics-api"], cooldownPeriod=COOLDOWN_S)
    for one in (*scaled.values(), kept):
        one.reach(3)
    sources.fail()
    with suspension(kafka):
        scaled["kafka"].rest(OUTAGE_S)
        found = {kind: one.replicas() for kind, one in scaled.items()}
    scaled["kafka"].answer()
    assert (found.pop("kafka"), kept.replicas()) == (3, 3)
    for replicas in found.values():
        judge(replicas, known=0, cured=3)


@behaviour(
    question="Why does the fallback not come while no broker can be reached?",
    threads=("kedacore/keda#5525", "kedacore/keda#4098"),
    reported="Fallback does nothing when the connection of RabbitMQ's scaler is refused; on a replacement of brokers "
    "it came after two hours.",
    shown="The broker is down and refuses connections for 20 s, at a failureThreshold of 2, polls of 1 s and syncs of 0.5 s: "
    "no fallback. The replicas stay (3 of 3, and 0 of 0). The trigger's scaler connects when it is built. Where that fails "
    "KEDA has no scaler, and a failure is counted only for a scaler, so the first counts and no other. A poll without a scaler "
    "writes no condition either: Ready and HPAActive stand as the first failure left them. One of them was False, or both "
    "were True. An error of a broker that answers is counted: where the topic is deleted the same fallback comes. When the "
    "broker is back all go on.",
    cure="None by KEDA. Alert on keda_scaled_object_errors_total, for the conditions may say that all is well.",
    price="The replicas of the moment when the broker went, until it is back.",
)
def test_keda_5525_no_fallback_while_no_broker_can_be_reached(target, topic, kafka):
    """3 and 0 stay while connections are refused, with a fallback of 6; 6 where the topic is gone; all go on afterwards."""
    group, empty, gone = topic(), topic(), topic()
    for one in (group, gone):
        one.produce(30)
    settings = {"minReplicaCount": 0, "cooldownPeriod": COOLDOWN_S}
    plain = target(group.trigger(), **settings)
    guarded, errors = (target(one.trigger(), **settings, **FALLBACK) for one in (group, gone))
    asleep = target(empty.trigger(), **settings, **FALLBACK)
    for each in (plain, guarded, errors):
        each.reach(3)
    asleep.reach(0)
    topics.delete(kafka.bootstrap, [gone.name])
    errors.reach(6)
    for each in (plain, guarded):
        each.answer()
    with outage(kafka):
        guarded.rest(4 * COOLDOWN_S)
        judge(guarded.replicas(), known=3, cured=6)
        judge(asleep.replicas(), known=0, cured=6)
        assert plain.replicas() == 3
    for each in (plain, guarded):
        each.reach(3)
    group.leave(0)
    empty.produce(30)
    plain.reach(0)
    asleep.reach(3)


@behaviour(
    question="Which of KEDA's counters rises while no broker can be reached?",
    threads=("kedacore/keda#5663",),
    reported="The counter of a ScaledObject's errors does not rise where the scaler can't be built.",
    shown="At 2.21 keda_scaled_object_errors_total rises at each failed poll and sync, and keda_scaler_detail_errors_total "
    "hardly does. While the broker refuses connections, "
    "keda_scaled_object_errors_total went from 0 to 21 in some seconds, with polls of 1 s and syncs of 0.5 s, and "
    "keda_scaler_detail_errors_total from 0 to 1. The trigger's scaler connects when it is built, and where that fails there "
    "is no scaler to count for. Where a broker answers with an error, as for a topic that is deleted, both rise.",
    cure="Alert on keda_scaled_object_errors_total, for the scaler's counter misses an outage of Kafka.",
    price="It names the ScaledObject, and not which of its triggers.",
)
def test_keda_5663_the_counter_of_an_outage(target, topic, kafka):
    """Where the topic is gone both counters rise; where connections are refused only the ScaledObject's does."""
    group, gone = topic(), topic()
    for one in (group, gone):
        one.produce(30)
    cut, wrong = target(group.trigger()), target(gone.trigger())
    for each in (cut, wrong):
        each.reach(3)
    assert (cut.counted(OF_SCALER), cut.counted(OF_OBJECT)) == (0, 0)
    topics.delete(kafka.bootstrap, [gone.name])
    for counter in (OF_SCALER, OF_OBJECT):
        wrong.wait(lambda counter=counter: wrong.counted(counter) >= ERRORS, f"{counter} at {ERRORS}")
    with outage(kafka):
        cut.wait(lambda: cut.counted(OF_OBJECT) >= ERRORS, f"{OF_OBJECT} at {ERRORS}")
        judge(cut.counted(OF_SCALER) >= ERRORS, known=False, cured=True)


@behaviour(
    question="Why does the fallback not come when an external scaler is gone?",
    threads=("kedacore/keda#8056",),
    reported="The scaler's pod is away, the failure counter stays where it is, and the fallback never comes.",
    shown="The gRPC server of an external scaler is gone for 20 s, at a failureThreshold of 2: three replicas stay. "
    "KEDA asks the scaler for the metric's name first, and without a name it counts no failure. metrics-api, "
    "whose name KEDA knows, has the fallback in the same outage. With external-push and failureThreshold 0 it "
    "comes (tests/unit/programs/lagscaler/test_with_keda.py).",
    cure="Two replicas of the scaler behind one name. KEDA itself has none for the type external.",
    price="A second scaler, which must answer the same.",
)
def test_keda_8056_no_fallback_without_the_external_scaler(target, sources):
    """3 stay where the external scaler is gone; 6, the fallback, on metrics-api."""
    triggers = sources.triggers()
    external, api = (target(triggers[kind], **FALLBACK) for kind in ("external", "metrics-api"))
    for one in (external, api):
        one.reach(3)
    sources.close()
    api.reach(6)
    external.rest(4 * COOLDOWN_S)
    judge(external.replicas(), known=3, cured=6)


@behaviour(
    question="Does fallback start a workload that is at zero?",
    threads=("kedacore/keda#7239", "kedacore/keda#7411"),
    reported="minReplicaCount 0 and a source that fails: fallback is active by the events, and the replicas stay at 0.",
    shown="Yes: at zero, with the topic deleted, fallback takes the group to its replicas, with behavior static and "
    "currentReplicasIfHigher. It needs a source that answers with an error (see the question before).",
    cure="KEDA 2.21; older versions were not tried.",
    price="The fallback's replicas for as long as the source fails.",
    seen=False,
)
def test_keda_7239_fallback_from_zero(target, topic, kafka):
    """From 0 to the fallback's 6, with both behaviors."""
    group = topic()
    settings = {"minReplicaCount": 0, "cooldownPeriod": COOLDOWN_S}
    behaviors = "static", "currentReplicasIfHigher"
    asleep = [target(group.trigger(), **settings, fallback=FALLBACK["fallback"] | {"behavior": one}) for one in behaviors]
    for one in asleep:
        one.reach(0)
    topics.delete(kafka.bootstrap, [group.name])
    for one in asleep:
        one.reach(6)
