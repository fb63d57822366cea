"""Rules of the audit on the real control plane, each by its name: whether a finding's object does there what its number says.

Where counts of pods alone matter no policy is in the way, and where no lagThreshold matters it is 1, so that few messages do.
"""

from __future__ import annotations

from contextlib import nullcontext

from lab.audit.behavior import ramp
from lab.inputs.triggers.kafka import APACHE
from lab.kafka import topics
from tests.defects.bench import NEVER_S, REST_S, SCALE, Case, Fed, Rig, Shown, largest_share, open_all_day, rescales, so
from tests.defects.target import DEADLINE_S
from tests.defects.test_outage import outage
from tests.defects.topic import Topic

OUTAGE_S = 20.0


def idle_replicas(rig: Rig, case: Case) -> Shown:
    """As many pods as there may be: at rest, on lag enough, or by a query's answer."""
    owned, most = case.scaled.owned or 0, case.scaled.most
    free = [one for one in case.scaled.lags if not one.capped]
    fed = [case.feed(rig, case.lag)]
    crons = [one for one in case.scaled.triggers if one.type == "cron" and one.number("desiredReplicas", 0) > owned]
    if crons and case.scaled.least != case.number + owned:
        fed.append(Fed(fed[0].topic, (), open_all_day(crons[0].number("desiredReplicas", 0))))
    elif case.scaled.least != case.number + owned:
        if case.scaled.formula or most != case.number + owned:
            return None
        if free:
            fed = [case.feed(rig, free[0], lag=most * free[0].threshold)]
        elif any(one.type == "prometheus" for one in case.scaled.triggers):
            query = rig.sources.triggers()["prometheus"]
            rig.sources.value = most * int(query["metadata"]["threshold"])
            fed.append(Fed(fed[0].topic, (), query))
        else:
            return None
    return case.target(rig, *fed).steady() - owned, case.number


def one_past_partitions(rig: Rig, case: Case) -> Shown:
    """The least lag that asks for one more."""
    fed = case.feed(rig, lag=(case.number - 1) * case.trigger.threshold + 1)
    return case.target(rig, fed).steady(), case.number


def unreachable_last(rig: Rig, case: Case) -> Shown:
    """From where it stays, on more lag than all partitions are for."""
    count = case.scaled.counted(case.trigger) or 0
    top = min(count, case.scaled.most)
    fed = case.feed(rig, lag=(count + 2) * case.trigger.threshold)
    return top - case.target(rig, fed, replicas=top - case.number).steady(), case.number


def uneven_share(rig: Rig, case: Case) -> Shown:
    """Real consumers share the partitions; an even trigger's steps are the HPA's."""
    if shared := case.said(r"one of ([\d,]+) pods owns ([\d,]+) of ([\d,]+) partitions, as with ([\d,]+) pods"):
        members, each, count, enough = shared
        found = [largest_share(rig, count, one) for one in (members, enough)]
        return so(found == [each, each] and (enough == 1 or largest_share(rig, count, enough - 1) > each))
    if cut := case.said(r"([\d,]+) pods share ([\d,]+) partitions unevenly"):
        return so(largest_share(rig, cut[1], cut[0]) == largest_share(rig, cut[1], case.number))
    if jumped := case.said(r"a lag of ([\d,]+) asks for ([\d,]+) pods"):
        return case.target(rig, case.feed(rig, lag=jumped[0]), minReplicaCount=1).steady(), jumped[1]
    return None


def timers(rig: Rig, case: Case) -> Shown:
    """A poll that is ten minutes away delays no step up, and a cooldown as long no step down."""
    floor, of_poll = case.scaled.floor, case.finding.field.endswith("pollingInterval")
    wanted = min(2 * floor, case.scaled.most)
    if "decides" in case.finding.sentence or wanted <= floor * (1 + case.scaled.tolerance):
        return None
    fed = case.light(rig, wanted, 0 if of_poll else wanted)
    target = case.target(rig, fed, pollingInterval=NEVER_S, cooldownPeriod=NEVER_S)
    target.ready()
    fed.leave(wanted)
    target.reach(wanted)
    if not of_poll:
        fed.leave(0)
        target.reach(floor)
    return so(True)


def down_in_one_step(rig: Rig, case: Case) -> Shown:
    """At most pods without lag: the HPA's first step, once its window is over."""
    most, floor = case.scaled.most, case.scaled.floor
    target = case.target(rig, case.light(rig, most, 0), replicas=most, minReplicaCount=floor, behavior=case.divided)
    target.wait(lambda: bool(rescales(target)), "a step", SCALE.seconds(case.scaled.down_window_s) + DEADLINE_S)
    before, after = rescales(target)[0]
    return before - after, case.number


def slow_ramp(rig: Rig, case: Case) -> Shown:
    """As many steps of the HPA as its policies need."""
    steps = case.said(r"in ([\d,]+) steps and")
    if not steps or case.finding.number is None:
        return None
    most, floor = case.scaled.most, case.scaled.floor
    upwards = case.finding.field.endswith("scaleUp")
    first, last = (floor, most) if upwards else (most, floor)
    fed = case.light(rig, most, most if upwards else 0)
    target = case.target(rig, fed, replicas=first, minReplicaCount=floor, behavior=case.divided)
    taken_s = (60 * case.finding.number + case.scaled.down_window_s) / SCALE.time
    target.wait(lambda: target.replicas() == last, f"{last} pods", 2 * taken_s + DEADLINE_S)
    return len(rescales(target)), steps[0]


def policy_arithmetic(rig: Rig, case: Case) -> Shown:
    """The first step of a percentage."""
    few, upwards = max(2, case.scaled.floor), "scaleUp" in case.finding.field
    if "percent" not in case.finding.sentence:
        return None
    fed = case.light(rig, case.scaled.most, case.scaled.most if upwards else 0)
    target = case.target(rig, fed, replicas=few, minReplicaCount=few if upwards else 1, behavior=case.divided)
    window_s = case.scaled.up.window_s or 0 if upwards else case.scaled.down_window_s
    target.wait(lambda: bool(rescales(target)), "a step", SCALE.seconds(window_s) + DEADLINE_S)
    return 100 * abs(rescales(target)[0][1] - few) / few, case.finding.number or 0


def jump_to_zero(rig: Rig, case: Case) -> Shown:
    """KEDA's own step to zero, from most pods whose lag ends at once: after as many of the HPA's as a sync more or less allows.

    A sync, and KEDA's poll, come at some time of their own. A cluster at quick has a sync of 15 s and a poll of 30 s.
    """
    here, most, cooldown_s = case.scaled, case.scaled.most, SCALE.seconds(case.scaled.cooldown_s)
    fed = case.light(rig, most, most)
    target = case.target(rig, fed, replicas=most, minReplicaCount=0, cooldownPeriod=cooldown_s, behavior=case.divided)
    target.steady()
    fed.leave(0)
    target.wait(lambda: bool(target.deactivations()), "the step to zero", cooldown_s + DEADLINE_S)
    way = ramp(here.behavior, most, here.floor, here.facts.sync_s)
    free_s, poll_s = here.cooldown_s - here.down_window_s, SCALE.time
    least, left = way.after(free_s + poll_s + here.facts.sync_s, most), target.deactivations()[0][0]
    return (case.number if least <= left <= way.after(free_s - here.facts.sync_s, most) else left), case.number


def one_poll_to_zero(rig: Rig, case: Case) -> Shown:
    """A new object at the pods that its target has, without lag: its cooldownPeriod does not count."""
    if not case.finding.field.endswith("initialCooldownPeriod"):
        return None
    fed = case.feed(rig, case.lag)
    target = case.target(rig, fed, replicas=case.number, minReplicaCount=0, cooldownPeriod=NEVER_S)
    target.wait(lambda: bool(target.deactivations()), "the step to zero")
    return target.deactivations()[0][0], case.number


def uncommitted_group(rig: Rig, case: Case) -> Shown:
    """A group that never committed, on an empty topic; with the flag on one that has messages."""
    flagged = case.trigger.flag("scaleToZeroOnInvalidOffset")
    if case.finding.number is None:
        return None
    topic, fed = Topic(rig.kafka.bootstrap, case.partitions, committed=False), case.feed(rig)
    fed.trigger["metadata"] |= {"topic": topic.name, "consumerGroup": topic.name}
    topic.produce(100 if flagged else 0)
    target = case.target(rig, fed, replicas=0 if flagged else 1, minReplicaCount=0 if flagged else case.scaled.least)
    rested = target.rest(REST_S)
    return (rested if flagged else target.steady()), case.number


def activation_holds(rig: Rig, case: Case) -> Shown:
    """So many messages wake nothing, and one more does; where nothing is woken they count as any other."""
    most = case.number
    if "formula" in case.finding.sentence:
        return None
    fed = case.feed(rig, most=most + 1, lag=most)
    if case.finding.sentence.startswith("unused"):
        target = case.target(rig, fed)
        target.ready()
        cap = (case.scaled.counted(case.trigger) or 0) * case.trigger.threshold
        return target.metric(), min(most, cap) if case.trigger.capped else most
    idle = {} if case.scaled.idle is None else {"idleReplicaCount": 0}
    target = case.target(rig, fed, replicas=0, **idle)
    if target.rest(REST_S):
        return 0, most
    fed.leave(most + 1)
    target.wait(lambda: target.replicas() > 0, "a pod for one message more")
    return most, case.number


def max_not_sum(rig: Rig, case: Case) -> Shown:
    """At full lag the trigger with most partitions counts; where nothing caps, the one that asks for most."""
    lags, floor = case.scaled.lags, case.scaled.floor
    if case.finding.number is None:
        each = [max(0, floor + 2 - number) for number in range(len(lags))]
    else:
        each = [case.scaled.counted(one) or 0 for one in lags]
    fed = [case.feed(rig, one, lag=pods * one.threshold) for one, pods in zip(lags, each, strict=True)]
    return case.target(rig, *fed).steady(), max(floor, min(max(each), case.scaled.most))


def no_topic(rig: Rig, case: Case) -> Shown:
    """A group that never committed counts another topic's 50 partitions too. No container has its variable."""
    others, new, fed = Topic(rig.kafka.bootstrap, 50), Topic(rig.kafka.bootstrap, 1, committed=False), case.feed(rig)
    metadata = fed.trigger["metadata"] | {"consumerGroup": new.name, "allowIdleConsumers": "true"}
    del metadata["topic"]
    if variable := case.trigger.metadata.get("topicFromEnv"):
        metadata["topicFromEnv"] = variable
    target = case.target(rig, Fed(others, (), fed.trigger | {"metadata": metadata}))
    target.ready()
    return so(target.metric() >= len(others.ends) + case.partitions)


def persistent_vs_commit(rig: Rig, case: Case) -> Shown:
    """Right after a commit lag is told once, and at the next question no more."""
    fed = case.feed(rig, lag=100)
    target = case.target(rig, fed)
    target.ready()
    seen = set()
    for done in range(1, 9):  # the HPA's own question may come between the commit and ours
        fed.leave(100 - 10 * done)
        first, second = target.metric(), target.metric()
        seen.add((first > 0, second > 0))
    return so((True, False) in seen and (True, True) not in seen)


def fallback_shrinks(rig: Rig, case: Case) -> Shown:
    """At most pods the topic is deleted; apache-kafka takes that for no lag, and fails without a broker."""
    most = case.scaled.most
    fed = case.light(rig, most, most)
    target = case.target(rig, fed, replicas=most, fallback=dict(case.scaled.fallback or {}))
    target.steady()
    fails = fed.trigger["type"] == APACHE
    with outage(rig.kafka) if fails else nullcontext():
        if not fails:
            topics.delete(rig.kafka.bootstrap, [fed.topic.name])
        target.within(DEADLINE_S, lambda: target.replicas() == most - case.number)
        return most - target.rest(REST_S), case.number


def fallback_never(rig: Rig, case: Case) -> Shown:
    """No fallback while no broker answers: the replicas stay for longer than it takes otherwise."""
    if "no broker" not in case.finding.sentence:
        return None
    given = dict(case.scaled.fallback or {})
    pods = case.scaled.floor + (given.get("replicas") == case.scaled.floor)
    target = case.target(rig, case.light(rig, pods, pods), fallback=given)
    target.ready()
    target.reach(pods)
    target.answer()
    with outage(rig.kafka):
        stood = target.rest(OUTAGE_S)
    target.answer()
    return so(stood == pods)
