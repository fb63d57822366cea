"""The producer's settings: what a trial may set beside its profile, and what connects the program to its cluster."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab import yamlfile
from lab.flags import ANY, SEED, Flags, choice, number, whole
from lab.inputs import settings as declarations
from lab.inputs import topics
from lab.inputs.keys import ENTITIES
from lab.inputs.profile import KINDS, Profile, build, load
from lab.inputs.settings import setting
from lab.kafka.event import PAYLOAD

DELIVERY_S = 300  # librdkafka's own default. With 60 s, events that were only late were given up (docs/decisions/11)


@dataclass(frozen=True, kw_only=True)
class TrialSettings:
    """What a trial sets of its producer, as plain data: a field here is all that a new setting needs."""

    entities: int = setting(ENTITIES, whole(1, 100_000_000), "number of entity ids, the messages' keys")
    random_bytes: int = setting(
        0, whole(0, PAYLOAD), f"bytes of each payload of {PAYLOAD} that are its own; the others are those of all, and compress"
    )
    compression: str = setting(
        "none", choice("none", "gzip", "lz4", "snappy", "zstd"), "how batches are compressed", client="compression.type"
    )
    linger_ms: int = setting(
        5, whole(0, 10_000), "how long a batch waits for more events: larger ones compress better", "ms", client="linger.ms"
    )


@dataclass(frozen=True, kw_only=True)
class Settings(TrialSettings, topics.Settings):
    """All that a producer is given."""

    bootstrap_servers: str
    kafka_settings: Mapping[str, str] = field(repr=False)
    pod_ip: str
    metrics_port: int
    reports_topic: str = setting("", ANY, "topic for the recorder's events; empty for none")
    profile: str = setting("step", ANY, f"{', '.join(KINDS[:-1])}, or a YAML file")
    profile_yaml: str = setting("", ANY, "the profile's YAML itself (as a pod gets it); wins over --profile")
    rate: float = setting(1000.0, number(0, 1e6), "rate at multiplier 1, for a named profile", "events/s")
    spike_mult: float = setting(10.0, number(1, 1000), "the spike's multiple of the rate")
    spike_hold: float = setting(600.0, number(0.001, 604_800), "how long the spike is held", "s")
    duration: float = setting(1800.0, number(0.001, 604_800), "length of a named profile", "s")
    seed: int = setting(1, SEED, "decides keys and payload")
    partitions: int = setting(0, whole(0, 10_000), "create each topic with so many; 0 leaves it")
    start_in: float = setting(1.0, number(0, 3600), "from now to the profile's start", "s")
    start_at: float = setting(0.0, number(0, 1e11), "the profile's start, which wins over --start-in; 0 for none", "epoch s")

    @property
    def traffic(self) -> Profile:
        """The profile: of YAML text, a file, or a named kind. Raises :class:`InputError` for the first field that is wrong."""
        if self.profile_yaml:
            return build(yamlfile.parse(self.profile_yaml, "PROFILE_YAML"), "PROFILE_YAML")
        if self.profile not in KINDS:
            return load(Path(self.profile))
        content: dict[str, Any] = {"kind": self.profile, "rate": self.rate, "duration": self.duration}
        if self.profile != "steady":
            content |= {"spike_mult": self.spike_mult, "spike_hold": self.spike_hold}
        return build(content, "command line")


def flags() -> Flags:
    """The producer's flags."""
    return declarations.program(Settings, "producer", __doc__, 0)


def settings(options: Namespace) -> Settings:
    """The settings in parsed flags."""
    return Settings(**vars(options))
