"""A trial's workload: how fast and in what way its consumers work, and what their pods are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from lab import yamlfile
from lab.errors import InputError, report, together
from lab.flags import ANY, choice, whole
from lab.inputs import clients, consumer, own_consumer, producer, settings, starts, topics
from lab.inputs.scale import Scale
from lab.inputs.settings import setting
from lab.inputs.starts import Nodes, Quantiles
from lab.yamltext import Document

PARTITIONS = 24  # of a trial, on all its topics
MOST_PARTITIONS = 200  # of one broker, on one machine
DEPLOYMENT, STATEFUL_SET = "Deployment", "StatefulSet"
FILES = ("kind", "partitions", "nodes")  # what a file has beside the workload's settings
PACE = {"process_ms": "ms that a message takes", "concurrency": "how many messages a pod processes at a time"}
PROGRAMS = (consumer.TrialSettings, producer.TrialSettings)


@dataclass(frozen=True, kw_only=True)
class Workload(consumer.TrialSettings, producer.TrialSettings):
    """What a trial sets of its programs and of the consumer's pods; docs/workload.md has every field. The fields declared here
    are the pod's, no program's; the limit of its CPU is one core."""

    grace_s: int = setting(
        30, whole(1, 86_400), "terminationGracePeriodSeconds of the pod; a kubelet waits for 2 s at least", "s"
    )
    cpu_request_m: int = setting(25, whole(1, 1000), "CPU that the pod requests", "millicores")
    pod_owner: str = setting(
        DEPLOYMENT, choice(DEPLOYMENT, STATEFUL_SET), "kind of the object that makes the pods; a StatefulSet's keep their names"
    )
    command: str = setting(
        "", own_consumer.COMMAND, "your own consumer in place of the lab's, where pods are processes; it stands for the image"
    )
    image: str = setting("", ANY, "image of your own consumer where pods are containers; its entrypoint runs")
    env: str = setting("", own_consumer.ENV, "variables of your own consumer; $(TOPIC) stands for a variable of the trial's")
    rung: str = setting(
        own_consumer.RECEIPTS,
        choice(*own_consumer.RUNGS),
        "what your own consumer tells (docs/your-consumer.md); black-box, where a file with a command or an image says nothing",
    )

    @classmethod
    def of(cls, content: Mapping[str, Any], where: object) -> Self:
        """The workload with these settings, the others by default. Raises :class:`InputError` like :meth:`check`."""
        names = [one.name for one in settings.declared(cls)]
        with together():
            yamlfile.Fields(content, where).known(*names)
            made = cls(**settings.read(cls, {name: content[name] for name in names if name in content}, where))
            made.check_together(where)
        return made

    def check(self, where: object = "workload") -> None:
        """Raise :class:`InputError` for settings that their program, or its pod, would refuse."""
        with together():
            settings.read(self, {one.name: getattr(self, one.name) for one in settings.declared(self)}, where)
            self.check_together(where)

    def check_together(self, where: object) -> None:
        """Raise :class:`InputError` for settings that are each allowed, but not together."""
        super().check_together(where)
        clients.check(self, where)
        if self.store_contention and not self.store_slots:
            raise InputError(where, "store_contention", self.store_contention, "0, unless store_slots is 1 or more")
        if self.rung != own_consumer.RECEIPTS and not self.own:
            allowed = f"{own_consumer.RECEIPTS}, which the lab's consumer writes, without a command or an image of your own"
            raise InputError(where, "rung", self.rung, allowed)
        if self.own and self.client != clients.PYTHON:
            raise InputError(
                where, "client", self.client, f"{clients.PYTHON} beside a command or an image of your own consumer"
            )
        if self.env and not self.own:
            raise InputError(where, "env", self.env, "none, without a command or an image of your own consumer")
        if self.membership == consumer.STATIC and self.pod_owner != STATEFUL_SET:
            allowed = f"{consumer.DYNAMIC}, unless pod_owner is {STATEFUL_SET}: the next pod of a {DEPLOYMENT} has another name"
            raise InputError(where, "membership", self.membership, allowed)

    @property
    def own(self) -> bool:
        """Whether it is a user's own consumer, and not the lab's."""
        return bool(self.command or self.image)

    def divides(self, name: str) -> bool:
        """Whether a scale divides the time in the field ``name``: your own consumer takes it from ``$(NAME)`` alone."""
        return not self.own or f"$({name.upper()})" in self.env

    def start_at(self, time: float) -> float:
        """The declared start of a pod, s, where a scale divides times by ``time``."""
        return self.start_s / (time if self.divides("start_s") else 1.0)

    def commit_interval_at(self, time: float) -> float:
        """The time between two commits, s, where a scale divides times by ``time``."""
        return self.commit_interval_ms / 1000 / (time if self.divides("commit_interval_ms") else 1.0)

    def to_dict(self) -> dict[str, Any]:
        """All settings as plain data."""
        return settings.plain(self)

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

    def group_rate(self, pods: int) -> float:
        """Messages/s that so many ``pods`` process together at most, which a store that they share may limit."""
        if not self.store_slots:
            return self.rate * pods
        waiting = max(0, pods - self.store_slots)
        stretch = 1 + self.store_contention / 100 * waiting / self.store_slots
        return self.rate * min(pods, self.store_slots) / stretch


@dataclass(frozen=True)
class WorkloadFile:
    """What is in a file of kind Workload, flat. ``starts`` are quantiles; their median is then the workload's ``start_s``."""

    workload: Workload
    partitions: int
    starts: Quantiles | None
    nodes: Nodes | None


def load(file: Path) -> tuple[Workload, int]:
    """The workload in ``file`` and its partitions, for a trial. Raises :class:`InputError` for every bad field."""
    read = yamlfile.document(file)
    with together():
        found = parse(read)
        if found.starts:
            allowed = "0 to 3,600 s: all pods of a trial start alike; simulate, tune and plane take quantiles"
            report(InputError(read.where, "start_s", read.content["start_s"], allowed))
        if found.workload.own:
            for name, meaning in PACE.items():
                if name not in read.content:
                    report(InputError(read.where, name, None, f"{meaning} of yours: the drain is judged by what a pod takes"))
        if found.nodes:
            allowed = "none: a trial has one node, with room for all; simulate, tune and plane take it"
            report(InputError(read.where, "nodes", read.content["nodes"], allowed))
    return found.workload, found.partitions


def parse(read: Document) -> WorkloadFile:
    """The file that is ``read``. Raises :class:`InputError` for every bad field."""
    with together():
        given = yamlfile.Fields(read.content, read.where)
        given.choice("kind", "Workload")
        given.known(*FILES, *(one.name for one in settings.declared(Workload)))
        partitions = given.whole("partitions", 1, MOST_PARTITIONS, PARTITIONS)
        own = own_consumer.flat({name: value for name, value in given.content.items() if name not in FILES})
        spread = starts.quantiles(given, "start_s") if isinstance(own.get("start_s"), dict) else None
        workload = Workload.of(own | ({"start_s": spread.median} if spread else {}), read.where)
        topics.check(workload.topics, partitions, read.where)
        nodes = starts.nodes(given)
    return WorkloadFile(workload, partitions, spread, nodes)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a workload's file, by which editors complete it."""
    partitions = {
        "type": "integer",
        "minimum": 1,
        "maximum": MOST_PARTITIONS,
        "default": PARTITIONS,
        "description": "of all topics",
    }
    fields = {"kind": {"const": "Workload"}, "partitions": partitions, "nodes": starts.nodes_schema()}
    declared = {one.name: one.json_schema() for one in settings.declared(Workload)}
    declared["start_s"] |= starts.json_schema()
    declared["command"] |= {"type": ["string", "array"]}
    declared["env"] |= {"type": ["object", "string"]}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "workload",
        "type": "object",
        "additionalProperties": False,
        "required": ["kind"],
        "properties": fields | declared,
    }
