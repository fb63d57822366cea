"""Why an HPA scaled, or didn't, inferred from what was scraped of it. Pure. Times are epoch s.

Each sync that may have been between two scrapes is decided by the model, on all that its metric may have been and with the
memory that the series tells. What comes to the replicas that were scraped may be what happened. Where that has one reason, it
is the answer; where it has several, or where too many syncs fit between two scrapes, the answer is that nothing tells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from lab.foresee.live_hpa import Series, Totals, observed
from lab.model import hpa
from lab.model.hpa import Decision, State

METRIC, TOLERANCE, CAP = "metric", "tolerance", "cap"
UP_WINDOW, DOWN_WINDOW = "scaleUp window", "scaleDown window"
UP_POLICY, DOWN_POLICY = "scaleUp policy", "scaleDown policy"
MOST, LEAST = "maxReplicaCount", "minReplicaCount"
FAILED, KEDA = "no metric", "KEDA"

SAID = {
    METRIC: "the metric asked for just this",
    TOLERANCE: "the ratio was within the tolerance",
    CAP: "KEDA capped the lag at one lagThreshold for each partition",
    UP_WINDOW: "the least that was asked for within the scale-up window",
    DOWN_WINDOW: "the most that was asked for within the scale-down window",
    UP_POLICY: "the scale-up policies allowed no more",
    DOWN_POLICY: "the scale-down policies allowed no fewer",
    MOST: "more was asked for than maxReplicaCount",
    LEAST: "fewer were asked for than minReplicaCount",
    FAILED: "a metric had no value, and the others asked for no more",
    KEDA: "KEDA itself: the HPA has no part in steps to and from 0",
}
LIMITS = {"ScaleUpLimit": UP_POLICY, "ScaleDownLimit": DOWN_POLICY, "TooManyReplicas": MOST, "TooFewReplicas": LEAST}
WINDOWS = {"ScaleUpStabilized": UP_WINDOW, "ScaleDownStabilized": DOWN_WINDOW}

BENDS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, math.inf)  # ways of the lag between two scrapes, the straight one in the middle


@dataclass(frozen=True)
class Explanation:
    """One sync between ``since`` and ``until`` that took the replicas from ``before`` to ``after``, at about ``at``.

    ``by`` is what decided, ``said`` the same as a sentence; where the series doesn't tell, ``by`` is None and ``said`` has why.
    ``metric`` asked for most, for ``proposal``. ``higher`` and ``lower`` are the replicas that would have come with that metric
    higher or lower by what one pod is wanted for: by a lagThreshold. ``reasons`` are the model's, step by step.
    """

    at: float
    since: float
    until: float
    before: int
    after: int
    by: str | None
    said: str
    metric: str | None = None
    proposal: int | None = None
    higher: int | None = None
    lower: int | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explained:
    """The answer of ``explain``: times are in epoch s, ``scrape_s`` is the median time between two scrapes. ``notes`` say
    what is not known."""

    scaledobject: str
    scrapes: int
    scrape_s: float
    sync_s: float
    since: float
    until: float
    explanations: tuple[Explanation, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Step:
    """A sync as the model decides it, with its inputs, and the memory that it ``left``."""

    t: float
    now: float
    state: State
    current: int
    existing: int
    totals: Totals
    decision: Decision
    left: State
    by: str
    metric: int | None

    @property
    def key(self) -> tuple[int, int, str, int | None]:
        """What an explanation says."""
        return self.current, self.decision.desired, self.by, self.metric


def explain(series: Series, asked: Iterable[float] = (), most_syncs: int | None = None) -> list[Explanation]:
    """Each change of the replicas, and each sync at a time that is ``asked`` for, in order of time.

    Nothing is told where more than ``most_syncs`` fit between two scrapes, by default as many as these scrapes allow. Raises
    :class:`InputError` for a time outside of the series.
    """
    places = sorted({*series.changes, *map(series.place, asked)})
    return [one for place in places for one in between(series, place, most_syncs)]


def decided_by(decision: Decision, totals: Totals, caps: Totals) -> tuple[str, int | None]:
    """What decided, and the place of the metric that asked for most, None where none was asked.

    The last limit that changed the number decided it; without one the metric did.
    """
    if not decision.proposals:
        return (MOST if "above maxReplicas" in decision.reasons[0] else LEAST if decision.desired else KEDA), None
    if decision.failed:
        return FAILED, None
    winner = max(range(len(decision.proposals)), key=lambda place: decision.proposals[place] or 0)
    if decision.limited:
        # A direction that is Disabled, and one without a policy left, are a ScaleUpLimit or a ScaleDownLimit too.
        return LIMITS[decision.limited], winner
    for reason in decision.reasons:
        if by := WINDOWS.get(reason.partition(":")[0]):
            return by, winner
    if totals[winner] is not None and totals[winner] == caps[winner]:
        return CAP, winner
    return (TOLERANCE if ": keeps" in decision.reasons[winner] else METRIC), winner


def between(series: Series, place: int, most_syncs: int | None = None) -> list[Explanation]:
    """What happened between the sample before ``place`` and that at it: each step, else the last sync that changed nothing."""
    begin, end = series.samples[place - 1], series.samples[place]

    def untold(said: str) -> list[Explanation]:
        return [Explanation((begin.t + end.t) / 2, begin.t, end.t, begin.replicas, end.replicas, None, said)]

    if not begin.replicas or not end.replicas:
        return [replace(untold(SAID[KEDA])[0], by=KEDA)]
    count, apart = len(series.syncs(place)), f"two scrapes that are {end.t - begin.t:.3g} s apart"
    most = most_syncs or series.most_syncs
    if count > most:
        return untold(f"{count} syncs fit between {apart}: no more than {most} are told apart")
    chains = [_told(chain) for chain in _fitting(series, place)]
    keys = {tuple(step.key for step in chain) for chain in chains}
    if not keys:
        return untold(f"no lag between {apart} makes the HPA do this: did someone else scale, or edit the ScaledObject?")
    if len(keys) > 1:
        ways = sorted({step.by for chain in chains for step in chain})
        return untold(f"{apart} don't tell: {' or '.join(ways)}{', by other steps' if len(ways) == 1 else ''}")
    return [_explanation(series, place, step) for step in chains[len(chains) // 2]]


def _told(chain: list[_Step]) -> list[_Step]:
    """The steps of a chain that changed the replicas, else its last sync."""
    return [step for step in chain if step.decision.desired != step.current] or chain[-1:]


def outcome(series: Series, place: int) -> tuple[Decision, bool | None]:
    """The model's likeliest decision before the sample at ``place``, and whether it comes to the replicas that were scraped.

    None where it hangs on what the lag was between two scrapes, or on the edge of a window or a period.
    """
    found = _chains(series, place, 0.0)
    fits = [fit for _, fit in found]
    likeliest = found[len(found) // 2][0][-1].decision
    if all(fits):
        return likeliest, True
    return likeliest, None if any(fits) or _fitting(series, place) else False


def _fitting(series: Series, place: int) -> list[list[_Step]]:
    """The chains of syncs that come to what was scraped. The times of syncs are uncertain, and so is what windows and periods
    hold at their edges: where nothing fits, all that is remembered may be one sync older, or younger."""
    for shift in (0.0, series.sync_s, -series.sync_s):
        found = [chain for chain, fits in _chains(series, place, shift) if fits]
        if found:
            return found
    return []


def _chains(series: Series, place: int, shift: float) -> list[tuple[list[_Step], bool]]:
    """The chains of syncs before the sample at ``place``, for all that its metric and its memory may have been, and whether
    each comes to what was scraped."""
    begin, end = series.samples[place - 1].replicas, series.samples[place].replicas
    times, shown = series.syncs(place), series.shown(place)
    bends = (1.0,) if shown is not None and len(times) == 1 else BENDS
    memories = [series.memory(times[0], cold=cold) for cold in ((True, False) if series.fresh(times[0]) else (False,))]
    found = []
    for state, bend in itertools.product(memories, bends):
        chain = _chain(series, place, times, shown, bend, shift, state, begin)
        of_status = shown is None or chain[-1].current == series.samples[shown].current
        found.append((chain, chain[-1].decision.desired == end and of_status))
    return found


def _chain(
    series: Series, place: int, times: list[float], shown: int | None, bend: float, shift: float, state: State, current: int
) -> list[_Step]:
    """The syncs at ``times`` from ``current`` replicas on, each from what the one before left."""
    chain: list[_Step] = []
    for t in times:
        told = shown is not None and t == times[-1]
        totals = series.totals[shown] if told and shown is not None else series.between(place, t, bend)
        existing = series.existing[shown] if told and shown is not None else current
        chain.append(_step(series, t, t + shift, state, current, existing, totals))
        state, current = chain[-1].left, chain[-1].decision.desired
    return chain


def _step(series: Series, t: float, now: float, state: State, current: int, existing: int, totals: Totals) -> _Step:
    controller = series.controller
    seen = observed(totals)
    decision, left = hpa.decide(series.spec, state, current, seen, now, status_replicas=existing, controller=controller)
    return _Step(t, now, state, current, existing, totals, decision, left, *decided_by(decision, totals, series.caps))


def _explanation(series: Series, place: int, step: _Step) -> Explanation:
    begin, end = series.samples[place - 1].t, series.samples[place].t
    until = step.t if series.samples[place].current is not None else min(end, step.t + series.sync_s / 2)
    since = max(begin, until - series.sync_s)
    higher = lower = None
    if step.metric is not None:
        metric = series.spec.metrics[step.metric]
        share = metric.amount / 1000 / (step.current if metric.target == "Value" else 1)
        higher, lower = (_with(series, step, step.metric, sign * share) for sign in (1, -1))
    return Explanation(
        at=(since + until) / 2,
        since=since,
        until=until,
        before=step.current,
        after=step.decision.desired,
        by=step.by,
        said=SAID[step.by],
        metric=None if step.metric is None else series.names[step.metric],
        proposal=None if step.metric is None else step.decision.proposals[step.metric],
        higher=higher,
        lower=lower,
        reasons=step.decision.reasons,
    )


def _with(series: Series, step: _Step, place: int, more: float) -> int | None:
    """The replicas after ``step`` with so much ``more`` of one metric; None where it has no value."""
    value = step.totals[place]
    if value is None:
        return None
    changed = (*step.totals[:place], max(0.0, value + more), *step.totals[place + 1 :])
    return _step(series, step.t, step.now, step.state, step.current, step.existing, changed).decision.desired
