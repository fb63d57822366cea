"""Faults of a trial: what is killed and stopped while its profile is driven, drawn by a seed. Pure.

A schedule is a list of injections, and an input of its trial: the same list is the same trial, wherever it came from. No scale
compresses it, as a session timeout and a restart take the time that they take.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import typed
from lab.errors import InputError
from lab.inputs.consumer import STOCK, STOCK_SESSION_MS, Balancer
from lab.inputs.profile import Profile
from lab.inputs.scale import Scale
from lab.inputs.workload import Workload
from lab.typed import Strict

KILL, STOP, TERMINATE = KINDS = ("sigkill", "sigstop", "sigterm")
CONSUMER, EXPORTER = PODS = ("consumer", "lag-exporter")
CONTROLLERS = "kube-controller-manager"
DAEMONS = ("keda-operator", "keda-adapter", CONTROLLERS, "kube-scheduler", "prometheus", "kube-state-metrics")
COMPONENTS = (*PODS, *DAEMONS)

MOST = 100  # injections of a trial
MOST_SHAKES, MINUTE_S = 6, 60.0  # each fault of a consumer makes two rebalances at most
INTERVALS_S = (1.0, 3600.0)
ABOUT, LEAST_S = 12, 4.0  # injections of a trial, and the time between them, where a plan has no interval
JITTER = 0.5  # of the interval, either way
OF_CONSUMERS = 0.5  # the share of injections that strike a consumer, where a plan has others too
REST_S = 5.0  # before the profile's end: what was struck last is back by then
BACK_S = 3.0  # a component starts for so long before it is struck again
LONGER = (1.1, 1.5)  # than the session timeout is a consumer stopped
AWAY_SYNCS, AWAY_S = 4, 5.0  # how long a component is away at most: HPA syncs, and at least s
BROKER_SESSION_S = 45.0  # by which a broker gives up a member of a KIP-848 group


@dataclass(frozen=True)
class Faults:
    """A plan of faults: ``kinds`` that are done to ``victims``, drawn by ``seed``, ``interval_s`` apart in the mean.

    Without an interval there are some twelve in a trial, 4 s apart at least.
    """

    seed: int
    interval_s: float | None = None
    kinds: tuple[str, ...] = KINDS
    victims: tuple[str, ...] = COMPONENTS

    def check(self, where: object) -> None:
        """Raise :class:`InputError` for the first field that can't be used."""
        if self.interval_s is not None and not INTERVALS_S[0] <= self.interval_s <= INTERVALS_S[1]:
            raise InputError(where, "faults.interval_s", self.interval_s, "{:g} to {:g} s".format(*INTERVALS_S))
        for field, given, known in (("kinds", self.kinds, KINDS), ("victims", self.victims, COMPONENTS)):
            if not given or not set(given) <= set(known):
                raise InputError(where, f"faults.{field}", given, f"some of {', '.join(known)}")
        if not self.pairs:
            raise InputError(where, "faults.kinds", self.kinds, f"{TERMINATE} for a {CONSUMER} alone")

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Each component with each kind that is done to it. What drains nothing is not told to end."""
        return [(one, kind) for one in self.victims for kind in self.kinds if kind != TERMINATE or one == CONSUMER]


@dataclass(frozen=True, order=True)
class Injection(Strict):
    """``kind`` is done to ``component`` ``at`` s after the profile's start, and is over after ``for_s`` s.

    It is over when a stopped process goes on, a killed component of the cluster is started again, or a consumer that was told
    to end is killed. A pod's killed container is started again by the kubelet. ``draw``, from 0 to 1, chooses one of the pods.
    """

    at: float
    component: str
    kind: str
    for_s: float
    draw: float

    def check(self, driven_s: float, where: object) -> None:
        """Raise :class:`InputError` for what can't be injected in ``driven_s`` s."""
        if (self.component, self.kind) not in Faults(0).pairs:
            raise InputError(where, "faults", self, f"{' or '.join(KINDS)} of one of {', '.join(COMPONENTS)}")
        if min(self.at, self.for_s) < 0 or self.at + self.for_s > driven_s or not 0 <= self.draw < 1:
            raise InputError(where, "faults", self, f"from 0 to {driven_s:g} s, when the profile is over, and a draw below 1")


@dataclass(frozen=True)
class Timing:
    """What a schedule is drawn for, in s as applied: the profile's length, the time after which a group gives up a silent
    member, how long what a pod takes at a time is worked on, and how long a component is away at most."""

    driven_s: float
    session_s: float
    work_s: float
    away_s: float

    @classmethod
    def of(cls, profile: Profile, work: Workload, scale: Scale) -> Timing:
        """That of a trial with this compressed ``profile``."""
        session_s = STOCK_SESSION_MS / 1000 if work.client_settings == STOCK else work.session_timeout_ms / 1000
        session_s = BROKER_SESSION_S if work.balancer == Balancer.CONSUMER else session_s
        work_s = max(work.batch_ms, work.poll_ms) / 1000
        return cls(profile.duration, session_s, work_s, max(AWAY_S, AWAY_SYNCS * scale.hpa_sync_s))


def schedule(faults: Faults, timing: Timing) -> tuple[Injection, ...]:
    """The injections of ``faults``, in order of time: MOST at most, each over REST_S before the profile's end.

    In any minute MOST_SHAKES at most strike a consumer, and one consumer is stopped at a time. Any other component is struck
    again only when it is back.
    """
    drawn = random.Random(faults.seed)
    mean_s = faults.interval_s or max(LEAST_S, timing.driven_s / ABOUT)
    over, at = timing.driven_s - REST_S, 0.0
    found: list[Injection] = []
    while len(found) < MOST:
        at = round(at + mean_s * drawn.uniform(1 - JITTER, 1 + JITTER), 3)
        if at > over:
            break
        consumers = drawn.random() < OF_CONSUMERS
        pairs = sorted(drawn.sample(faults.pairs, len(faults.pairs)), key=lambda pair: (pair[0] == CONSUMER) != consumers)
        length, draw = drawn.random(), drawn.random()
        for component, kind in pairs:
            one = Injection(at, component, kind, round(_length_s(component, kind, length, timing), 3), draw)
            if at + one.for_s <= over and _free(one, found):
                found.append(one)
                break
    return tuple(found)


def _length_s(component: str, kind: str, share: float, timing: Timing) -> float:
    """How long a fault lasts, s, by a ``share`` of its possible lengths."""
    if kind == TERMINATE:
        return share * timing.work_s
    if kind == KILL and component in PODS:
        return 0.0
    if component == CONSUMER:
        return timing.session_s * (LONGER[0] + share * (LONGER[1] - LONGER[0]))
    return 1 + share * (timing.away_s - 1)


def _free(one: Injection, earlier: Sequence[Injection]) -> bool:
    """Whether ``one`` may follow on ``earlier``."""
    same = [other for other in earlier if other.component == one.component]
    if one.component != CONSUMER:
        return all(other.at + other.for_s + BACK_S <= one.at for other in same)
    if one.kind == STOP and any(other.kind == STOP and one.at < other.at + other.for_s + BACK_S for other in same):
        return False
    return sum(other.at > one.at - MINUTE_S for other in same) < MOST_SHAKES


def planned(
    given: Faults | Sequence[Injection] | None, profile: Profile, work: Workload, scale: Scale, runtime: str
) -> tuple[Injection, ...]:
    """The injections of a trial: those that a plan draws for its compressed ``profile``, or those of a list, in order of time.

    Raises :class:`InputError` for a runtime whose components the lab can't kill, for a plan or an injection that can't be
    used, and for a profile that is over before any.
    """
    if not given:
        return ()
    where = "trial"
    if runtime != "binary":
        raise InputError(where, "faults", given, "none but on binary, whose components are the lab's own processes")
    if not isinstance(given, Faults):
        for one in given:
            one.check(profile.duration, where)
        return tuple(sorted(given))
    given.check(where)
    if not (found := schedule(given, Timing.of(profile, work, scale))):
        raise InputError(where, "faults", given, f"a longer profile: none is over {REST_S:g} s before {profile.duration:g} s")
    return found


class Listed(tuple[Injection, ...]):
    """Injections that were read, and the ``source`` that they are from: a record or a file."""

    source: str

    def __new__(cls, injections: Iterable[Injection], source: str) -> Listed:
        """The ``injections`` in their order."""
        made = super().__new__(cls, injections)
        made.source = source
        return made


def source(given: Faults | Sequence[Injection] | None) -> str:
    """Where the injections of a trial are from: a seed, a record, a file; "" for none, and for a list in a test."""
    if isinstance(given, Faults):
        return f"seed {given.seed}"
    return given.source if isinstance(given, Listed) else ""


def load(file: Path) -> Listed:
    """The injections of the record whose trial.json is ``file``, or those of a list in JSON. Raises :class:`InputError`."""
    allowed = "a trial.json, or a list of injections as its inputs.faults has them"
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        rows = content["inputs"].get("faults") if isinstance(content, dict) else content
        told = f"trial {content['id']}" if isinstance(content, dict) and "id" in content else str(file)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(file, "content", str(error), allowed) from None
    if not rows:
        raise InputError(file, "faults", rows, allowed)
    return Listed(typed.read(list[Injection], rows, file, "faults"), told)
