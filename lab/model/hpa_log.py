"""The HPA controller's log of its syncs at ``--vmodule=horizontal=4``, and their replay through the model.

The source is ``reconcileAutoscaler`` in ``pkg/controller/podautoscaler/horizontal.go`` of Kubernetes 1.36. A replay must decide
what the controller decided. A real sync leaves behind its time, the replicas that it found, its metrics' proposals and its
decision. From External metrics the model works out the proposal itself. The proposal of a Resource metric depends on samples of
pods that nobody keeps, so there the real proposal goes in, and the steps after it are checked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from lab.model import hpa
from lab.model.hpa import Controller, HpaSpec, Observed, State

PROPOSED, KEPT, RESCALED = "Proposing desired replicas", "Decided not to scale", "Successfully rescaled"
FAILED = "failed to compute desired number of replicas"  # said within an "Unhandled Error"
DECIDED = (KEPT, RESCALED)
UPDATED, NOT_UPDATED = "Successfully updated status", "failed to update status"  # the latter within an "Unhandled Error"
_LINE = re.compile(r'[A-Z](\d{4} \d\d:\d\d:\d\d\.\d{6}) +\d+ horizontal\.go:\d+\] "([^"]+)"(.*)')
_NUMBER = re.compile(r"(currentReplicas|desiredReplicas)=(-?\d+)")


@dataclass(frozen=True)
class Line:
    """One line of the controller's log: epoch s, its words, and the replicas it names."""

    t: float
    words: str
    replicas: Mapping[str, int]


@dataclass(frozen=True)
class Logged:
    """The lines of one sync. ``proposal`` is None when no metric was asked.

    ``before`` is the end of the sync before, and ``after`` the time when the next sync had its metrics (epoch s). ``lost``: the
    HPA's status does not show what this sync saw, because another write had overtaken its own, or a sync that failed followed
    and wrote its own. ``wrote``: it changed the status, so a status of its own was watched, maybe after ``after``.
    """

    proposal: Line | None
    outcome: Line
    before: float
    after: float
    lost: bool
    wrote: bool

    @property
    def at(self) -> float:
        """When its metrics had been read (epoch s)."""
        return self.proposal.t if self.proposal else self.outcome.t


def parse(text: str, begun: float) -> Iterator[Line]:
    """The lines of a log in klog's format, in UTC. ``begun`` (epoch s) gives the year, which klog leaves out."""
    year = datetime.fromtimestamp(begun, UTC).year
    for line in text.splitlines():
        if found := _LINE.match(line):
            stamp = datetime.strptime(f"{year} {found[1]} +0000", "%Y %m%d %H:%M:%S.%f %z").timestamp()
            stamp = stamp if stamp >= begun - 86_400 else stamp + 365 * 86_400  # a trial over New Year
            words = next((error for error in (FAILED, NOT_UPDATED) if error in found[3]), found[2])
            yield Line(stamp, words, {name: int(value) for name, value in _NUMBER.findall(found[3])})


def syncs(lines: Sequence[Line], outcomes: Collection[str] = DECIDED) -> Iterator[Logged]:
    """The syncs of one HPA from its lines. Each ends with one of ``outcomes``; a sync decided by the bounds has no proposal."""
    ends = [index for index, line in enumerate(lines) if line.words in outcomes]
    for place, index in enumerate(ends):
        own = lines[ends[place - 1] + 1 if place else 0 : index]
        proposal = next((line for line in reversed(own) if line.words.startswith(PROPOSED)), None)
        before = lines[ends[place - 1]].t if place else float("-inf")
        rest = lines[index + 1 : ends[place + 1] if place + 1 < len(ends) else len(lines)]
        after = next((line.t for line in rest if line.words.startswith(PROPOSED)), None)
        if after is None:
            after = lines[ends[place + 1]].t if place + 1 < len(ends) else float("inf")
        said = {line.words for line in rest}
        # A rescale always changes the status: without a line about the write, it was not written.
        lost = bool(said & {NOT_UPDATED, FAILED}) or (lines[index].words == RESCALED and UPDATED not in said)
        yield Logged(proposal, lines[index], before, after, lost, UPDATED in said)


# The controller logs a proposal just before it reads the clock for its windows; a goroutine may be preempted in between.
CLOCK_S = 0.001


@dataclass(frozen=True, slots=True)
class Seen:
    """The possible input of one sync: the replicas that existed, and the value of each metric; None where it can't be known."""

    existing: int
    observed: tuple[Observed, ...] | None


@dataclass(frozen=True, slots=True)
class Sync:
    """One sync of a real HPA. Times in s on one clock.

    ``at`` is when its metrics were read, ``scaled_at`` when the scale was updated, None if it wasn't. ``proposed`` is the
    proposal of the winning metric, None when no metric was asked. ``seen`` holds its possible inputs, likeliest first: more
    than one where the replicas changed at that very moment. ``until`` is the latest time at which it can have read its clock
    for its windows, ``CLOCK_S`` after ``at`` where that isn't known. ``since`` is the earliest time at which an HPA's first
    sync can have begun, None for a later one: its first recommendation is dated before its metrics are read.
    """

    at: float
    spec: HpaSpec
    current: int
    desired: int
    proposed: int | None
    seen: tuple[Seen, ...]
    scaled_at: float | None = None
    until: float | None = None
    since: float | None = None


@dataclass(frozen=True)
class Disagreement:
    """A sync that the model decides otherwise: its input, both decisions, and the model's reasons."""

    index: int
    sync: Sync
    proposed: int | None
    desired: int
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        real = f"real {self.sync.current} -> {self.sync.desired} (proposed {self.sync.proposed})"
        model = f"model {self.sync.current} -> {self.desired} (proposed {self.proposed})"
        return f"sync {self.index} at {self.sync.at:.6f}: {real}, {model}: {'; '.join(self.reasons)}; seen {self.sync.seen}"


@dataclass(frozen=True)
class Replay:
    """Syncs: ``computed`` with the proposal, ``at_an_edge`` if the clock is off, on ``alternatives`` to the likeliest input."""

    syncs: int
    computed: int
    rescaled: int
    at_an_edge: int
    alternatives: int
    disagreements: tuple[Disagreement, ...]

    @property
    def agreement(self) -> float:
        """Percent of the syncs that the model decides as the real controller did."""
        return 100 * (1 - len(self.disagreements) / self.syncs) if self.syncs else 0.0


def may_exist(existing: Sequence[tuple[float, int]], before: float, at: float, late_s: float) -> list[int]:
    """The numbers of replicas that existed from ``before`` to ``at``, the last first; the watch may be ``late_s`` late."""
    known = [(t, count) for t, count in existing if t <= at + late_s]
    begun = max((index for index, (t, _) in enumerate(known) if t <= before), default=0)
    at_once = [count for t, count in known if t <= at][-1:]
    return list(dict.fromkeys([*at_once, *(count for _, count in reversed(known[begun:]))])) or [0]


@dataclass(frozen=True, slots=True)
class Replayed:
    """A sync and the model's ``decision`` on it. ``agrees``: the controller decided so too, ``at_an_edge`` if the clock is off,
    on an ``alternative`` to the likeliest input. ``seen`` is the input that it was decided on, None where there was none."""

    sync: Sync
    decision: hpa.Decision
    agrees: bool
    at_an_edge: bool = False
    alternative: bool = False
    seen: Seen | None = None


def replayed(syncs: Iterable[Sync], controller: Controller) -> Iterator[Replayed]:
    """Decide each of ``syncs`` anew, in order, from a new HPA's state; after a disagreement the model goes on as it decided."""
    state = State()
    unknown_s = CLOCK_S
    for sync in syncs:
        unknown_s = max(unknown_s, (sync.until or sync.at) - sync.at, sync.at - (sync.since or sync.at))
        one, state = redecided(sync, state, unknown_s, controller)
        yield one


def redecided(sync: Sync, state: State, unknown_s: float, controller: Controller) -> tuple[Replayed, State]:
    """Decide ``sync`` anew from ``state``, on each of its possible inputs and with its clock up to ``unknown_s`` (s) off.

    The state is that of the first trial which agrees, else that of the likeliest.
    """
    trials = [(choice, shift) for shift in _shifts(unknown_s) for choice in range(len(sync.seen))]
    first = None
    for choice, shift in trials:
        decision, left = _decided(sync, sync.seen[choice], state, sync.at + shift, controller)
        first = first or (decision, left)
        proposed = (None, _largest(decision))  # a sync without a proposal agrees with any
        if decision.desired == sync.desired and sync.proposed in proposed:
            return Replayed(sync, decision, True, shift != 0, choice != 0, sync.seen[choice]), left
    if first is None:  # no whole number of messages gives that average: nothing to decide on
        first = hpa.settle(sync.spec, state, sync.current, [None] * len(sync.spec.metrics), sync.at)
    return Replayed(sync, first[0], False, seen=sync.seen[0] if sync.seen else None), first[1]


def replay(syncs: Sequence[Sync], controller: Controller) -> Replay:
    """What :func:`replayed` finds, counted."""
    found = list(replayed(syncs, controller))
    wrong = (
        Disagreement(index, one.sync, _largest(one.decision), one.decision.desired, one.decision.reasons)
        for index, one in enumerate(found)
        if not one.agrees
    )
    computed = sum(any(one.observed is not None for one in sync.seen) for sync in syncs)
    rescaled = sum(sync.current != sync.desired for sync in syncs)
    edges, alternatives = sum(one.at_an_edge for one in found), sum(one.alternative for one in found)
    return Replay(len(syncs), computed, rescaled, edges, alternatives, tuple(wrong))


def _shifts(unknown_s: float) -> list[float]:
    """The possible errors, s, of the time of a sync, or of one it remembers; the smallest first."""
    steps = [CLOCK_S]
    while steps[-1] < unknown_s:
        steps.append(min(2 * steps[-1], unknown_s))
    return [0.0, *(signed for step in steps for signed in (step, -step))]


def _decided(sync: Sync, seen: Seen, state: State, now: float, controller: Controller) -> tuple[hpa.Decision, State]:
    spec, current, observed, scaled_at = sync.spec, sync.current, seen.observed, sync.scaled_at
    if observed is None:
        proposals = [sync.proposed] * len(spec.metrics)
        return hpa.settle(spec, state, current, proposals, now, controller=controller, scaled_at=scaled_at)
    existing = seen.existing
    return hpa.decide(spec, state, current, observed, now, status_replicas=existing, controller=controller, scaled_at=scaled_at)


def _largest(decision: hpa.Decision) -> int | None:
    return max((count for count in decision.proposals if count is not None), default=None)
