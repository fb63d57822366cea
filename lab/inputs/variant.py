"""A policy as a base and what differs from it: ``policy("lag-4500", scale_down_window=900)`` shows the value. Pure."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import InputError

_BEHAVIOR = "advanced.horizontalPodAutoscalerConfig.behavior"
# By the name of a change: where it goes in the spec, and its word in the policy's label.
SPEC = {
    "min_replicas": ("minReplicaCount", "min"),
    "max_replicas": ("maxReplicaCount", "max"),
    "polling_interval": ("pollingInterval", "polling"),
    "cooldown_period": ("cooldownPeriod", "cooldown"),
    "scale_up_window": (f"{_BEHAVIOR}.scaleUp.stabilizationWindowSeconds", "up-window"),
    "scale_up": (f"{_BEHAVIOR}.scaleUp.policies", "up"),
    "scale_up_tolerance": (f"{_BEHAVIOR}.scaleUp.tolerance", "up-tolerance"),
    "scale_down_window": (f"{_BEHAVIOR}.scaleDown.stabilizationWindowSeconds", "window"),
    "scale_down": (f"{_BEHAVIOR}.scaleDown.policies", "down"),
    "scale_down_tolerance": (f"{_BEHAVIOR}.scaleDown.tolerance", "tolerance"),
}
# The same of every trigger of the types that have the field.
_LAG = ("kafka", "apache-kafka", "external")
TRIGGERS = {
    "lag_threshold": ("metadata.lagThreshold", "threshold", _LAG),
    "activation_lag_threshold": ("metadata.activationLagThreshold", "activation", _LAG),
    "allow_idle_consumers": ("metadata.allowIdleConsumers", "idle-consumers", _LAG),
    "exclude_persistent_lag": ("metadata.excludePersistentLag", "exclude-persistent", _LAG[:2]),
    "limit_to_partitions_with_lag": ("metadata.limitToPartitionsWithLag", "limit-to-lagging", _LAG[:2]),
    "sustain_seconds": ("metadata.sustainSeconds", "sustain", _LAG[2:]),
    "use_cached_metrics": ("useCachedMetrics", "cached", (*_LAG, "prometheus")),
}
TRIGGER = "trigger"  # one more trigger, as in YAML
NAMES = (*SPEC, *TRIGGERS, TRIGGER)
_LONGEST_NAME = 20  # of a user's file
_STEP = re.compile(r"(?P<value>\d+) ?(?P<type>%|pods?)/(?P<period>\d+) ?s")
_SIZES = ("value", "threshold", "lagThreshold", "desiredReplicas")  # what tells two triggers of one type apart


@dataclass(frozen=True)
class Variant:
    """A ScaledObject, the ``base``, and by name what differs from it; in the order of NAMES."""

    base: str | Path
    changes: tuple[tuple[str, Any], ...] = ()

    def where(self, file: Path) -> object:
        """The base's ``file`` with the changes, for errors."""
        return f"{file} with {', '.join(f'{name}={value!r}' for name, value in self.changes)}" if self.changes else file

    def applied(self, content: Mapping[str, Any], where: object) -> dict[str, Any]:
        """The base's ``content`` with the changes. Raises :class:`InputError` for one without a name, or a place, in it."""
        made = copy.deepcopy(dict(content))
        if self.changes and made.get("kind") != "ScaledObject":
            raise InputError(where, "kind", made.get("kind"), "ScaledObject: no other policy is changed by name")
        for name, value in self.changes:
            if name not in NAMES:
                raise InputError(where, name, value, f"one of {', '.join(NAMES)}")
            if name in SPEC:
                _put(made["spec"], SPEC[name][0], _in_spec(name, value, where))
            elif name == TRIGGER:
                if not isinstance(value, Mapping) or not isinstance(value.get("type"), str):
                    raise InputError(where, name, value, "a trigger as in YAML: {type, metadata}")
                made["spec"]["triggers"].append(copy.deepcopy(value))
            else:
                place, _, types = TRIGGERS[name]
                fitting = [one for one in made["spec"]["triggers"] if one.get("type") in types]
                if not fitting:
                    raise InputError(where, name, value, f"none without a trigger of type {', '.join(types)}")
                text = str(value).lower() if isinstance(value, bool) else str(value)  # as metadata is
                for one in fitting:
                    _put(one, place, text if place.startswith("metadata.") else value)
        return made

    def suffixes(self) -> Iterator[str]:
        """What each change adds to the policy's label."""
        for name, value in self.changes:
            if name == TRIGGER:
                size = next((value["metadata"][one] for one in _SIZES if one in value.get("metadata", {})), "")
                yield _plain(f"{value['type']}-{size}")
                continue
            word = (SPEC.get(name) or TRIGGERS[name])[1]
            if isinstance(value, bool):
                yield word if value else f"no-{word}"
            else:
                yield _plain(f"{word}-{'-'.join(value) if isinstance(value, list | tuple) else value}")

    def label(self, base: str, lag_threshold: int | None) -> str:
        """The name that the trial's id has, made of the ``base``'s; ``lag_threshold`` is the base's own. A base whose name ends
        with its lagThreshold has the changed one there: ``lag-4500`` becomes ``lag-1500``."""
        rest = dict(zip(dict(self.changes), self.suffixes(), strict=True))
        if base.endswith(f"-{lag_threshold}") and "lag_threshold" in rest:
            del rest["lag_threshold"]
            base = base.removesuffix(f"{lag_threshold}") + str(dict(self.changes)["lag_threshold"])
        return "-".join((base, *rest.values()))


def policy(base: str | Path, **changes: Any) -> Variant:
    """The ScaledObject ``base``, by name or a user's file, with these changes, each by one of NAMES.

    Values are those of the YAML; ``scale_up`` and ``scale_down`` are "50%/60s", "8 pods/30s", or a list of such; ``trigger`` is
    one more trigger, as a dict.
    """
    return Variant(base, tuple(sorted(changes.items(), key=lambda change: (*NAMES, change[0]).index(change[0]))))


def _in_spec(name: str, value: Any, where: object) -> Any:
    if name.endswith("_tolerance"):
        return str(value)
    if name not in ("scale_up", "scale_down"):
        return value
    steps: Sequence[Any] = value if isinstance(value, list | tuple) else [value]
    found = []
    for step in steps:
        read = _STEP.fullmatch(step) if isinstance(step, str) else None
        if read is None:
            raise InputError(where, name, step, '"50%/60s" or "8 pods/30s", or a list of such')
        kind = "Percent" if read["type"] == "%" else "Pods"
        found.append({"type": kind, "value": int(read["value"]), "periodSeconds": int(read["period"])})
    return found


def _put(content: dict[str, Any], place: str, value: Any) -> None:
    *folders, field = place.split(".")
    for folder in folders:
        content[folder] = content = dict(content.get(folder) or {})
    content[field] = value


def _plain(text: str) -> str:
    """``text`` as a namespace's name can hold it."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def file_label(name: str | Path) -> str:
    """A committed file's name, or what a trial's identity takes of a user's: small letters, digits and hyphens."""
    if isinstance(name, str):
        return name
    return re.sub(r"[^a-z0-9]+", "-", name.stem.lower()).strip("-")[:_LONGEST_NAME].strip("-") or "own"
