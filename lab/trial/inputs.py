"""What a trial is a function of: profile, workload, policy, partitions, seed, scale and runtime. Its identity is their hash."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from lab import paths, profile, yamlfile
from lab.autoscaling import scaledobject
from lab.autoscaling.scaledobject import ScaledObject
from lab.consumer.settings import BALANCERS, Cost
from lab.errors import InputError
from lab.profile import Profile
from lab.scale import Scale

PARTITIONS = 24


@dataclass(frozen=True)
class Workload:
    """The consumer's settings in a trial; the words and ranges are those of ``python -m lab.consumer --help``."""

    process_ms: str = "2-10"
    concurrency: int = 6
    balancer: str = "cooperative-sticky"
    commit: str = "manual"
    commit_interval_ms: int = 250
    drain: str = "on"
    drain_timeout: int = 20
    wake: str = "on"

    def check(self) -> None:
        """Raise :class:`InputError` for the first setting the consumer would refuse."""
        for field, value, allowed in (
            ("balancer", self.balancer, BALANCERS),
            ("commit", self.commit, ("manual", "auto")),
            ("drain", self.drain, ("on", "off")),
            ("wake", self.wake, ("on", "off")),
        ):
            if value not in allowed:
                raise InputError("workload", field, value, f"one of {', '.join(allowed)}")
        try:
            Cost.parse(self.process_ms)
        except ValueError:
            raise InputError("workload", "process_ms", self.process_ms, "6 or 2-10, 0.001 to 600,000") from None
        if self.concurrency < 1:
            raise InputError("workload", "concurrency", self.concurrency, "a whole number from 1")

    @property
    def rate(self) -> float:
        """Messages/s a pod processes at most: concurrency / mean processing time."""
        return self.concurrency * 1000 / Cost.parse(self.process_ms).mean


@dataclass(frozen=True)
class Inputs:
    """A trial's inputs as they are applied, that is after the scale's compression."""

    profile_name: str
    policy_name: str
    profile: Profile
    policy: ScaledObject
    workload: Workload
    seed: int
    scale: Scale
    runtime: str
    partitions: int = PARTITIONS

    def to_dict(self) -> dict[str, Any]:
        """The inputs as plain data: what is hashed, and what trial.json keeps."""
        return {
            "profile_name": self.profile_name,
            "policy_name": self.policy_name,
            "profile": self.profile.to_dict(),
            "policy": self.policy.content,
            "workload": asdict(self.workload),
            "seed": self.seed,
            "scale": asdict(self.scale),
            "runtime": self.runtime,
            "partitions": self.partitions,
        }

    @cached_property
    def id(self) -> str:
        """Names and the hash of everything: equal inputs, equal id."""
        digest = hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.profile_name}-{self.policy_name}-{digest}"

    def environment(self, bootstrap: str, run: str) -> dict[str, str]:
        """The ConfigMap "trial" that producer, consumer, exporter and ScaledObject read; ``run`` makes its names unique."""
        workload = asdict(self.workload) | {"concurrency": round(self.workload.concurrency * self.scale.rate)}
        return {
            "BOOTSTRAP_SERVERS": bootstrap,
            "TOPIC": f"events-{run}",
            "GROUP": f"enrich-{run}",
            "RECEIPTS_TOPIC": f"receipts-{run}",
            "REPORTS_TOPIC": f"reports-{run}",
            "PROFILE_YAML": yaml.safe_dump(self.profile.to_dict(), sort_keys=False),
            "SEED": str(self.seed),
            **{name.upper(): str(value) for name, value in workload.items()},
        }

    def manifests(self, environment: dict[str, str]) -> list[dict[str, Any]]:
        """Every object the trial applies in its namespace before the producer starts, in order."""
        consumer = yamlfile.read(paths.MANIFESTS / "consumer" / "deployment.yaml")
        consumer["spec"]["replicas"] = max(1, self.policy.min_replicas)  # a baseline begins at the floor
        settings = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "trial"},
            "data": environment,
        }
        exporter = yamlfile.read(paths.MANIFESTS / "kafka" / "lag-exporter.yaml")
        return [settings, exporter, consumer, self.policy.content]

    @staticmethod
    def producer() -> dict[str, Any]:
        """The Job that replays the profile."""
        return yamlfile.read(paths.MANIFESTS / "producer" / "job.yaml")


def read(profile_name: str, policy_name: str, workload: Workload, seed: int, scale: Scale, runtime: str) -> Inputs:
    """Read and check all inputs together. Raises :class:`InputError` for the first that can't be used."""
    workload.check()
    given = profile.load(_file(paths.PROFILES, profile_name, "profile"))
    policy = scaledobject.load(_file(paths.MANIFESTS / "scaledobjects", policy_name, "policy"))
    return Inputs(
        profile_name=profile_name,
        policy_name=policy_name,
        profile=given.compressed(scale.time, scale.rate),
        policy=policy.compressed(scale),
        workload=workload,
        seed=seed,
        scale=scale,
        runtime=runtime,
    )


def _file(folder: Path, name: str, kind: str) -> Path:
    file = folder / f"{name}.yaml"
    if not file.exists():
        known = sorted(path.stem for path in folder.glob("*.yaml") if path.stem != "scales")
        raise InputError(folder, kind, name, f"one of {', '.join(known)}")
    return file
