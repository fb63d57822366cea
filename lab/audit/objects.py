"""The objects of a fleet as they are written, read leniently: what is not there, or is of another kind, is empty. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import Any

from lab.yamltext import Source

Path = tuple[str | int, ...]  # of a field in an object

SCALED, HPA, TOPIC = "ScaledObject", "HorizontalPodAutoscaler", "KafkaTopic"
MOST_PARTITIONS = 1_000_000  # of a topic
WORKLOADS = ("Deployment", "StatefulSet", "ReplicaSet", "Rollout")
_OWNED = "validations.keda.sh/hpa-ownership"  # an HPA that says "false" is no rival to KEDA's webhook
_TAKES = "scaledobject.keda.sh/transfer-hpa-ownership"


def mapping(value: object) -> Mapping[str, Any]:
    """``value`` if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def listed(value: object) -> list[Mapping[str, Any]]:
    """The mappings in ``value`` if it is a list, else none."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def text(value: object) -> str:
    """``value`` if it is text, else ""."""
    return value if isinstance(value, str) else ""


def whole(value: object, default: int) -> int:
    """``value`` if it is a whole number, else ``default``."""
    return default if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 else int(value)


def at(content: object, *path: str | int) -> Any:
    """What lies at ``path`` of plain data; None where there is nothing."""
    for part in path:
        if isinstance(content, Mapping):
            content = content.get(part)
        elif isinstance(content, list) and isinstance(part, int) and 0 <= part < len(content):
            content = content[part]
        else:
            return None
    return content


def dotted(path: Path) -> str:
    """``path`` as people write it: spec.triggers[0].type."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


@dataclass(frozen=True, eq=False)
class Item:
    """An object, and where it was read."""

    content: Mapping[str, Any]
    where: Source

    @cached_property
    def kind(self) -> str:
        """Its kind, such as Deployment."""
        return text(self.content.get("kind"))

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """Its metadata."""
        return mapping(self.content.get("metadata"))

    @cached_property
    def name(self) -> str:
        """Its name."""
        return text(self.metadata.get("name"))

    @cached_property
    def space(self) -> str:
        """Its namespace; "" where none is written."""
        return text(self.metadata.get("namespace"))

    @cached_property
    def spec(self) -> Mapping[str, Any]:
        """Its spec."""
        return mapping(self.content.get("spec"))

    @property
    def title(self) -> str:
        """What findings call it."""
        return f"{self.kind} {self.space and self.space + '/'}{self.name or '(without a name)'}"

    @property
    def live(self) -> bool:
        """Whether it was read from a cluster, and is no manifest that is applied."""
        return bool(self.metadata.get("uid") or self.metadata.get("resourceVersion"))

    @cached_property
    def target(self) -> tuple[str, str, str, str]:
        """Namespace, group, kind and name of what it scales; without a name it scales nothing."""
        given = mapping(self.spec.get("scaleTargetRef"))
        group = (text(given.get("apiVersion")) or "apps/v1").rpartition("/")[0]
        return self.space, group, text(given.get("kind")) or "Deployment", text(given.get("name"))

    @cached_property
    def pod(self) -> Mapping[str, Any]:
        """The spec of its pods."""
        return mapping(at(self.spec, "template", "spec"))

    @cached_property
    def labels(self) -> dict[str, str]:
        """The labels of its pods."""
        return _strings(at(self.spec, "template", "metadata", "labels"))

    @cached_property
    def selector(self) -> dict[str, str] | None:
        """The labels that its selector wants; None where it wants none, or more than labels."""
        given = mapping(self.spec.get("selector"))
        return None if given.get("matchExpressions") else _strings(given.get("matchLabels")) or None


@dataclass(frozen=True, eq=False)
class Fleet:
    """All objects that are audited together."""

    items: Sequence[Item]
    _kinds: dict[str, list[Item]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Sort by kind."""
        for item in self.items:
            self._kinds.setdefault(item.kind, []).append(item)

    def of(self, *kinds: str) -> Iterator[Item]:
        """The objects of these ``kinds``."""
        for kind in kinds:
            yield from self._kinds.get(kind, ())

    @cached_property
    def _workloads(self) -> dict[tuple[str, str, str], list[Item]]:
        found: dict[tuple[str, str, str], list[Item]] = {}
        for item in self.of(*WORKLOADS):
            found.setdefault((item.space, item.kind, item.name), []).append(item)
        return found

    def workload(self, scaled: Item) -> Item | None:
        """The object that ``scaled`` scales; None where it is not among those of the fleet.

        One that is written several times, as for each environment, is that of the nearest file.
        """
        space, _, kind, name = scaled.target
        found = self._workloads.get((space, kind, name), ())
        return max(found, key=lambda one: _shared(one.where, scaled.where), default=None)

    @cached_property
    def topics(self) -> Mapping[str, int]:
        """The partitions of each topic that Strimzi's objects declare."""
        found = {text(item.spec.get("topicName")) or item.name: item.spec.get("partitions") for item in self.of(TOPIC)}
        return {name: count for name, count in found.items() if isinstance(count, int) and 0 < count <= MOST_PARTITIONS}

    @cached_property
    def owners(self) -> Mapping[tuple[str, str, str, str], list[Item]]:
        """The ScaledObjects, and the HPAs that none of them made, by what they scale.

        One that is written again, as for another environment, is the same.
        """
        found: dict[tuple[str, str, str, str], dict[str, Item]] = {}
        for item in (*self.of(SCALED), *self.plain_hpas):
            if item.target[-1]:
                found.setdefault(item.target, {}).setdefault(item.title, item)
        return {target: [*items.values()] for target, items in found.items()}

    @cached_property
    def plain_hpas(self) -> list[Item]:
        """The HPAs that no ScaledObject owns, or is to take over."""
        taken = {(one.space, _name_of_hpa(one)) for one in self.of(SCALED) if at(one.metadata, "annotations", _TAKES) == "true"}
        return [item for item in self.of(HPA) if not _of_keda(item) and (item.space, item.name) not in taken]


def _shared(one: str, other: str) -> int:
    """How many folders, and then the file, two paths have in common."""
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return len([*takewhile(lambda pair: pair[0] == pair[1], pairs)])


def _strings(value: object) -> dict[str, str]:
    return {key: word for key, word in mapping(value).items() if isinstance(key, str) and isinstance(word, str)}


def _of_keda(hpa: Item) -> bool:
    owned = any(one.get("kind") == SCALED for one in listed(hpa.metadata.get("ownerReferences")))
    labels = mapping(hpa.metadata.get("labels"))
    return owned or "scaledobject.keda.sh/name" in labels or at(hpa.metadata, "annotations", _OWNED) == "false"


def _name_of_hpa(scaled: Item) -> str:
    return text(at(scaled.spec, "advanced", "horizontalPodAutoscalerConfig", "name"))
