"""A live HPA's past, as scrapes of it tell: whether the model decides as it did, and the points of its closed loop. Pure.

No scrape has the time of a sync. So a sync is judged where all that its metric and its memory may have been come to one answer;
the others are apart, as are those of which too many fit between two scrapes. Times are epoch s, lag is in messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lab.foresee import explain, shadow
from lab.foresee.candidate import Point
from lab.foresee.live_hpa import Sample, Series, observed
from lab.foresee.shadow import AGREED, EDGE, OTHERWISE, UNREAD, WARMING, Decided, Live
from lab.model.hpa_log import Replayed, Seen, Sync

WORDS = {True: AGREED, False: OTHERWISE, None: EDGE}


def places(series: Series) -> list[int]:
    """The places of the samples that tell of the HPA's syncs: one for each sync, and each before which the replicas changed."""
    begin, end = series.samples[0].t, series.samples[-1].t
    count = int((end - begin) / series.sync_s)
    syncs = (min(end, begin + number * series.sync_s) for number in range(1, count + 1))
    return sorted({*series.changes, *map(series.place, syncs)})


def decide(series: Series) -> Iterator[Decided]:
    """The model's decision on each sync that ``series`` tells of, in order. Steps to and from 0 are KEDA's: left out."""
    memory_s = shadow.memory_s(series.spec, series.controller)
    warm, untold = series.samples[0].t + memory_s, f"more than {series.most_syncs} syncs fit between two scrapes"
    for place in places(series):
        before, after = series.samples[place - 1 : place + 1]
        times = series.syncs(place)
        if len(times) > series.most_syncs:
            warm = after.t + memory_s
            yield from (Decided(Live(_sync(series, place, t), unread=untold), None, UNREAD) for t in times)
        elif before.replicas and after.replicas:
            decision, agrees = explain.outcome(series, place)
            sync = _sync(series, place, times[-1])
            silent = replace(before, t=after.t) == after
            word = WARMING if times[0] < warm else WORDS[agrees]
            yield Decided(Live(sync, silent), Replayed(sync, decision, bool(agrees), seen=sync.seen[0]), word)


def _sync(series: Series, place: int, t: float) -> Sync:
    """The sync at ``t``, before the sample at ``place``."""
    before, after = (series.samples[one].replicas for one in (place - 1, place))
    seen = Seen(series.existing[place], tuple(observed(series.totals[place])))
    return Sync(t, series.spec, before, after, None, (seen,))


def points(samples: Sequence[Sample], lags: Sequence[float | None], start_s: float) -> list[Point]:
    """The group at each of ``samples``, whose lag was ``lags``; where that isn't known, it is that of the one before.

    Pods are taken to be ready ``start_s`` after they were asked for.
    """
    found: list[Point] = []
    begin = 0
    for place, (one, lag) in enumerate(zip(samples, lags, strict=True)):
        while begin < place and samples[begin + 1].t <= one.t - start_s:
            begin += 1
        ready = min(other.replicas for other in samples[begin : place + 1])
        known = found[-1].lag if lag is None and found else lag or 0.0
        found.append(Point(one.t, known, one.replicas, ready))
    return found
