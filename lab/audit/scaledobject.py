"""A ScaledObject as KEDA reads it, wrong parts and all: what can't be read has its default. Pure.

Times are in s, lag in messages. Names and defaults are those of KEDA 2.21 (``apis/keda/v1alpha1/scaledobject_types.go``,
``controllers/keda/hpa.go``) and of autoscaling/v2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lab.audit.objects import Fleet, Item, Path, at, listed, mapping, text, whole
from lab.audit.trigger import Trigger
from lab.inputs import hpa_spec
from lab.inputs.formula.tree import FormulaError, NotModelled
from lab.inputs.hpa_spec import DOWN, DOWNSCALE_STABILIZATION_S, UP, Behavior, Policy, Rules
from lab.inputs.modifiers import compiled
from lab.inputs.triggers.metadata import FALSE
from lab.model.hpa import DEFAULTS

HPA_CONFIG: Path = ("spec", "advanced", "horizontalPodAutoscalerConfig")
BEHAVIOR: Path = (*HPA_CONFIG, "behavior")
MODIFIERS: Path = ("spec", "advanced", "scalingModifiers")
ANNOTATIONS = "autoscaling.keda.sh/"
RESOURCES = ("cpu", "memory")
Version = tuple[int, int]


@dataclass(frozen=True)
class Facts:
    """What is in no object. None is what nobody said: then a rule that needs it is silent, or gives its formula.

    ``partitions`` are by topic, "" stands for every other one. ``commit_s``: s between two commits of a pod. ``job_s``: the
    longest job. ``pod_rate``: messages/s of one pod. ``sync_s``: the HPA's sync. Versions are those of KEDA and Kubernetes.
    """

    partitions: Mapping[str, int] = field(default_factory=dict)
    commit_s: float | None = None
    job_s: float | None = None
    pod_rate: float | None = None
    sync_s: float = 15.0
    keda: Version = (2, 21)
    kubernetes: Version = (1, 36)


@dataclass(frozen=True, eq=False)
class Scaled:
    """A ScaledObject of the ``fleet``, with the ``facts`` that are known."""

    item: Item
    fleet: Fleet
    facts: Facts

    @cached_property
    def least(self) -> int:
        """The minReplicaCount, pods."""
        return max(0, whole(self.item.spec.get("minReplicaCount"), 0))

    @cached_property
    def most(self) -> int:
        """The maxReplicaCount, pods."""
        return max(1, whole(self.item.spec.get("maxReplicaCount"), 100))

    @cached_property
    def floor(self) -> int:
        """The minReplicas of the HPA, pods."""
        return max(1, self.least)

    @cached_property
    def idle(self) -> int | None:
        """The idleReplicaCount, pods."""
        given = self.item.spec.get("idleReplicaCount")
        return None if given is None else whole(given, 0)

    @property
    def to_zero(self) -> bool:
        """Whether KEDA takes it to 0."""
        return not self.least or self.idle == 0

    @cached_property
    def polling_s(self) -> int:
        """The pollingInterval, s."""
        return max(1, whole(self.item.spec.get("pollingInterval"), 30))

    @cached_property
    def cooldown_s(self) -> int:
        """The cooldownPeriod, s."""
        return max(0, whole(self.item.spec.get("cooldownPeriod"), 300))

    @cached_property
    def initial_cooldown_s(self) -> int:
        """The initialCooldownPeriod, s."""
        return max(0, whole(self.item.spec.get("initialCooldownPeriod"), 0))

    @cached_property
    def triggers(self) -> tuple[Trigger, ...]:
        """Its triggers; a list's other items are none."""
        given = self.item.spec.get("triggers")
        every = given if isinstance(given, list) else []
        return tuple(Trigger(index, one) for index, one in enumerate(every) if isinstance(one, Mapping))

    @cached_property
    def lags(self) -> tuple[Trigger, ...]:
        """Those that count a group's lag."""
        return tuple(one for one in self.triggers if one.on_lag)

    @cached_property
    def modifiers(self) -> Mapping[str, Any]:
        """The scalingModifiers, without empty fields."""
        return {key: value for key, value in mapping(at(self.item.content, *MODIFIERS)).items() if value}

    @property
    def formula(self) -> str:
        """The formula that composes the metric; "" where triggers stand for themselves."""
        return text(self.modifiers.get("formula"))

    @cached_property
    def refusal(self) -> str:
        """Why KEDA refuses the formula; "" where it takes it, or may."""
        try:
            compiled(self.formula, [one.name for one in self.triggers if one.name and one.type not in RESOURCES])
        except FormulaError as error:
            return "" if isinstance(error, NotModelled) else str(error)
        return ""

    @cached_property
    def target(self) -> float | None:
        """The target of the formula's metric; None where it is none."""
        try:
            found = float(text(self.modifiers.get("target")))
        except ValueError:
            return None
        return found if math.isfinite(found) else None

    @cached_property
    def fallback(self) -> Mapping[str, Any] | None:
        """The fallback; None where there is none."""
        given = self.item.spec.get("fallback")
        return given if isinstance(given, Mapping) else None

    @cached_property
    def written_behavior(self) -> Mapping[str, Any]:
        """The behavior as it is written; empty where none is."""
        return mapping(at(self.item.content, *BEHAVIOR))

    @cached_property
    def behavior(self) -> Behavior | None:
        """The behavior of its HPA, with the API server's defaults; None where it has none, which is not the same."""
        if at(self.item.content, *BEHAVIOR) is None:
            return None
        return Behavior(
            _direction(self.written_behavior.get("scaleUp"), UP), _direction(self.written_behavior.get("scaleDown"), DOWN)
        )

    @property
    def up(self) -> Rules:
        """Its rules of a scale-up."""
        return self.behavior.up if self.behavior else UP

    @property
    def down(self) -> Rules:
        """Its rules of a scale-down."""
        return self.behavior.down if self.behavior else DOWN

    @property
    def down_window_s(self) -> int:
        """Its stabilization window down, s."""
        return DOWNSCALE_STABILIZATION_S if self.down.window_s is None else self.down.window_s

    @property
    def takes_tolerance(self) -> bool:
        """Whether KEDA and the API server keep a tolerance of its own."""
        return self.facts.keda >= (2, 18) and self.facts.kubernetes >= (1, 35)

    @property
    def tolerance(self) -> float:
        """By how much a metric may be above its target without a scale-up, as a ratio."""
        own = self.up.tolerance if self.takes_tolerance else None
        return DEFAULTS.tolerance if own is None else own

    @cached_property
    def hpa(self) -> str:
        """The name of the HPA that KEDA makes. Source: ``getHPAName``."""
        return text(at(self.item.content, *HPA_CONFIG, "name")) or f"keda-hpa-{self.item.name}"

    @cached_property
    def annotations(self) -> Mapping[str, str]:
        """KEDA's own annotations, without their prefix."""
        given = mapping(self.item.metadata.get("annotations"))
        return {key.removeprefix(ANNOTATIONS): str(value) for key, value in given.items() if str(key).startswith(ANNOTATIONS)}

    def switched(self, name: str) -> bool:
        """Whether the annotation ``name`` is on: any word but a false one. Source: ``getBoolAnnotation``."""
        return self.annotations.get(name, FALSE[0]) not in FALSE

    @cached_property
    def workload(self) -> Item | None:
        """What it scales; None where that is not in the fleet."""
        return self.fleet.workload(self.item)

    def question_s(self, trigger: Trigger) -> float:
        """Seconds between two questions to the source of ``trigger``, on average."""
        if trigger.cached:
            return float(self.polling_s)
        sync_s, polls = self.facts.sync_s, not self.least or self.idle is not None
        return sync_s * self.polling_s / (sync_s + self.polling_s) if polls else sync_s

    def topic(self, trigger: Trigger) -> str:
        """The topic of ``trigger``; "" where it names none, or a variable whose value is not known."""
        return trigger.metadata.get("topic") or self.variable(trigger.metadata.get("topicFromEnv", ""))[1]

    def partitions(self, trigger: Trigger) -> int | None:
        """The partitions of the topic of ``trigger``, or of all that others name where it names none; None: nobody said."""
        topic = self.topic(trigger)
        if topic or trigger.metadata.get("topicFromEnv"):
            return self._partitions(topic)
        named = [self._partitions(one) for one in {self.topic(other) for other in self.lags} - {""}]
        return sum(one or 0 for one in named) if named and all(named) else self._partitions("")

    def _partitions(self, topic: str) -> int | None:
        given = self.facts.partitions
        return given.get(topic) or self.fleet.topics.get(topic) or given.get("")

    def counted(self, trigger: Trigger) -> int | None:
        """The partitions that ``trigger`` counts; None where nobody said, or it is refused for counting none."""
        every = self.partitions(trigger)
        return None if every is None else trigger.counted(every) or None

    @cached_property
    def owned(self) -> int | None:
        """The partitions that its pods can own: of every topic once. None where one is not known, or it reads none."""
        found = {
            self.topic(one) or one.metadata.get("topicFromEnv", ""): self.partitions(one)
            for one in self.triggers
            if one.of_group
        }
        if len(found) > 1:
            found.pop("", None)  # which counts the same partitions again
        counts = [count for count in found.values() if count is not None]
        return sum(counts) if found and len(counts) == len(found) else None

    def caps(self) -> Iterator[tuple[Trigger, int]]:
        """The triggers that end at the partitions which they count, each with that number where it is known."""
        for trigger in self.lags:
            count = self.counted(trigger) if trigger.capped else None
            if count is not None:
                yield trigger, count

    def variable(self, name: str) -> tuple[bool | None, str]:
        """Whether the container that KEDA reads has the variable ``name``, None for not known, and its value if that is
        written. Source: ``ResolveContainerEnv``, which takes the first container, or envSourceContainerName."""
        containers = listed(self.workload.pod.get("containers")) if self.workload and name else []
        wanted = text(at(self.item.spec, "scaleTargetRef", "envSourceContainerName"))
        chosen = next((one for one in containers if not wanted or one.get("name") == wanted), None)
        if chosen is None:
            return None, ""
        found = next((one for one in listed(chosen.get("env")) if one.get("name") == name), None)
        if found is None:
            return (None if chosen.get("envFrom") else False), ""
        return True, text(found.get("value"))


def _direction(written: object, default: Rules) -> Rules:
    given = mapping(written)
    policies = tuple(
        Policy(text(one.get("type")), whole(one.get("value"), 0), whole(one.get("periodSeconds"), 0))
        for one in listed(given.get("policies"))
    )
    fits = tuple(one for one in policies if one.type in ("Pods", "Percent") and one.value > 0 and one.period_s > 0)
    window = given.get("stabilizationWindowSeconds")
    return Rules(
        window_s=default.window_s if window is None else whole(window, 0),
        select=text(given.get("selectPolicy")) or default.select,
        policies=fits or default.policies,
        tolerance=tolerance_of(given.get("tolerance")),
    )


def tolerance_of(written: object) -> float | None:
    """The tolerance that is ``written``; None where the API server takes none."""
    try:
        found = -1.0 if written is None else hpa_spec.approximate(hpa_spec.parse_quantity(written))
    except ValueError:
        return None
    return found if found >= 0 else None
