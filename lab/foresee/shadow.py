"""Whether the model decides as a live HPA does, sync by sync, and what another ScaledObject would ask for meanwhile. Pure.

A sync of the live HPA is known from outside by its inputs and its decision; its memory of earlier syncs can't be read. So
syncs within that memory of the watch's begin are apart: they are neither agreed on nor otherwise. Times are epoch s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from lab.foresee.candidate import Closed, Comparison
from lab.inputs.hpa_spec import HpaSpec
from lab.judge.aggregate import count_flips
from lab.model import hpa, hpa_limits, hpa_log
from lab.model.hpa import Controller, State
from lab.model.hpa_log import Replayed, Sync

KEPT, NEW, UNKNOWN = "kept", "new", "unknown"  # what the HPA remembers at a sync: what it did, nothing, what nobody saw
AGREED, OTHERWISE, WARMING, EDGE, UNREAD = "agreed", "otherwise", "warming", "edge", "unread"
NEEDED = 99  # percent of the syncs that are judged
LEAST = 20  # syncs that are judged
EDGE_S = 1.0  # a status may arrive so late, so what a window or a period holds at its very edge is not known
PART_OF_A_SYNC = 0.25  # and no later than this part of a sync period


@dataclass(frozen=True, slots=True)
class Live:
    """A sync of a live HPA. A ``silent`` one wrote no status; ``unread`` is why its decision can't be read, "" where it can.
    ``memory`` is KEPT, NEW or UNKNOWN, ``ready`` the pods that are ready."""

    sync: Sync
    silent: bool = False
    memory: str = KEPT
    unread: str = ""
    ready: int = 0


@dataclass(frozen=True, slots=True)
class Decided:
    """A live sync, and what the model decides of it, None for one that is unread. ``word``: AGREED, OTHERWISE, or why it is
    apart: WARMING, EDGE or UNREAD."""

    live: Live
    replayed: Replayed | None
    word: str

    @property
    def observed(self) -> tuple[hpa.Observed, ...]:
        """What its metrics were, as the model agrees; None for what isn't known."""
        seen = self.replayed.seen if self.replayed else None
        return (seen.observed if seen else None) or (None,) * len(self.live.sync.spec.metrics)


@dataclass(frozen=True)
class Disagreement:
    """A sync that the model decides otherwise."""

    at: float
    before: int
    live: int
    model: int
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Trust:
    """Of ``judged`` syncs the model decided ``agreed`` as the live HPA did, ``agreement`` percent; ``steps`` of them changed
    the replicas. ``silent`` of all ``syncs`` wrote nothing.

    Apart are ``warming`` ones, within ``memory_s`` of what nobody saw, ``edges``, where the second of a window decides, and
    ``unread`` ones. ``reasons`` say why there is no verdict; without one there is.
    """

    syncs: int
    silent: int
    warming: int
    edges: int
    unread: int
    judged: int
    agreed: int
    steps: int
    agreement: float | None
    memory_s: float
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One sync: the metrics that the HPA saw, and the replicas after it."""

    at: float
    metrics: tuple[float | None, ...]
    live: int
    candidate: int


@dataclass(frozen=True)
class Course:
    """What replicas cost over the same time."""

    pod_minutes: float
    flips: int
    steps: int
    most_replicas: int


@dataclass(frozen=True)
class Candidate:
    """What a candidate asks for on the live group's metrics, from ``since`` on.

    ``exact_until`` is when its replicas first differ by which another lag would follow, None where they never do, and ``exact``
    the share of the time before. ``near`` is the share within one replica. At ``hidden`` syncs KEDA's cap hid the lag.
    """

    candidate: str
    since: float
    exact_until: float | None
    exact: float
    near: float
    hidden: int
    live: Course
    asked: Course
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Shadow:
    """The answer of ``shadow``: without trust there is no ``candidate`` and no ``closed`` loop; ``missing`` has the reasons.

    ``scrape_s`` is the time between two scrapes of a past, None for a watch.
    """

    scaledobject: str
    hpa: str
    since: float
    until: float
    sync_s: float
    scrape_s: float | None
    trust: Trust
    disagreements: tuple[Disagreement, ...]
    candidate: Candidate | None
    closed: Closed | None
    missing: tuple[str, ...]


def memory_s(spec: HpaSpec, controller: Controller) -> float:
    """How far back the HPA looks, s: the longest of its windows and of its policies' periods."""
    rules, default = spec.behavior, controller.downscale_stabilization_s
    if rules is None:
        return default
    windows = (rules.up.window_s or 0, default if rules.down.window_s is None else rules.down.window_s)
    return max(*windows, *(policy.period_s for one in (rules.up, rules.down) for policy in one.policies))


def decide(lives: Iterable[Live], controller: Controller, sync_s: float) -> Iterator[Decided]:
    """The model's decision on each of ``lives``, in order; after another decision it goes on with the steps that were seen."""
    state, warm, unknown_s = State(), -1.0, min(EDGE_S, sync_s * PART_OF_A_SYNC)
    for live in lives:
        sync = live.sync
        if live.memory == NEW:
            state, warm = State(), -1.0
        if live.memory == UNKNOWN or live.unread:
            warm = sync.at + memory_s(sync.spec, controller)
        if live.unread:
            state = _seen(sync, state, state)
            yield Decided(live, None, UNREAD)
            continue
        one, left = hpa_log.redecided(sync, state, unknown_s, controller)
        word = AGREED if one.agrees else OTHERWISE
        if sync.at < warm:
            word = WARMING
        elif one.at_an_edge:
            word = EDGE
        yield Decided(live, one, word)
        state = left if one.agrees else _seen(sync, state, left)


def _seen(sync: Sync, before: State, left: State) -> State:
    """``left`` with the step that was seen in place of the model's own."""
    kept = replace(left, ups=before.ups, downs=before.downs)
    if sync.current in (0, sync.desired):  # to and from 0 is KEDA's
        return kept
    at = sync.at if sync.scaled_at is None else sync.scaled_at
    return hpa.stored(sync.spec, kept, sync.current, sync.desired, hpa_limits.nanoseconds(at))


def trust(decided: Sequence[Decided], controller: Controller) -> Trust:
    """How often the model and the live HPA agree, and whether that is enough."""
    count = {word: sum(one.word == word for one in decided) for word in (AGREED, OTHERWISE, WARMING, EDGE, UNREAD)}
    judged = [one for one in decided if one.word in (AGREED, OTHERWISE)]
    steps = sum(one.live.sync.current != one.live.sync.desired for one in judged)
    remembered = max((memory_s(one.live.sync.spec, controller) for one in decided), default=0.0)
    reasons = []
    if len(judged) < LEAST:
        unread = "; ".join(sorted({one.live.unread for one in decided if one.live.unread}))
        why = f"watch for longer than the {remembered:,g} s that the HPA remembers"
        why = f"{count[UNREAD]:,} can't be: {unread}" if unread else why
        reasons.append(f"{len(judged):,} syncs could be judged, {LEAST} are needed: {why}")
    elif not steps:
        reasons.append("no sync that was judged changed the replicas: a model that does nothing would agree as often")
    if judged and 100 * count[AGREED] < NEEDED * len(judged):
        share = f"{100 * count[AGREED] / len(judged):.4g} %"
        reasons.append(
            f"the model decided {count[AGREED]:,} of {len(judged):,} syncs as the live HPA did, {share}: {_why(judged)}"
        )
    return Trust(
        syncs=len(decided),
        silent=sum(one.live.silent for one in decided),
        warming=count[WARMING],
        edges=count[EDGE],
        unread=count[UNREAD],
        judged=len(judged),
        agreed=count[AGREED],
        steps=steps,
        agreement=100 * count[AGREED] / len(judged) if judged else None,
        memory_s=remembered,
        reasons=tuple(reasons),
    )


def _why(judged: Sequence[Decided]) -> str:
    """What the disagreements have in common."""
    wrong = [one for one in judged if one.word == OTHERWISE]
    down = sum(one.live.sync.desired < one.live.sync.current <= one.replayed.decision.desired for one in wrong if one.replayed)
    if 2 * down > len(wrong):
        return "it went down where the model holds: was the controller restarted, or has it a shorter window of its own?"
    return "has the controller flags of its own (--tolerance, --downscale-stabilization-s), or is its sync another?"


def disagreements(decided: Iterable[Decided]) -> Iterator[Disagreement]:
    """The syncs that the model decides otherwise."""
    for one in decided:
        if one.word == OTHERWISE and one.replayed:
            sync, decision = one.live.sync, one.replayed.decision
            yield Disagreement(sync.at, sync.current, sync.desired, decision.desired, decision.reasons)


def ask(decided: Sequence[Decided], compared: Comparison, controller: Controller, until: float) -> Candidate | None:
    """What the candidate asks for on the same metrics, once its windows are full of them; None where they never are.

    An edit of the live HPA begins it anew. Until its windows are full its replicas are the live ones.
    """
    spec, state, begin = compared.spec, State(), None
    last = decided[-1].live.sync.spec if decided else None
    own = [*takewhile(lambda one: one.live.sync.spec == last, reversed(decided))][::-1]
    warm = own[0].live.sync.at + memory_s(spec, controller) if own else 0.0
    current, hidden, rows = 0, 0, list[Row]()
    for one in own:
        sync = one.live.sync
        if begin is None and sync.at >= warm and one.word in (AGREED, OTHERWISE, EDGE):
            begin = sync.at
        if not rows or (sync.current and not current) or (not sync.current and not compared.scaled.min_replicas):
            current = sync.current  # to and from 0 is KEDA's, which sees the same lag
        observed, unseen = compared.observed(one.observed)
        existing = one.replayed.seen.existing if not rows and one.replayed and one.replayed.seen else current
        decision, left = hpa.decide(spec, state, current, observed, sync.at, status_replicas=existing, controller=controller)
        state = _seen(sync, state, left) if begin is None else left
        if begin is not None:
            current, hidden = decision.desired, hidden + unseen
            values = tuple(sum(value) / 1000 if isinstance(value, tuple) else None for value in one.observed)
            rows.append(Row(sync.at, values, sync.desired, current))
    if begin is None:
        return None
    first = next((row.at for row in rows if row.live != row.candidate), None)
    whole = max(until - begin, 1e-9)
    near = sum(after - row.at for row, after in _spans(rows, until) if abs(row.live - row.candidate) <= 1)
    return Candidate(
        candidate=compared.scaled.name,
        since=begin,
        exact_until=first,
        exact=1.0 if first is None else (first - begin) / whole,
        near=near / whole,
        hidden=hidden,
        live=course([(row.at, row.live) for row in rows], until),
        asked=course([(row.at, row.candidate) for row in rows], until),
        rows=tuple(rows),
    )


def _spans(rows: Sequence[Row], until: float) -> Iterator[tuple[Row, float]]:
    return zip(rows, [*(row.at for row in rows[1:]), until], strict=True)


def course(points: Sequence[tuple[float, int]], until: float) -> Course:
    """What replicas cost that are ``points`` of (time, replicas from then on), up to ``until``."""
    ends = [*(t for t, _ in points[1:]), until]
    changes = [(one, other) for (_, one), (_, other) in pairwise(points) if one != other]
    return Course(
        pod_minutes=sum(count * (end - t) for (t, count), end in zip(points, ends, strict=True)) / 60,
        flips=count_flips(other > one for one, other in changes),
        steps=len(changes),
        most_replicas=max((count for _, count in points), default=0),
    )
