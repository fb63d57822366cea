"""What a trial is a function of: profile, workload, policy, partitions, seed, scale and runtime. Its identity is their hash."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from lab import paths, profile, yamlfile
from lab.autoscaling import policy as policies
from lab.autoscaling.policy import Policy
from lab.autoscaling.steps import ReplicaSteps
from lab.consumer.settings import BALANCERS, Cost
from lab.errors import InputError
from lab.profile import Profile
from lab.scale import Scale

PARTITIONS = 24
DRAINED, REPLAYED = "drained", "replayed"
REPARTITION = "repartition"
_POD = ("grace_s", "cpu_request_m")  # the pod's settings, not the program's
_POLICIES = ("scaledobjects", "hpa", "steps")


@dataclass(frozen=True)
class Workload:
    """The consumer's settings in a trial; the words and ranges are those of ``python -m lab.consumer --help``.

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

    def check(self) -> None:
        """Raise :class:`InputError` for the first setting the consumer would refuse."""
        for field, value, allowed in (
            ("balancer", self.balancer, BALANCERS),
            ("commit", self.commit, ("manual", "auto")),
            ("drain", self.drain, ("on", "off")),
            ("wake", self.wake, ("on", "off")),
            ("auto_offset_reset", self.auto_offset_reset, ("earliest", "latest")),
        ):
            if value not in allowed:
                raise InputError("workload", field, value, f"one of {', '.join(allowed)}")
        try:
            Cost.parse(self.process_ms)
        except ValueError:
            raise InputError("workload", "process_ms", self.process_ms, "6 or 2-10, 0.001 to 600,000") from None
        for field, number, least in (
            ("concurrency", self.concurrency, 1),
            ("poll_ms", self.poll_ms, 1),
            ("partition_warmup_ms", self.partition_warmup_ms, 0),
            ("metadata_refresh_ms", self.metadata_refresh_ms, 10),
            ("grace_s", self.grace_s, 1),
            ("cpu_request_m", self.cpu_request_m, 1),
        ):
            if number < least:
                raise InputError("workload", field, number, f"a whole number from {least}")

    @property
    def rate(self) -> float:
        """Messages/s a pod processes at most: concurrency / mean processing time."""
        return self.concurrency * 1000 / Cost.parse(self.process_ms).mean


@dataclass(frozen=True)
class Inputs:
    """A trial's inputs as they are applied, that is after the scale's compression.

    ``until`` says when it is over: "drained" (no lag, replicas at the floor) or "replayed" (the profile and the policy's
    steps are through). ``partitions_after``: what the topic is grown to when the profile's phase "repartition" begins.
    ``repetition`` tells runs of the same trial apart.
    """

    profile_name: str
    policy_name: str
    profile: Profile
    policy: Policy
    workload: Workload
    seed: int
    scale: Scale
    runtime: str
    partitions: int = PARTITIONS
    until: str = DRAINED
    partitions_after: int | None = None
    repetition: int = 1

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
            "until": self.until,
            "partitions_after": self.partitions_after,
            "repetition": self.repetition,
        }

    @cached_property
    def id(self) -> str:
        """Names and the hash of everything: equal inputs, equal id."""
        digest = hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.profile_name}-{self.policy_name}-{digest}"

    def environment(self, bootstrap: str, run: str) -> dict[str, str]:
        """The ConfigMap "trial" that producer, consumer, exporter and ScaledObject read; ``run`` makes its names unique."""
        workload = asdict(self.workload) | {"concurrency": round(self.workload.concurrency * self.scale.rate)}
        for name in _POD:
            del workload[name]
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
        consumer["spec"]["replicas"] = self.policy.start
        pod = consumer["spec"]["template"]["spec"]
        pod["terminationGracePeriodSeconds"] = self.workload.grace_s
        pod["containers"][0]["resources"]["requests"]["cpu"] = f"{self.workload.cpu_request_m}m"
        settings = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "trial"},
            "data": environment,
        }
        exporter = yamlfile.read(paths.MANIFESTS / "kafka" / "lag-exporter.yaml")
        deciding = [bystander(consumer)] if isinstance(self.policy, ReplicaSteps) else [self.policy.content]
        return [settings, exporter, consumer, *deciding]

    @staticmethod
    def producer() -> dict[str, Any]:
        """The Job that replays the profile."""
        return yamlfile.read(paths.MANIFESTS / "producer" / "job.yaml")


def bystander(consumer: dict[str, Any]) -> dict[str, Any]:
    """The Deployment ``consumer`` again, without replicas yet, whose pods start alike but never join the group."""
    twin = copy.deepcopy(consumer)
    twin["metadata"] = {"name": "bystander", "labels": {"app": "bystander"}}
    twin["spec"]["replicas"] = 0
    twin["spec"]["selector"]["matchLabels"] = {"app": "bystander"}
    twin["spec"]["template"]["metadata"]["labels"] = {"app": "bystander"}
    twin["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "JOIN", "value": "off"})
    return twin


def read(
    profile_name: str,
    policy_name: str,
    workload: Workload,
    seed: int,
    scale: Scale,
    runtime: str,
    *,
    until: str = DRAINED,
    partitions_after: int | None = None,
    repetition: int = 1,
) -> Inputs:
    """Read and check all inputs together. Raises :class:`InputError` for the first that can't be used."""
    workload.check()
    profile_file = _file((paths.PROFILES,), profile_name, "profile")
    given = profile.load(profile_file)
    policy = policies.load(_file(tuple(paths.MANIFESTS / kind for kind in _POLICIES), policy_name, "policy"))
    if until not in (DRAINED, REPLAYED):
        raise InputError("trial", "until", until, f"{DRAINED} or {REPLAYED}")
    if partitions_after is not None:
        if partitions_after <= PARTITIONS:
            raise InputError(
                "trial", "partitions_after", partitions_after, f"more than {PARTITIONS}: Kafka can't take any away"
            )
        if all(step.phase != REPARTITION for step in given.steps):
            raise InputError(profile_file, "steps", "no such phase", f"a phase {REPARTITION!r} that says when")
    return Inputs(
        profile_name=profile_name,
        policy_name=policy_name,
        profile=given.compressed(scale.time, scale.rate),
        policy=policy.compressed(scale),
        workload=workload,
        seed=seed,
        scale=scale,
        runtime=runtime,
        until=until,
        partitions_after=partitions_after,
        repetition=repetition,
    )


def _file(folders: tuple[Path, ...], name: str, kind: str) -> Path:
    for folder in folders:
        if (file := folder / f"{name}.yaml").exists():
            return file
    known = sorted(path.stem for folder in folders for path in folder.glob("*.yaml") if path.stem != "scales")
    raise InputError(folders[0].parent if len(folders) > 1 else folders[0], kind, name, f"one of {', '.join(known)}")
