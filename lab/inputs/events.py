"""Events of a trial: what the lab does to a running group when a phase of the profile begins. Pure.

A new one is a dataclass that derives from :class:`Event`, and a function registered with :func:`lab.trial.events.perform`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Protocol

from lab.errors import InputError
from lab.inputs.consumer import Balancer
from lab.inputs.profile import Profile
from lab.inputs.workload import MOST_PARTITIONS

OWN_BROKERS = "a trial with brokers of its own: brokers=Brokers()"
LEADER, COORDINATOR = ROLES = ("leader", "coordinator")
KEPT, LOST = DISKS = ("kept", "lost")
MOST_PODS = 200
MOST_INTERVAL_MS = 15_000  # group.consumer.max.assignment.interval.ms of Kafka 4.3, as it comes
LEAST_BROKERS, MOST_BROKERS = 3, 5  # a majority of three survives one; each takes 0.4 GB of memory on one machine


class Decider(Protocol):
    """What an event needs to know of a trial's policy."""

    @property
    def min_replicas(self) -> int: ...  # noqa: D102
    @property
    def content(self) -> dict[str, Any]: ...  # noqa: D102


@dataclass(frozen=True)
class Brokers:
    """Brokers of a trial's own, which it starts and ends: one that is lost for good must not be lost for the next trial.

    They are ``count`` nodes, each a broker and a controller; the trial's topic has ``replication`` copies of each partition.
    A write with acks=all is acknowledged when ``min_insync`` copies have it. The lab's own topics (receipts, reports, dead
    letters) and the group's offsets always have three copies, two of them in sync: what they say of the trial must not be lost.
    """

    count: int = 3
    replication: int = 3
    min_insync: int = 2

    def check(self, where: object = "trial") -> None:
        """Raise :class:`InputError` for the first field that Kafka, or one machine, would refuse."""
        bounds = (LEAST_BROKERS, MOST_BROKERS), (1, self.count), (1, self.replication)
        for (name, value), (least, most) in zip(vars(self).items(), bounds, strict=True):
            if not _whole(value, least, most):
                raise InputError(where, f"brokers.{name}", value, f"{least} to {most}")

    @property
    def spare(self) -> int:
        """How many may be down while the others still agree: the controllers need a majority."""
        return (self.count - 1) // 2


@dataclass(frozen=True)
class Context:
    """What an event is checked against: the trial's ``runtime`` and ``policy``, and what holds before the event begins.
    ``brokers`` are the trial's own, None where it runs on the cluster's. Its ``partitions`` are on so many ``topics``. The
    ``balancer`` is the group's."""

    runtime: str
    policy: Decider
    partitions: int
    earlier: tuple[Event, ...] = ()
    brokers: Brokers | None = None
    topics: int = 1
    balancer: str = ""


@dataclass(frozen=True)
class Event:
    """One event. Its phase is not a part of it: the same event may come in any phase."""

    name: ClassVar[str]  # in the record and in the identity: ``scale_to`` of ``ScaleTo``
    signals: ClassVar[bool] = False  # it signals the process of a consumer
    asks: ClassVar[bool] = False  # it asks the API server

    def __init_subclass__(cls) -> None:
        cls.name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def refusal(self, context: Context) -> str:
        """What would be allowed, where ``context`` doesn't allow the event; "" where it does."""
        return ""

    def to_dict(self) -> dict[str, Any]:
        """The event as plain data: its name and its fields."""
        return {"event": self.name, **asdict(self)}


During = tuple[tuple[str, Event], ...]  # (phase, event) in the order in which they happen


@dataclass(frozen=True)
class Grow(Event):
    """Add partitions to the topic, until it has ``partitions`` in all."""

    partitions: int

    def refusal(self, context: Context) -> str:
        """Kafka takes no partition away, and a broker of the lab has only so many. Those of several topics are numbered."""
        if context.topics > 1:
            return f"none with topics {context.topics}: the number of a partition tells its topic by the size of each"
        if _whole(self.partitions, context.partitions + 1, MOST_PARTITIONS):
            return ""
        return f"more than {context.partitions}, since Kafka can't take any away, and at most {MOST_PARTITIONS}"


@dataclass(frozen=True)
class SetAssignmentInterval(Event):
    """Set the least time between two assignments of the group: Kafka's ``consumer.assignment.interval.ms``, 1,000 by default.

    Within it the broker collects what changes a group's members or partitions (KIP-1263, Kafka 4.3). 0: it assigns at once.
    """

    interval_ms: int

    def refusal(self, context: Context) -> str:
        """A classic group has no such setting, and what a cluster that exists may keep of its groups is its owner's."""
        if context.runtime == "existing":
            return "none on an existing cluster, whose settings are not the lab's"
        if context.balancer != Balancer.CONSUMER:
            return "a workload with balancer consumer: members of a classic group assign their partitions themselves"
        return "" if _whole(self.interval_ms, 0, MOST_INTERVAL_MS) else f"0 to {MOST_INTERVAL_MS:,} ms"


@dataclass(frozen=True)
class Kill(Event):
    """SIGKILL the process of the consumer that owns most partitions: it can't drain, commit or leave the group."""

    signals = True


@dataclass(frozen=True)
class Pause(Event):
    """SIGSTOP the process of the consumer that owns most partitions: a pause, as a garbage collector or a host makes one."""

    signals = True


@dataclass(frozen=True)
class Resume(Event):
    """SIGCONT every process that was paused: it goes on where it stood, as a member that the group may have given up."""

    signals = True

    def refusal(self, context: Context) -> str:
        """There must be something to resume."""
        paused = sum(isinstance(one, Pause) - isinstance(one, Resume) for one in context.earlier)
        return "" if paused > 0 else "a Pause in an earlier phase"


@dataclass(frozen=True)
class Delete(Event):
    """Delete the pod of the consumer that owns most partitions: SIGTERM, and SIGKILL when its grace is over."""

    asks = True


@dataclass(frozen=True)
class Restart(Event):
    """Restart every pod of the consumer, as ``kubectl rollout restart`` does; it is through when all new pods are Ready."""

    asks = True

    def refusal(self, context: Context) -> str:
        """There must be pods to restart."""
        return "" if context.policy.min_replicas > 0 else "a policy whose floor is at least 1 pod"


@dataclass(frozen=True)
class ScaleTo(Event):
    """Set the consumer's replicas, as ``kubectl scale`` does; what decides them may change them again."""

    asks = True

    replicas: int

    def refusal(self, context: Context) -> str:
        """Replicas that this machine runs."""
        return "" if _whole(self.replicas, 0, MOST_PODS) else f"0 to {MOST_PODS}"


@dataclass(frozen=True)
class PauseScaling(Event):
    """Pause KEDA by the ScaledObject's annotation, as an operator might and forget."""

    asks = True

    def refusal(self, context: Context) -> str:
        """Only KEDA reads the annotation."""
        return "" if context.policy.content.get("kind") == "ScaledObject" else "a policy that is a ScaledObject"


@dataclass(frozen=True)
class KillBroker(Event):
    """SIGKILL a broker: the leader of most of the topic's partitions, or the coordinator of the group.

    With ``disk`` "lost" its copies of the topic's partitions are deleted too, as if a new disk took the place of the old one.
    Without a :class:`StartBrokers` in a later phase the broker is lost for good.
    """

    role: str = LEADER
    disk: str = KEPT

    def refusal(self, context: Context) -> str:
        """A trial has brokers of its own, and a majority of them goes on."""
        if context.brokers is None:
            return OWN_BROKERS
        if self.role not in ROLES or self.disk not in DISKS:
            return f"role {' or '.join(ROLES)}, disk {' or '.join(DISKS)}"
        if down(context.earlier) >= context.brokers.spare:
            most = f"at most {context.brokers.spare} of {context.brokers.count} brokers down"
            return f"{most}: StartBrokers() in an earlier phase"
        return ""


@dataclass(frozen=True)
class StartBrokers(Event):
    """Start every broker that was killed, and wait until each copy of each partition is in sync again."""

    def refusal(self, context: Context) -> str:
        """There must be something to start."""
        return "" if down(context.earlier) else "a KillBroker in an earlier phase"


def down(events: tuple[Event, ...]) -> int:
    """How many brokers are down after ``events``."""
    count = 0
    for event in events:
        count = 0 if isinstance(event, StartBrokers) else count + isinstance(event, KillBroker)
    return count


def schedule(
    during: Mapping[str, Event | Sequence[Event]], profile: Profile, context: Context, where: object = "trial"
) -> During:
    """The events in ``during`` in the order of ``profile``. Raises :class:`InputError` for the first that is not allowed."""
    phases = _phases(profile)
    for phase in during:
        if phase not in phases:
            raise InputError(where, "during", phase, f"a phase of the profile: {', '.join(phases)}")
    found: list[tuple[str, Event]] = []
    for phase in (phase for phase in phases if phase in during):
        given: Any = during[phase]
        for event in given if isinstance(given, list | tuple) else [given]:
            if allowed := _refusal(event, context):
                raise InputError(where, f"during.{phase}", event, allowed)
            found.append((phase, event))
            grown = event.partitions if isinstance(event, Grow) else context.partitions
            context = replace(context, partitions=grown, earlier=(*context.earlier, event))
    return tuple(found)


def _phases(profile: Profile) -> list[str]:
    return list(dict.fromkeys(phase for _, _, phase in profile.phases()))


def _refusal(event: object, context: Context) -> str:
    if not isinstance(event, Event):
        return "an event of lab.inputs.events, or a list of them"
    if event.signals and context.runtime == "existing":
        return "none on an existing cluster, where no right to run programs in pods is asked for"
    return event.refusal(context)


def to_list(during: During) -> list[dict[str, Any]]:
    """The events as plain data, in order; :func:`from_list` reads them again."""
    return [{"phase": phase, **event.to_dict()} for phase, event in during]


def from_list(rows: Sequence[Any], profile: Profile, where: object) -> During:
    """The events in plain ``rows``, in the order of ``profile``. Raises :class:`InputError` for one that can't be read."""
    kinds = {kind.name: kind for kind in Event.__subclasses__()}
    phases = _phases(profile)
    found: list[tuple[str, Event]] = []
    for row in rows:
        try:
            fields = dict(row)
            phase, name = str(fields.pop("phase", "")), fields.pop("event", None)
            found.append((phase, kinds[name](**fields)))
        except (KeyError, TypeError, ValueError):
            raise InputError(where, "inputs.events", row, f"one of {', '.join(sorted(kinds))} with its fields") from None
        if phase not in phases:
            raise InputError(where, "inputs: phase of an event", phase, f"a phase of the profile: {', '.join(phases)}")
    return tuple(sorted(found, key=lambda pair: phases.index(pair[0])))


def _whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
