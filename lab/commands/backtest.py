"""What ``shadow`` answers from a group's past, and the closed loop that it plays on the lag of a watch or of the past.

Times are epoch s, lag in messages.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from lab.commands import scrapes
from lab.commands.arrivals import clock_of
from lab.errors import InputError
from lab.foresee import backtest, candidate, live_hpa, shadow, sync
from lab.foresee.candidate import Loop, Point
from lab.foresee.group import Consumers
from lab.foresee.live_hpa import MORE_S, Series
from lab.foresee.shadow import Shadow
from lab.inputs import profile, scaledobject_file
from lab.inputs.profile import Profile
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers.kafka import Kafka
from lab.model.hpa import Controller


def answer(options: Namespace, wanted: ScaledObject | None, controller: Controller) -> tuple[Shadow, Loop | None]:
    """The answer to what a Prometheus kept of the group, and its closed loop.

    Raises :class:`InputError`, also where it kept too little.
    """
    for flag in ("prometheus", "scaledobject"):
        if not vars(options)[flag]:
            raise InputError("command line", f"--{flag}", None, "what --backtest reads: no Prometheus has windows and policies")
    there = scaledobject_file.load(options.scaledobject, options.name).scaled
    end = time.time() if options.to is None else options.to
    asked, spec = scrapes.Prometheus(options.prometheus, options.namespace), sync.hpa_of(there)
    samples, _ = asked.scrapes(there, spec, end - options.backtest, end, "")
    series = live_hpa.series(there, samples, options.hpa_sync_s + MORE_S, options.partitions, controller)
    decided = list(backtest.decide(series))
    trust = shadow.trust(decided, controller)
    loop, missing = None, list[str]()
    if not trust.reasons and (wanted or options.pod_rate):
        if options.query:
            seen, _ = asked.scrapes(there, spec, end - options.backtest, end, options.query)
            lags = [one.values[0] for one in seen]
        else:
            places = backtest.places(series)
            seen, lags = [samples[place] for place in places], [series.totals[place][0] for place in places]
            missing += _hidden(series, lags)
        points = backtest.points(seen, lags, options.start_s or 0.0)
        loop, lacks = play(options, [there, *([wanted] if wanted else [])], points, seen[-1].t, series.sync_s, controller)
        missing += lacks
    found = Shadow(
        scaledobject=there.name,
        hpa=there.hpa,
        since=samples[0].t,
        until=samples[-1].t,
        sync_s=series.sync_s,
        scrape_s=series.scrape_s,
        trust=trust,
        disagreements=tuple(shadow.disagreements(decided)),
        candidate=None,
        closed=loop.closed if loop else None,
        missing=tuple(missing),
    )
    return found, loop


def _hidden(series: Series, lags: Sequence[float | None]) -> list[str]:
    """That KEDA's cap hid the lag of some syncs, if it did."""
    count = 0 if series.caps[0] is None else lags.count(series.caps[0])
    said = (
        f"the lag at {count:,} of {len(lags):,} syncs, which KEDA's cap hid, so there was more traffic: --query has all of it"
    )
    return [said] if count else []


def play(
    options: Namespace,
    policies: Sequence[ScaledObject],
    points: Sequence[Point],
    until: float,
    sync_s: float,
    controller: Controller,
) -> tuple[Loop | None, list[str]]:
    """The closed loop of ``policies``, the live one first, and why it is missing. Raises :class:`InputError`."""
    if not options.pod_rate:
        return None, ["the closed loop: --pod-rate, --start-s and --partitions tell what the pods would make of the lag"]
    if [type(one) for one in policies[0].triggers] != [Kafka]:
        return None, ["the closed loop: it needs one trigger of type kafka, whose metric is the lag"]
    pods = Consumers(options.pod_rate, options.start_s, in_flight_s=options.in_flight_s)
    measured = _measured(options.profile, points[0].t, until) if options.profile else None
    return candidate.play(policies, points, until, pods, options.partitions, sync_s, controller, measured), []


def _measured(file: Path, begin: float, until: float) -> Profile:
    """The traffic in ``file`` from ``begin`` to ``until``. Raises :class:`InputError` for one of another time."""
    seen = profile.load(file)
    found = candidate.part(seen, begin, until)
    if found is None:
        allowed = f"traffic from {clock_of(begin)} to {clock_of(until)} UTC, as elastic-lab profile writes it of that time"
        raise InputError(file, "begins_at", seen.begins_at and str(seen.begins_at), allowed)
    return found
