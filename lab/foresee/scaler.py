"""KEDA and the HPA on a simulated group: one ScaledObject's metrics, decisions and memory. Times in s from the start."""

from __future__ import annotations

import math

from lab.errors import InputError, step, together
from lab.foresee.group import Part, Seen
from lab.foresee.queries import Answer, Names
from lab.foresee.situation import Situation
from lab.foresee.sources import Instant, Lasting, Queried, Scheduled, Source
from lab.foresee.usage import UNKNOWN, MetricsServer
from lab.inputs.adopt import check_one_group
from lab.inputs.anchor import NEEDED
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.topics import MOST
from lab.inputs.triggers import external, resource
from lab.inputs.triggers.common import Reading, ScalerError
from lab.inputs.triggers.cron import Cron
from lab.inputs.triggers.external import External, PersistentLag
from lab.inputs.triggers.kafka import Kafka
from lab.inputs.triggers.parsing import Trigger, check_topics, topic_of, topic_places
from lab.inputs.triggers.prometheus import Prometheus
from lab.inputs.triggers.resource import CPU, MEMORY, Resource
from lab.model import hpa, keda
from lab.model.keda import Observation

SIMULATED = (
    "triggers of type kafka and apache-kafka, external with the persistent-lag scaler's sustainSeconds, cron, cpu, memory and "
    "prometheus"
)
_APART = "a topic, or a partitionLimitation, of its own: triggers on lag are simulated where no two count the same partitions"
USED = "a workload with process_ms, burn and cpu_request_m: what a message costs, and what a pod requests"
UNSEEN = "the memory trigger is taken to ask for nothing: what a pod holds is not known"


def lag_triggers(scaled: ScaledObject, count: int = MOST) -> tuple[Kafka | PersistentLag, ...]:
    """The triggers on lag of a group with ``count`` topics, each on partitions of its own; none where there are none. Raises
    :class:`InputError` for several on the same, another group's or a further topic, and for a source that is not simulated."""
    with together():
        check_one_group(scaled)
    if any(isinstance(one, External) and not isinstance(one, PersistentLag) for one in scaled.triggers):
        raise _refused(scaled, SIMULATED)
    found = [(number, one) for number, one in enumerate(scaled.triggers) if isinstance(one, Kafka | PersistentLag)]
    read = topic_places([one for _, one in found])
    for (number, one), place in reversed([*zip(found, read, strict=True)]):
        if len(found) > 1 and one.partitions is None and (place is None or read.count(place) > 1):
            topic = topic_of(one)
            field = "topicFromEnv" if topic.variable and not topic.literal else "topic"
            value = topic.literal or topic.variable or None
            raise InputError(scaled.where, f"spec.triggers[{number}].metadata.{field}", value, _APART)
    check_topics(scaled.triggers, count, scaled.where)
    return tuple(one for _, one in found)


def _refused(scaled: ScaledObject, allowed: str) -> InputError:
    types = [trigger["type"] for trigger in scaled.content["spec"]["triggers"]]
    return InputError(scaled.where, "spec.triggers", types, allowed)


def lag_trigger(scaled: ScaledObject) -> Kafka | PersistentLag | None:
    """The one trigger of ``scaled`` on lag, None where it has none. Raises :class:`InputError` for a second one."""
    found = lag_triggers(scaled)
    if len(found) > 1:
        raise _refused(scaled, "one trigger on lag, whose lagThreshold is tuned, beside others")
    return found[0] if found else None


def source_of(trigger: Trigger, part: Part, names: Names, situation: Situation, where: object, field: str) -> Source | None:
    """The scaler of ``trigger``, whose place is ``field``, which counts ``part`` of the group if it is on lag; None for cpu and
    memory, which have none.
    Raises :class:`InputError` for a profile without a time of day, another query, a cpu trigger without a footprint, or a
    limitation to partitions that there are not, with which KEDA fails."""
    if isinstance(trigger, Kafka) and not part.of(situation.shares).size:
        chosen = ",".join(map(str, sorted(trigger.partitions or ())))
        raise InputError(where, f"{field}.metadata.partitionLimitation", chosen, "some of the topic's partitions, from 0")
    match trigger:
        case Kafka():
            return Instant(trigger, part)
        case PersistentLag():
            return Lasting(trigger, part)
        case Cron():
            if situation.profile.begins_at is None:
                raise InputError(where, "begins_at of the profile", None, NEEDED)
            return Scheduled(trigger, situation.profile.begins_at)
        case Prometheus():
            return Queried(trigger, Answer(trigger.query, names, situation, where, f"{field}.metadata.query"))
        case Resource():
            if trigger.resource == CPU and situation.consumers.footprint is None:
                raise InputError("command line", "--workload", None, f"{USED}, which the cpu trigger looks at")
            return None
        case _:
            raise TypeError(f"lag_triggers refuses {trigger}")


def _given(observed: Observation | None) -> hpa.Observed:
    return None if observed is None or observed.metric is None else hpa.external(observed.metric)


class Scaler:
    """One ScaledObject on a simulated group; times in s from the start."""

    def __init__(self, scaled: ScaledObject, situation: Situation) -> None:
        """Raises :class:`InputError` for a trigger that is not simulated in ``situation``, and for a paused ScaledObject."""
        self.scaled, self._controller = scaled, situation.controller
        named: dict[
            str, str
        ] = {}  # a value for every variable that a name comes from: it changes nothing but the metric's name
        for one in lag_triggers(scaled, situation.topics):
            if isinstance(one, Kafka):
                named |= {name.variable: "simulated" for name in (one.servers, one.group, one.topic)}
        self._sources: list[Source | None] = []
        names = Names.of(scaled.triggers, situation.topics)
        with together():
            for index, (trigger, place) in enumerate(zip(scaled.triggers, topic_places(scaled.triggers), strict=True)):
                only = trigger.partitions if isinstance(trigger, Kafka | PersistentLag) else None
                part, field = Part(place, situation.topics, only, situation.sizes), f"spec.triggers[{index}]"
                with step():
                    self._sources.append(source_of(trigger, part, names, situation, scaled.where, field))
        footprint = situation.consumers.footprint or UNKNOWN
        metered = [trigger.resource for trigger in scaled.triggers if isinstance(trigger, Resource)]
        server = MetricsServer(footprint, situation.metrics_s)
        self._metrics, self._pods = server if metered else None, server.pods
        self._unseen = [UNSEEN] if MEMORY in metered and footprint.held is None else []
        if scaled.modifiers is None:
            resource.check_whole_pods(scaled.triggers, scaled.where)
        made = keda.hpa(scaled, named, external.answers(scaled.triggers))
        if made is None:
            raise InputError(scaled.where, *(scaled.pause or ("spec.triggers", "none")), "a ScaledObject that scales")
        self._spec = hpa.parse(made, scaled.where)
        self._by_pods = bool(metered) or any(metric.target == "Value" for metric in self._spec.metrics)  # ready ones
        # KEDA sorts the HPA's metrics by type: External is before Resource.
        self._order = sorted(range(len(self._sources)), key=lambda index: self._sources[index] is None)
        self._state = hpa.State()
        self._last_active: float | None = None
        self._cached: list[Observation | None] = []
        self._failures = [0] * len(self._sources)
        self.replicas = scaled.start if situation.replicas is None else situation.replicas
        self.reasons: tuple[str, ...] = ()

    @property
    def polls_every_s(self) -> float | None:
        """The period of KEDA's own loop, s; None where its result changes nothing."""
        return float(self.scaled.polling_s) if keda.polls(self.scaled) else None

    @property
    def notes(self) -> list[str]:
        """Lines about what the triggers do not see."""
        return [*self._unseen, *(note for source in self._sources if source for note in source.notes)]

    @property
    def due(self) -> float:
        """The time of the next sample that a trigger's scaler or metrics-server takes by itself, s; infinity for none."""
        own = (source.due for source in self._sources if source)
        return min((*own, *([self._metrics.due] if self._metrics else ())), default=math.inf)

    def sample(self, seen: Seen) -> None:
        """Take the samples that are due."""
        for source in self._sources:
            if source and source.due <= seen.now:
                source.sample(seen)
        if self._metrics and self._metrics.due <= seen.now:
            self._metrics.sample(seen.now, float(seen.processed.sum()), len(seen.joined))

    def poll(self, seen: Seen) -> int:
        """One pass of KEDA's loop: to 0 and from 0; the replicas asked for afterwards."""
        self._cached = [self._observe(index, seen) for index, _ in enumerate(self._sources)]
        found = keda.state(self.scaled, self._cached)
        decision = keda.scale(self.scaled, found, self.replicas, seen.now, 0.0, self._last_active)
        self._last_active = decision.last_active_s
        if decision.replicas is not None and decision.replicas != self.replicas:
            self.replicas, self.reasons = decision.replicas, ("KEDA", *decision.reasons)
        return self.replicas

    def sync(self, seen: Seen) -> int:
        """One sync of the HPA; the replicas asked for afterwards."""
        pods = self._pods(seen.joined, self.replicas) if self._by_pods else None
        metrics, composed = self._values(seen)
        now, controller = seen.now, self._controller
        decision, self._state = hpa.decide(
            self._spec, self._state, self.replicas, metrics, now, pods=pods, controller=controller
        )
        self.replicas, self.reasons = decision.desired, (*composed, *decision.reasons)
        return self.replicas

    def _values(self, seen: Seen) -> tuple[list[hpa.Observed], tuple[str, ...]]:
        """The values that the HPA is given, in the order of its metrics, and how a formula composes its own."""
        answers = [self._answer(index, seen) for index, _ in enumerate(self._sources)]
        if self.scaled.modifiers is None:
            return [self._usage(index, seen) if answers[index] is None else _given(answers[index]) for index in self._order], ()
        composed = keda.compose(self.scaled, answers)
        whole = [index for index, one in enumerate(self.scaled.triggers) if isinstance(one, Resource) and not one.container]
        return [*(self._usage(index, seen) for index in whole), _given(composed)], composed.reasons

    def _usage(self, index: int, seen: Seen) -> hpa.Observed:
        """What the pods use, for the cpu or memory trigger at ``index``."""
        trigger = self.scaled.triggers[index]
        assert isinstance(trigger, Resource), "any other has an answer"
        assert self._metrics is not None, "one is made for any such trigger"
        return self._metrics.usage(trigger.resource, seen.joined[: self.replicas])

    def _answer(self, index: int, seen: Seen) -> Observation | None:
        """What the HPA's call finds of the trigger at ``index``, cached the poll's value; None for cpu and memory."""
        cached = self._cached[index] if self.scaled.triggers[index].common.cached and self._cached else None
        return self._observe(index, seen) if cached is None else self._observed(index, cached.outcome)

    def _observe(self, index: int, seen: Seen) -> Observation | None:
        """One query of the trigger at ``index``; None for cpu and memory, which KEDA asks nothing."""
        source = self._sources[index]
        if source is None:
            return None
        try:
            return self._observed(index, source.read(seen))
        except ScalerError as error:
            return self._observed(index, error)

    def _observed(self, index: int, outcome: Reading | ScalerError) -> Observation:
        source = self._sources[index]
        assert source is not None, "cpu and memory have no outcome"
        observed = keda.observe(self.scaled, outcome, self._failures[index], source.target, replicas=self.replicas)
        self._failures[index] = observed.failures
        return observed
