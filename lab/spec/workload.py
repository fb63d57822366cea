"""A trial's workload: how fast and in what way its consumers work, and what their pods are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from lab import yamlfile
from lab.errors import InputError
from lab.spec.backoff import Backoff
from lab.spec.consumer import Cost, flags
from lab.spec.scale import Scale

PARTITIONS = 24  # of a trial's topic
MOST_PARTITIONS = 200  # of one broker, on one machine
_POD = {"grace_s": (1, 86_400), "cpu_request_m": (1, 1000)}  # the pod's settings, not the program's; its limit is one CPU
_SWITCHES = ("drain", "wake", "dlq")
# These came when there were records: left out at their default, so that a trial from before keeps its identity.
_LATER = ("burn", "fail_rate", "poison_rate", "poison", "retry_ms", "retry_jitter", "dlq")


@dataclass(frozen=True)
class Workload:
    """The consumer's settings in a trial; the words and ranges are those of ``python -m lab.programs.consumer --help``.

    Two are the pod's: ``grace_s`` its terminationGracePeriodSeconds, ``cpu_request_m`` the CPU it requests, in millicores.
    """

    process_ms: str = "2-10"
    concurrency: int = 6
    balancer: str = "cooperative-sticky"
    commit: str = "manual"
    commit_interval_ms: int = 250
    drain: str = "on"
    drain_timeout: int = 20
    wake: str = "on"
    poll_ms: int = 50
    partition_warmup_ms: int = 0
    auto_offset_reset: str = "earliest"
    metadata_refresh_ms: int = 300_000
    grace_s: int = 30
    cpu_request_m: int = 25
    burn: int = 0
    fail_rate: float = 0.0
    poison_rate: float = 0.0
    poison: str = ""
    retry_ms: str = "1000,2000,4000"
    retry_jitter: float = 0.0
    dlq: str = "on"

    @classmethod
    def of(cls, content: Mapping[str, Any], where: object) -> Workload:
        """The workload with these settings, the others by default. Raises :class:`InputError` like :meth:`check`."""
        types: dict[str, Any] = {field.name: type(field.default) for field in fields(cls)}
        yamlfile.known(content, types, where)
        # To YAML an unquoted on is true.
        written: dict[str, Any] = {
            name: ("off", "on")[value] if name in _SWITCHES and isinstance(value, bool) else value
            for name, value in content.items()
        }
        cls(**written).check(where)
        return cls(**{name: types[name](value) for name, value in written.items()})

    def check(self, where: object = "workload") -> None:
        """Raise :class:`InputError` for the first setting that the consumer, or its pod, would refuse."""
        consumer = flags()
        for field, value in asdict(self).items():
            if field in _POD:
                yamlfile.whole({field: value}, field, where, *_POD[field])
            else:
                consumer.check(field.replace("_", "-"), value, where, field)
        if self.fail_rate + self.poison_rate > 1:
            raise InputError(where, "poison_rate", self.poison_rate, f"at most 1 - fail_rate, {1 - self.fail_rate:g}")

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain data, without those of ``_LATER`` that are at their default."""
        given = asdict(self)
        plain = {field.name: field.default for field in fields(self)}
        return {name: value for name, value in given.items() if name not in _LATER or value != plain[name]}

    def environment(self, scale: Scale) -> dict[str, str]:
        """The program's settings as its environment; ``scale`` changes how many at once, and how long it waits to retry."""
        settings = asdict(self) | {"concurrency": round(self.concurrency * scale.rate)}
        settings["retry_ms"] = str(Backoff.parse(self.retry_ms).compressed(scale.time))
        return {name.upper(): str(value) for name, value in settings.items() if name not in _POD}

    @property
    def dead_letters(self) -> bool:
        """Whether any of its messages may become a dead letter."""
        return self.dlq == "on" and bool(self.fail_rate or self.poison_rate or self.poison)

    @property
    def rate(self) -> float:
        """Messages/s a pod processes at most: concurrency / mean processing time."""
        return self.concurrency * 1000 / Cost.parse(self.process_ms).mean


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
