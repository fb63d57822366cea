"""Traffic as it was seen, and the profile of few steps that keeps its bursts. Pure.

Times are epoch s, rates messages/s. Between two samples there is one rate: of what is shorter, only the messages are known.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lab.errors import NoData
from lab.foresee.group import Floats
from lab.inputs.profile import BASELINE, Profile, Step
from lab.validation import Strict

Bools = npt.NDArray[np.bool_]

GAP = 3.0  # samples: one or two that lack are lost scrapes, more are a gap
BURST = 2.0  # times the median rate: above it is a burst
CHANCE = 9.0  # rates that differ by less than three standard deviations of a Poisson process are one
DIGITS = 6  # of a step's rate, which is rounded up
SAME = 10.0 ** (1 - DIGITS)  # the relative error of that
SECOND_DIGITS = 3  # of a time
_LONG_AGO = 86_400.0 * 366  # a profile begins in 1971 at the earliest: earlier times are seconds from some start


@dataclass(frozen=True)
class Traffic:
    """The ``rates`` between the ``edges``, with a sample every ``sample_s``.

    ``gaps`` says where there is no data for longer than :data:`GAP` samples, and ``falls`` when a counter fell: there the rate
    is a guess, the higher one beside it, or what the counter tells of the whole gap.
    """

    edges: Floats
    rates: Floats
    gaps: Bools
    sample_s: float
    falls: tuple[float, ...] = ()

    @cached_property
    def spans(self) -> Floats:
        """The time between each two edges, s."""
        return np.diff(self.edges)

    @cached_property
    def counts(self) -> Floats:
        """The messages by each edge."""
        return np.concatenate(([0.0], np.cumsum(self.rates * self.spans)))

    @property
    def duration(self) -> float:
        """From the first edge to the last, s."""
        return float(self.edges[-1] - self.edges[0])

    @property
    def peak(self) -> float:
        """The highest rate."""
        return float(self.rates.max())

    @cached_property
    def level(self) -> float:
        """The rate above which a burst is: twice the median over time, without the gaps."""
        order = np.argsort(self.rates)
        weights = np.cumsum(np.where(self.gaps, 0.0, self.spans)[order])
        return BURST * float(self.rates[order][np.searchsorted(weights, weights[-1] / 2)])

    def lacking(self) -> list[tuple[float, float, float]]:
        """(begin, end, highest rate that is assumed) of each gap."""
        found = runs(self.gaps)
        return [(float(self.edges[a]), float(self.edges[b]), float(self.rates[a:b].max())) for a, b in found]


@dataclass(frozen=True)
class Figure(Strict):
    """A figure of the traffic as it was ``seen``, of the ``steps``, and their error; None is no data."""

    seen: float | None
    steps: float | None
    error_percent: float | None


@dataclass(frozen=True)
class Phase(Strict):
    """A guess at what a time is for: s from the start, messages/s, messages."""

    phase: str
    begin: float
    end: float
    mean: float
    peak: float
    messages: float


@dataclass(frozen=True)
class Errors(Strict):
    """What the steps keep. A burst is a time above ``burst_rate``, twice the median, with dips of no more than :data:`GAP`
    samples; ``burst_s`` is of the longest. At no time more than ``moved`` messages come earlier or later than seen.
    """

    peak_rate: Figure
    messages: Figure
    burst_s: Figure
    burst_rate: float
    moved: float


def of_counter(times: Floats, counts: Floats) -> Traffic:
    """The traffic of a counter that had these ``counts`` at ``times``, which rise. Raises :class:`NoData` where it only falls.

    Where it falls, it began anew, or a log lost its end: what came between those two samples is not known.
    """
    times = np.round(times, SECOND_DIGITS)
    spans, more = np.diff(times), np.diff(counts)
    sample_s = _sample_s(times)
    rates = _guessed(np.where(more < 0, np.nan, more / spans))
    return Traffic(times, rates, spans > GAP * sample_s, sample_s, tuple(times[1:][more < 0].tolist()))


def of_rates(times: Floats, rates: Floats) -> Traffic:
    """The traffic of ``rates`` that were seen at ``times``, which rise: each holds until the next, in a gap for a sample."""
    sample_s = _sample_s(times)
    edges = np.round(np.append(times, times[-1] + sample_s), SECOND_DIGITS)
    late = np.flatnonzero(np.diff(edges) > GAP * sample_s)
    edges = np.insert(edges, late + 1, np.round(edges[late] + sample_s, SECOND_DIGITS))
    seen = np.insert(rates, late + 1, np.nan)
    return Traffic(edges, _guessed(seen), np.isnan(seen), sample_s)


def total(parts: Sequence[Traffic]) -> Traffic:
    """The sum of ``parts``, one at least. One that is there for a part of the time counts as nothing before and after it."""
    if len(parts) == 1:
        return parts[0]
    edges = np.unique(np.concatenate([one.edges for one in parts]))
    counts, gaps, middles = np.zeros(len(edges)), np.zeros(len(edges) - 1, dtype=bool), (edges[1:] + edges[:-1]) / 2
    for one in parts:
        counts += np.interp(edges, one.edges, one.counts)
        place = np.searchsorted(one.edges, middles) - 1
        there = (place >= 0) & (place < len(one.gaps))
        gaps[there] |= one.gaps[place[there]]
    rates = np.maximum(0.0, np.diff(counts) / np.diff(edges))
    falls = sorted(fall for one in parts for fall in one.falls)
    return Traffic(edges, rates, gaps, float(np.median([one.sample_s for one in parts])), tuple(falls))


def fit(seen: Traffic, most: int, factor: float = 1.0) -> Profile:
    """The profile of ``seen``, its rates times ``factor``, in at most ``most`` steps, and two more for the peak and each gap.

    Neighbours that differ least become one, of their mean rate: no message is lost. What is at the peak stays as it is, and
    what differs by no more than chance becomes one step in any case.
    """
    begins, rates = _joined(seen, most)
    begin = float(seen.edges[0])
    starts = np.round(seen.edges[begins] - begin, SECOND_DIGITS)
    edges = np.append(starts, seen.duration)
    names = _phases(_bursts(edges, np.array(rates), seen.level, GAP * seen.sample_s), len(rates))
    steps = [Step(at, _up(rate * factor), name) for at, rate, name in zip(starts.tolist(), rates, names, strict=True)]
    at = datetime.fromtimestamp(begin, UTC) if begin > _LONG_AGO else None
    return Profile(tuple(steps), round(seen.duration, SECOND_DIGITS), begins_at=at)


def errors(seen: Traffic, profile: Profile, factor: float = 1.0) -> Errors:
    """How well ``profile`` keeps ``seen``, whose rates are taken times ``factor``."""
    edges = np.array([*(one.at for one in profile.steps), profile.duration])
    rates = np.array([one.rate for one in profile.steps])
    counts = np.concatenate(([0.0], np.cumsum(rates * np.diff(edges))))
    level, dip_s = seen.level * factor, GAP * seen.sample_s
    longest = [
        max((float(where[end] - where[first]) for first, end in _bursts(where, values, level, dip_s)), default=None)
        for where, values in ((seen.edges, seen.rates * factor), (edges, rates))
    ]
    moved = np.abs(np.interp(seen.edges - seen.edges[0], edges, counts) - seen.counts * factor)
    return Errors(
        peak_rate=_figure(seen.peak * factor, float(rates.max())),
        messages=_figure(float(seen.counts[-1]) * factor, float(counts[-1])),
        burst_s=_figure(*longest),
        burst_rate=level,
        moved=float(moved.max()),
    )


def phases(profile: Profile) -> list[Phase]:
    """Each phase of ``profile`` in order."""
    ends = [*(one.at for one in profile.steps[1:]), profile.duration]
    found = []
    for begin, end, name in profile.phases():
        own = [(one.rate, until - one.at) for one, until in zip(profile.steps, ends, strict=True) if begin <= one.at < end]
        messages = sum(rate * span for rate, span in own)
        found.append(Phase(name, begin, end, messages / (end - begin), max(rate for rate, _ in own), messages))
    return found


def runs(mask: Bools) -> Iterator[tuple[int, int]]:
    """(first, behind the last) of each run of true in ``mask``."""
    turns = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    yield from zip(turns[::2].tolist(), turns[1::2].tolist(), strict=True)


def _sample_s(times: Floats) -> float:
    return max(10.0**-SECOND_DIGITS, round(float(np.median(np.diff(times))), SECOND_DIGITS))


def _guessed(rates: Floats) -> Floats:
    """``rates`` with the higher one of its neighbours in place of each that is NaN. Raises :class:`NoData` without a rate."""
    known = np.flatnonzero(np.isfinite(rates))
    if not len(known):
        raise NoData("a counter that falls from each sample to the next")
    every = np.arange(len(rates))
    after = rates[known[np.minimum(np.searchsorted(known, every), len(known) - 1)]]
    before = rates[known[np.maximum(np.searchsorted(known, every, side="right") - 1, 0)]]
    return np.maximum(before, after)


def _joined(seen: Traffic, most: int) -> tuple[list[int], list[float]]:
    """The first interval of each step, and its rate.

    The two neighbours are joined next whose joining moves the squares of the rates least: a high short burst outlives a low
    long one of as many messages.
    """
    count, peak = len(seen.rates), seen.peak * (1 - 1e-9)
    guard = int(np.lexsort((seen.gaps, -seen.rates))[0])  # the peak, which is joined with nothing lower
    spans, rates, gaps = seen.spans.tolist(), seen.rates.tolist(), seen.gaps.tolist()
    after, before, version = list(range(1, count + 1)), list(range(-1, count - 1)), [0] * count
    costs: list[tuple[float, int, int, int, int]] = []

    def weigh(one: int) -> None:
        other = after[one]
        if other == count or gaps[one] != gaps[other]:
            return
        if guard not in (one, other) or min(rates[one], rates[other]) >= peak:
            cost = spans[one] * spans[other] / (spans[one] + spans[other]) * (rates[one] - rates[other]) ** 2
            heapq.heappush(costs, (cost, one, other, version[one], version[other]))

    for place in range(count):
        weigh(place)
    left, gone = count, set[int]()
    while costs:
        cost, one, other, *versions = heapq.heappop(costs)
        if one in gone or other in gone or versions != [version[one], version[other]]:
            continue
        span = spans[one] + spans[other]
        rate = (rates[one] * spans[one] + rates[other] * spans[other]) / span
        if left <= most and cost > CHANCE * rate:
            continue
        spans[one], rates[one], after[one] = span, rate, after[other]
        if after[one] < count:
            before[after[one]] = one
        version[one] += 1
        gone.add(other)
        guard = one if guard == other else guard
        left -= 1
        weigh(one)
        if before[one] >= 0:
            weigh(before[one])
    kept = [place for place in range(count) if place not in gone]
    return kept, [rates[place] for place in kept]


def _bursts(edges: Floats, rates: Floats, level: float, dip_s: float) -> list[tuple[int, int]]:
    """(first, behind the last) of the intervals of each burst; a dip of ``dip_s`` ends none."""
    found: list[tuple[int, int]] = []
    for first, end in runs(rates > level * (1 + SAME)):
        if found and round(float(edges[first] - edges[found[-1][1]]), SECOND_DIGITS) <= dip_s:
            first = found.pop()[0]
        found.append((first, end))
    return found


def _phases(bursts: Sequence[tuple[int, int]], count: int) -> list[str]:
    """A guess for each of ``count`` steps: one burst is a spike that a drain follows, several have lulls between and after."""
    if not bursts:
        return [BASELINE] * count
    inside, behind = ("spike", "drain") if len(bursts) == 1 else ("burst", "lull")
    names = [BASELINE] * bursts[0][0] + [behind] * (count - bursts[0][0])
    for first, end in bursts:
        names[first:end] = [inside] * (end - first)
    return names


def _figure(seen: float | None, steps: float | None) -> Figure:
    if seen is None or steps is None or (steps and not seen):
        return Figure(seen, steps, None)
    return Figure(seen, steps, 100 * (steps - seen) / seen if seen else 0.0)


def _up(rate: float) -> float:
    """``rate`` rounded up to :data:`DIGITS` digits."""
    if rate <= 0:
        return 0.0
    places = DIGITS - 1 - math.floor(math.log10(rate))
    return math.ceil(rate * 10.0**places) / 10.0**places
