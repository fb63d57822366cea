"""Faults of a trial: what is struck while its profile is driven, and how, drawn by a seed. Pure.

A schedule is a list of injections, and an input of its trial: the same list is the same trial, wherever it came from. No scale
compresses it, as a session timeout and a restart take the time that they take.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lab import validation
from lab.errors import InputError
from lab.inputs import clients
from lab.inputs.events import OWN_BROKERS, Context, During, Event, KillBroker
from lab.inputs.profile import Profile
from lab.inputs.scale import Scale
from lab.inputs.workload import Workload
from lab.validation import Strict

KINDS = ("sigkill", "sigstop", "sigterm", "slow", "evict", "rollout", "drain", "storm", "full")
KILL, STOP, TERMINATE, SLOW, EVICT, ROLLOUT, DRAIN, STORM, FULL = KINDS
CUT, DELAY, LOSS = NETWORK = ("cut", "delay", "loss")  # of connections to the broker; drawn where they are named
CONSUMER, EXPORTER, LAG_SCALER, STORE = PODS = ("consumer", "lag-exporter", "lag-scaler", "store")
GROUP, NODE, BROKER = "group", "node", "broker"
ROOTS = ("etcd", "kube-apiserver")  # nothing else of the cluster starts while one of them is away
CONTROLLERS = "kube-controller-manager"
KEDA = ("keda-operator", "keda-adapter", "keda-webhooks")
DAEMONS = (*ROOTS, CONTROLLERS, "kube-scheduler", *KEDA, "metrics-server", "prometheus", "kube-state-metrics")
SHAKEN = (CONSUMER, GROUP, NODE)  # what is done to these makes the group rebalance
ASKING = (EVICT, ROLLOUT, DRAIN)  # they ask the API server

# What is done to each component. What drains nothing is not told to end.
HOW: Mapping[str, tuple[str, ...]] = {
    CONSUMER: (KILL, STOP, TERMINATE, EVICT, ROLLOUT, *NETWORK),
    GROUP: (STORM,),
    NODE: (DRAIN,),
    EXPORTER: (KILL, STOP),
    LAG_SCALER: (KILL, STOP),
    STORE: (KILL, STOP, SLOW),
    BROKER: (KILL, STOP, TERMINATE, FULL),
    **dict.fromkeys(DAEMONS, (KILL, STOP)),
    KEDA[0]: (KILL, STOP, CUT),
}
COMPONENTS = tuple(HOW)

MOST = 100  # injections of a trial
MOST_SHAKES, MINUTE_S = 6, 60.0  # each fault of a consumer makes two rebalances at most; a storm is over in a minute
INTERVALS_S = (1.0, 3600.0)
ABOUT, LEAST_S = 12, 4.0  # injections of a trial, and the time between them, where a plan has no interval
STORM_PART = 6  # of the profile a storm lasts at most
JITTER = 0.5  # of the interval, either way
OF_CONSUMERS = 0.5  # the share of injections that shake the group, where a plan has others too
REST_S = 5.0  # before the profile's end: what was struck last is back by then
BACK_S = 3.0  # a component starts for so long before it is struck again
SLOW_BACK_S = 10.0  # a broker, whose copies are to be in sync again, and the API server, with all that waits for it
LONGER = (1.1, 1.5)  # than the session timeout is a consumer stopped
AWAY_SYNCS, AWAY_S = 4, 5.0  # how long a component is away at most: HPA syncs, and at least s
BROKER_AWAY_S = 20.0  # a broker: the controllers give it up after 9 s; a receipt that waits for longer than 30 s is refused
LONGEST_SESSION_S = 13.0  # of a consumer that is cut off: half as long again is as long as a broker's
NETWORK_NEEDS = f"the lab's consumer in Python, a session of {LONGEST_SESSION_S:.0f} s at most, and no brokers of its own"


@dataclass(frozen=True)
class Faults:
    """A plan of faults: ``kinds`` that are done to ``victims``, drawn by ``seed``, ``interval_s`` apart in the mean.

    Without an interval there are some twelve in a trial, 4 s apart at least. Without victims or kinds they are all that the
    trial has, but none of the network: it puts a proxy into the trial. Those that are named must be there.
    """

    seed: int
    interval_s: float | None = None
    kinds: tuple[str, ...] = KINDS
    victims: tuple[str, ...] = COMPONENTS

    def check(self, where: object) -> None:
        """Raise :class:`InputError` for the first field that can't be used."""
        if self.interval_s is not None and not INTERVALS_S[0] <= self.interval_s <= INTERVALS_S[1]:
            raise InputError(where, "faults.interval_s", self.interval_s, "{:g} to {:g} s".format(*INTERVALS_S))
        for field, given, known in (("kinds", self.kinds, (*KINDS, *NETWORK)), ("victims", self.victims, COMPONENTS)):
            if not given or not set(given) <= set(known):
                raise InputError(where, f"faults.{field}", given, f"some of {', '.join(known)}")
        if not self.pairs:
            raise InputError(where, "faults.kinds", self.kinds, "; ".join(_how(victim) for victim in self.victims))

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Each component with each kind that is done to it."""
        return [(one, kind) for one in self.victims for kind in self.kinds if kind in HOW[one]]

    def possible(self, work: Workload, context: Context, where: object) -> list[tuple[str, str]]:
        """Those of :attr:`pairs` that a trial has. Raises :class:`InputError` for a named victim or kind that it lacks."""
        lacks = {pair: lack(*pair, work, context) for pair in self.pairs}
        for field, place, given, every in (("victims", 0, self.victims, COMPONENTS), ("kinds", 1, self.kinds, KINDS)):
            for one in given if given != every else ():
                whys = [why for pair, why in lacks.items() if pair[place] == one]
                if whys and all(whys):
                    raise InputError(where, f"faults.{field}", one, whys[0])
        return [pair for pair, why in lacks.items() if not why]


@dataclass(frozen=True, order=True)
class Injection(Strict):
    """``kind`` is done to ``component`` ``at`` s after the profile's start, and is over after ``for_s`` s.

    It is over when a stopped process goes on, a killed component of the cluster is started again, a consumer that was told to
    end is killed, a drained node is open again, a storm ends, or a connection is as it was. A rolling update
    begins with the first scale-out in this time, or at its end. A pod's killed container is started again by the kubelet.
    ``draw``, from 0 to 1, chooses one of the pods, or whether a broker leads or coordinates.
    """

    at: float
    component: str
    kind: str
    for_s: float
    draw: float

    def check(self, driven_s: float, where: object) -> None:
        """Raise :class:`InputError` for what can't be injected in ``driven_s`` s."""
        if self.kind not in HOW.get(self.component, ()):
            allowed = _how(self.component) if self.component in HOW else f"one of {', '.join(COMPONENTS)}"
            raise InputError(where, "faults", self, allowed)
        if min(self.at, self.for_s) < 0 or self.at + self.for_s > driven_s or not 0 <= self.draw < 1:
            raise InputError(where, "faults", self, f"from 0 to {driven_s:g} s, when the profile is over, and a draw below 1")


def _how(component: str) -> str:
    return f"{' or '.join(HOW[component])} for {component}"


def lack(component: str, kind: str, work: Workload, context: Context) -> str:
    """What a trial of ``work`` would need so that ``kind`` can be done to ``component`` in it; "" where it has that.

    The earlier events of ``context`` are all events of the trial.
    """
    content = context.policy.content
    triggers = content["spec"]["triggers"] if content.get("kind") == "ScaledObject" else []
    known = work.client == clients.PYTHON and not work.own
    needs = {
        LAG_SCALER: "" if any(one["type"] == "external" for one in triggers) else "a policy with an external trigger",
        STORE: "" if work.store_slots else "a workload with store_slots",
        GROUP: "" if known else "the lab's consumer in Python: a storm joins with its balancer",
        BROKER: OWN_BROKERS if context.brokers is None else "",
    }
    if component == BROKER and any(isinstance(one, KillBroker) for one in context.earlier):
        return "no KillBroker beside it: a majority of the brokers goes on"
    if component in ROOTS and any(one.asks for one in context.earlier):
        return "no event, and no step by decree, that asks the API server meanwhile"
    if component in ROOTS and work.own:
        return "the lab's consumer: what your own says is read through the API server"
    if kind in NETWORK and not (known and context.brokers is None and work.session_s <= LONGEST_SESSION_S):
        return NETWORK_NEEDS
    if (component, kind) == (KEDA[0], CUT) and all(one["type"] != "kafka" for one in triggers):
        return "a policy with a kafka trigger"
    return needs.get(component, "")


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
        work_s = max(work.batch_ms, work.poll_ms) / 1000
        return cls(profile.duration, work.session_s, work_s, max(AWAY_S, AWAY_SYNCS * scale.hpa_sync_s))


def schedule(faults: Faults, timing: Timing, possible: Sequence[tuple[str, str]] = ()) -> tuple[Injection, ...]:
    """The injections of ``faults``, in order of time: MOST at most, each over REST_S before the profile's end.

    They are of the ``possible`` pairs of component and kind, by default of all that are named. In any minute MOST_SHAKES at
    most shake the group, and one consumer is stopped at a time. Any other component is struck again only when it is back. While
    the API server or etcd is away nothing is struck that needs them.
    """
    drawn = random.Random(faults.seed)
    every = list(possible or faults.pairs)
    mean_s = faults.interval_s or max(LEAST_S, timing.driven_s / ABOUT)
    over, at = timing.driven_s - REST_S, 0.0
    found: list[Injection] = []
    while len(found) < MOST:
        at = round(at + mean_s * drawn.uniform(1 - JITTER, 1 + JITTER), 3)
        if at > over:
            break
        shaken = drawn.random() < OF_CONSUMERS
        pairs = sorted(drawn.sample(every, len(every)), key=lambda pair: (pair[0] in SHAKEN) != shaken)
        length, draw = drawn.random(), drawn.random()
        for component, kind in pairs:
            one = Injection(at, component, kind, round(_length_s(component, kind, length, timing), 3), draw)
            if at + one.for_s <= over and _free(one, found):
                found.append(one)
                break
    return tuple(found)


def _length_s(component: str, kind: str, share: float, timing: Timing) -> float:
    """How long a fault lasts, s, by a ``share`` of its possible lengths."""
    if kind == EVICT or (kind == KILL and component in PODS):
        return 0.0
    if component == CONSUMER and kind == TERMINATE:
        return share * timing.work_s
    if component == CONSUMER and kind in (STOP, CUT):
        return timing.session_s * (LONGER[0] + share * (LONGER[1] - LONGER[0]))
    if kind == ROLLOUT:
        return timing.away_s
    longest_s = {GROUP: min(MINUTE_S, timing.driven_s / STORM_PART), BROKER: BROKER_AWAY_S}.get(component, timing.away_s)
    return 1 + share * (max(1.0, longest_s) - 1)


def _free(one: Injection, earlier: Sequence[Injection]) -> bool:
    """Whether ``one`` may follow on ``earlier``."""
    shakes = sum(other.component in SHAKEN and other.at > one.at - MINUTE_S for other in earlier)
    if one.component in SHAKEN and shakes >= MOST_SHAKES:
        return False
    return not any(_apart(one, other) and one.at < _back(other) for other in earlier)


def _apart(one: Injection, other: Injection) -> bool:
    """Whether ``one`` of two faults is to be over, and what it struck back, before the other."""
    if one.component == other.component and (one.component != CONSUMER or one.kind == other.kind in (STOP, ROLLOUT, *NETWORK)):
        return True
    pair = (one, other), (other, one)
    return any(root.component in ROOTS and (needs.component in DAEMONS or needs.kind in ASKING) for root, needs in pair)


def _back(one: Injection) -> float:
    """When what ``one`` struck is back, s after the profile's start."""
    return one.at + one.for_s + (SLOW_BACK_S if one.component in (*ROOTS, BROKER) else BACK_S)


def planned(
    given: Faults | Sequence[Injection] | None, profile: Profile, work: Workload, scale: Scale, context: Context, during: During
) -> tuple[Injection, ...]:
    """The injections of a trial: those that a plan draws for its compressed ``profile``, or those of a list, in order of time.

    Raises :class:`InputError` for a runtime whose components the lab can't kill, for a plan or an injection that can't be
    used, for what the trial of ``context`` with the events ``during`` lacks, and for a profile that is over before any.
    """
    if not given:
        return ()
    decrees: tuple[Event, ...] = getattr(context.policy, "decrees", ())
    context = replace(context, earlier=(*(event for _, event in during), *decrees))
    where = "trial"
    if context.runtime != "binary":
        raise InputError(where, "faults", given, "none but on binary, whose components are the lab's own processes")
    if not isinstance(given, Faults):
        if twice := [one for one, count in Counter(given).items() if count > 1]:  # each is taken back, and in the record, once
            raise InputError(where, "faults", twice[0], "each injection once")
        for one in given:
            one.check(profile.duration, where)
            if needs := lack(one.component, one.kind, work, context):
                raise InputError(where, "faults", one, needs)
        return tuple(sorted(given))
    given.check(where)
    if not (found := schedule(given, Timing.of(profile, work, scale), given.possible(work, context, where))):
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
    return Listed(validation.read(list[Injection], rows, file, "faults"), told)
