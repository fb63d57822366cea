"""What a trial is a function of: profile, workload, policy, partitions, seed, scale and runtime. Its identity is their hash."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from lab import validation, yamlfile, yamltext
from lab.errors import InputError
from lab.inputs import anchor, clients, fidelity, manifests, own_consumer, profile, scaledobject, scaledobject_file, topics
from lab.inputs import policy as policies
from lab.inputs import scale as scales
from lab.inputs.adopt import Replaced, adopt
from lab.inputs.anchor import Window
from lab.inputs.controller import LagController
from lab.inputs.events import Brokers, Context, During, Event, Grow, from_list, schedule, to_list
from lab.inputs.faults import Faults, Injection, planned, source
from lab.inputs.fidelity import Compressed, CompressedLag
from lab.inputs.manifests import COMMITTED, Library
from lab.inputs.policy import PlainHpa, Policy
from lab.inputs.profile import Profile
from lab.inputs.scale import Scale
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.steps import ReplicaSteps
from lab.inputs.triggers.parsing import check_partitions, check_topics
from lab.inputs.variant import Variant, file_label
from lab.inputs.workload import DEPLOYMENT, PARTITIONS, STATEFUL_SET, Workload
from lab.validation import Strict

log = logging.getLogger("lab.inputs")

DRAINED, REPLAYED = "drained", "replayed"
PRODUCER = "producer/job"
_LONGEST_NAMES = 43  # of the 63 that a namespace may have, with the hash and the run's number in it


@dataclass(frozen=True)
class Side:
    """The side "a" or "b" of a duet, the id of the ``other`` by itself, and the ``rate`` by which both were multiplied."""

    name: str
    other: str
    rate: float = 1.0


@dataclass(frozen=True)
class PlainInputs(Strict):
    """:class:`Inputs` as plain data: what trial.json keeps, after the scale's compression. The id has the hash of all that is
    not at its default."""

    profile_name: str
    policy_name: str
    profile: dict[str, Any]
    policy: dict[str, Any]
    workload: dict[str, Any]
    seed: int
    scale: Scale
    runtime: str
    partitions: int = PARTITIONS
    until: str = DRAINED
    events: list[dict[str, Any]] = field(default_factory=list)
    repetition: int = 1
    replaced: list[Replaced] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)
    driver: str = PRODUCER
    side: Side | None = None
    brokers: Brokers | None = None
    faults: tuple[Injection, ...] = ()


@dataclass(frozen=True)
class Inputs:
    """A trial's inputs as they are applied, that is after the scale's compression.

    ``until`` says when it is over: "drained" (no lag, replicas at the floor) or "replayed" (the profile and the policy's steps
    are through). ``during``: (phase, event) pairs in order. ``repetition`` tells runs of the same trial apart. ``replaced``:
    what was, in a user's ScaledObject. ``beside`` and ``driver`` are manifests: what else runs, and the Job that drives the
    traffic. ``side`` is None of a trial by itself, ``brokers`` where it runs on the cluster's one. ``faults`` are injected. No
    part of the identity are where these are from, the ``library`` of manifests, and the policy's times and lags as written and
    as applied.
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
    during: During = ()
    repetition: int = 1
    replaced: tuple[Replaced, ...] = ()
    beside: tuple[str, ...] = ()
    driver: str = PRODUCER
    side: Side | None = None
    brokers: Brokers | None = None
    faults: tuple[Injection, ...] = ()
    faults_from: str = field(default="", compare=False)
    library: Library = field(default=COMMITTED, compare=False)
    policy_times: tuple[Compressed, ...] = field(default=(), compare=False)
    policy_lags: tuple[CompressedLag, ...] = field(default=(), compare=False)

    @property
    def partitions_after(self) -> int | None:
        """How many partitions the topic has after all events; None where none adds any."""
        return next((event.partitions for _, event in reversed(self.during) if isinstance(event, Grow)), None)

    @property
    def schedule(self) -> tuple[tuple[str | None, Event], ...]:
        """All events in order, each with its phase; the steps of a policy come after the profile, which is phase None."""
        decrees = self.policy.decrees if isinstance(self.policy, ReplicaSteps) else ()
        return (*self.during, *((None, one) for one in decrees))

    def to_dict(self) -> dict[str, Any]:
        """The inputs as plain data, all of them, as trial.json keeps them."""
        own = {one.name: getattr(self, one.name) for one in fields(PlainInputs) if one.name != "events"}
        own |= {"profile": self.profile.to_dict(), "policy": self.policy.content, "workload": self.workload.to_dict()}
        own |= {"events": to_list(self.during), "replaced": list(self.replaced), "beside": list(self.beside)}
        return asdict(PlainInputs(**own))

    def identity(self) -> dict[str, Any]:
        """What is hashed: all that is not at its default, so that a new input or setting changes no id."""
        content, work = self.to_dict(), Workload().to_dict()
        content["workload"] = {name: value for name, value in content["workload"].items() if value != work[name]}
        if self.scale.sync_s == scales.HPA_SYNC_S:
            del content["scale"]["sync_s"]
        defaults = {one.name: [] if one.default is MISSING else one.default for one in fields(PlainInputs)}
        needed = {one.name for one in fields(PlainInputs) if one.default is one.default_factory is MISSING}
        return {name: value for name, value in content.items() if name in needed or value != defaults[name]}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], where: object) -> Inputs:
        """The inputs that :meth:`to_dict` wrote, with the same id. Raises :class:`InputError`, which names ``where``."""
        plain = validation.read(PlainInputs, content, where, "inputs.")
        if plain.brokers is not None:
            plain.brokers.check(where)
        read = {one.name: getattr(plain, one.name) for one in fields(PlainInputs)}
        traffic = read["profile"] = profile.build(plain.profile, where)
        read["during"] = from_list(read.pop("events"), traffic, where)
        read |= {"policy": policies.parse(plain.policy, where), "workload": Workload.of(plain.workload, where)}
        return cls(**read | {"replaced": tuple(plain.replaced), "beside": tuple(plain.beside)})

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """The windows of the policy's cron triggers as applied, s after the profile's start; none without a time of day."""
        return anchor.at_scale(anchor.windows(self.policy, self.profile.begins_at), self.scale.time)

    @property
    def pod_rate(self) -> float:
        """Messages/s that one pod processes at most at the trial's scale."""
        return self.workload.rate * self.scale.rate

    @property
    def ceiling_delay_s(self) -> float:
        """How much older events get with the policy's ceiling than with a pod for each partition, at real time.

        All pods are there from the start, so it is the ceiling's alone.
        """
        pods = min(self.policy.max_replicas, self.partitions), self.partitions
        limited, least = (self.profile.oldest_s(self.workload.group_rate(count) * self.scale.rate) for count in pods)
        return (limited - least) * (1 if self.profile.real_time else self.scale.time)

    def settings(self) -> dict[str, Any]:
        """Every input by its name as plain data, the workload's settings one by one."""
        own = {name: value for name, value in self.to_dict().items() if name != "workload"}
        return own | self.workload.to_dict()

    @cached_property
    def id(self) -> str:
        """Names and the hash of everything: equal inputs, equal id."""
        digest = hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()[:8]
        names = f"{self.profile_name}-{self.policy_name}"[:_LONGEST_NAMES].rstrip("-")
        return f"{names}-{digest}"

    def environment(self, bootstrap: str, run: str) -> dict[str, str]:
        """The ConfigMap "trial" that the pods and the ScaledObject read; ``run`` makes its names unique."""
        policy = self.policy.content if isinstance(self.policy, LagController) else None
        return {
            "BOOTSTRAP_SERVERS": bootstrap,
            **topics.environment(f"events-{run}", self.workload.topics, self.partitions),
            "GROUP": f"enrich-{run}",
            "RECEIPTS_TOPIC": f"receipts-{run}",
            "REPORTS_TOPIC": f"reports-{run}",
            "DLQ_TOPIC": f"dead-letters-{run}",
            "OUTPUT_TOPIC": f"output-{run}",
            "PROFILE_YAML": yaml.safe_dump(self.profile.to_dict(), sort_keys=False),
            "SEED": str(self.seed),
            **({"POLICY_YAML": yamltext.written(policy)} if policy else {}),
            **self.workload.environment(self.scale),
        }


def read(
    profile_name: str | Path,
    policy_name: str | Path | Variant,
    workload: Workload,
    seed: int,
    scale: Scale,
    runtime: str,
    *,
    partitions: int = PARTITIONS,
    until: str = DRAINED,
    during: Mapping[str, Event | Sequence[Event]] | None = None,
    repetition: int = 1,
    beside: Sequence[str] = (),
    driver: str = PRODUCER,
    brokers: Brokers | None = None,
    faults: Faults | Sequence[Injection] | None = None,
    library: Library = COMMITTED,
    named: str = "",
) -> Inputs:
    """Read and check all inputs together. Raises :class:`InputError` for the first that can't be used.

    ``during`` has events by the phase of the profile at whose beginning they happen. ``faults`` are injected, by a plan or
    a list. A name is that of a file in ``library``; a path is a file of the user's: a policy is then the ScaledObject in it, of
    several the one ``named`` so, and adopted. A :class:`Variant` is either with changes.
    """
    workload.check()
    own_consumer.check(workload.command, workload.image, runtime, driver)
    profile_file = profile_name if isinstance(profile_name, Path) else library.profile(profile_name)
    given = profile.load(profile_file)
    variant = policy_name if isinstance(policy_name, Variant) else Variant(policy_name)
    own = scaledobject_file.load(variant.base, named) if isinstance(variant.base, Path) else None
    policy_file = variant.base if isinstance(variant.base, Path) else library.policy(variant.base)
    written = own.written if own else yamlfile.document(policy_file)
    where, base = variant.where(policy_file) if variant.changes else written.where, written.content
    content = variant.applied(base, where)
    policy: Policy
    policy, replaced = _adopted(content, where, partitions, workload.topics) if own else (policies.parse(content, where), ())
    if workload.pod_owner != DEPLOYMENT and not isinstance(policy, ReplicaSteps):
        allowed = f"{DEPLOYMENT}, which is what the policy scales; {STATEFUL_SET} with steps by decree"
        raise InputError("trial", "pod_owner", workload.pod_owner, allowed)
    policy_times = fidelity.check(policy, scale, where, scales.declared())
    policy_times += anchor.check(policy, given, scale, where, profile_file, scales.declared())
    for note in (*(own.remarks if own else ()), *(f"{where}: {note}" for note in fidelity.notes(policy, scale, workload))):
        log.warning("%s", note)
    library.manifest(driver)
    for name in beside:
        manifests.beside(library.manifest(name), scale)
    for what, name in (("driver", driver), *(("beside", name) for name in beside)):
        if any(one.programs for one in manifests.declarations(library.manifest(name))) and runtime != "binary":
            words = f"none with programs of its own ({manifests.PYTHONPATH}) but on binary: the image of pods lacks them"
            raise InputError("trial", what, name, words)
    clients.check_runtime(workload.client, runtime)
    if until not in (DRAINED, REPLAYED):
        raise InputError("trial", "until", until, f"{DRAINED} or {REPLAYED}")
    if brokers is not None:
        brokers.check()
        if runtime != "binary":
            raise InputError("trial", "brokers", brokers, "none but on binary, whose brokers are the lab's")
    _check_topics(workload.topics, partitions, policy, where, driver)
    traffic = given.compressed(scale.time, scale.rate)
    context = Context(runtime, policy, partitions, brokers=brokers, topics=workload.topics, balancer=workload.balancer)
    return Inputs(
        profile_name=file_label(profile_name),
        policy_name=variant.label(file_label(variant.base), policies.parse(base, policy_file).lag_threshold),
        profile=traffic,
        policy=policy.compressed(scale),
        workload=workload,
        seed=seed,
        scale=scale,
        runtime=runtime,
        partitions=partitions,
        until=until,
        during=schedule(during or {}, given, context),
        repetition=repetition,
        replaced=replaced,
        beside=tuple(beside),
        driver=driver,
        brokers=brokers,
        faults=planned(faults, traffic, workload, scale, context, schedule(during or {}, given, context)),
        faults_from=source(faults),
        library=library,
        policy_times=policy_times,
        policy_lags=fidelity.lags(policy, scale),
    )


def _check_topics(count: int, partitions: int, policy: Policy, where: object, driver: str) -> None:
    """Raise :class:`InputError` for the first thing that a trial of ``count`` topics with these ``partitions`` can't have."""
    topics.check(count, partitions, "trial")
    if isinstance(policy, ScaledObject):
        check_topics(policy.triggers, count, where)
        check_partitions(policy.triggers, partitions // count, where)
    if count == 1:
        return
    if driver != PRODUCER:
        raise InputError("trial", "driver", driver, f"{PRODUCER} with topics {count}: any other sends to one topic")
    if isinstance(policy, PlainHpa) and policy.lag_threshold is not None:
        allowed = f"a ScaledObject, or a LagController, with topics {count}: an HPA on lag reads that of one topic"
        raise InputError(where, "spec.metrics", "External", allowed)


def _adopted(
    content: Mapping[str, Any], file: object, partitions: int, count: int
) -> tuple[ScaledObject, tuple[Replaced, ...]]:
    policy, replaced = adopt(scaledobject.parse(content, file), count)
    if policy.min_replicas > partitions:
        raise InputError(file, "spec.minReplicaCount", policy.min_replicas, f"at most the {partitions} partitions")
    return policy, replaced
