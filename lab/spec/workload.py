"""A trial's workload: how fast and in what way its consumers work, and what their pods are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from lab import yamlfile
from lab.errors import InputError
from lab.flags import whole
from lab.spec import consumer, producer, settings
from lab.spec.scale import Scale
from lab.spec.settings import setting

PARTITIONS = 24  # of a trial's topic
MOST_PARTITIONS = 200  # of one broker, on one machine
PROGRAMS = (consumer.TrialSettings, producer.TrialSettings)


@dataclass(frozen=True, kw_only=True)
class Workload(consumer.TrialSettings, producer.TrialSettings):
    """What a trial sets of its programs and of the consumer's pods; docs/workload.md has every field.

    The fields declared here are the pod's, no program's; the limit of its CPU is one core.
    """

    grace_s: int = setting(30, whole(1, 86_400), "terminationGracePeriodSeconds of the pod", "s", hashed_at_default=True)
    cpu_request_m: int = setting(25, whole(1, 1000), "CPU that the pod requests", "millicores", hashed_at_default=True)

    @classmethod
    def of(cls, content: Mapping[str, Any], where: object) -> Self:
        """The workload with these settings, the others by default. Raises :class:`InputError` like :meth:`check`."""
        yamlfile.known(content, (one.name for one in settings.declared(cls)), where)
        made = cls(**settings.read(cls, content, where))
        made.check_together(where)
        return made

    def check(self, where: object = "workload") -> None:
        """Raise :class:`InputError` for the first setting that its program, or its pod, would refuse."""
        settings.read(self, {one.name: getattr(self, one.name) for one in settings.declared(self)}, where)
        self.check_together(where)

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain data, as they are hashed: without most of those that are at their default."""
        return settings.hashed(self)

    def environment(self, scale: Scale) -> dict[str, str]:
        """The programs' settings at ``scale``, as their environment."""
        return {name: value for one in PROGRAMS for name, value in settings.environment(self, one, scale).items()}

    @property
    def dead_letters(self) -> bool:
        """Whether any of its messages may become a dead letter."""
        return self.dlq == "on" and bool(self.fail_rate or self.poison_rate or self.poison)

    @property
    def rate(self) -> float:
        """Messages/s a pod processes at most: concurrency / mean processing time."""
        return self.concurrency * 1000 / self.cost.mean


def load(file: Path) -> tuple[Workload, int]:
    """The workload in ``file`` (kind Workload: its settings, flat) and the topic's ``partitions``.

    Raises :class:`InputError` naming the field that can't be used.
    """
    content = yamlfile.read(file)
    if content.pop("kind", None) != "Workload":
        raise InputError(file, "kind", yamlfile.read(file).get("kind"), "Workload")
    partitions = yamlfile.whole(content, "partitions", file, 1, MOST_PARTITIONS, PARTITIONS)
    content.pop("partitions", None)
    return Workload.of(content, file), partitions
