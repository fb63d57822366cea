"""``elastic-lab explain``: why a group scaled, or didn't, from what Prometheus kept of it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from lab.commands import scrapes
from lab.commands.sync import MOST_PARTITIONS
from lab.commands.text import as_json
from lab.errors import InputError
from lab.flags import Flags, Kind, number, whole
from lab.foresee import explain, scraped, sync
from lab.foresee.explain import Explained, Explanation
from lab.foresee.scraped import MORE_S, Series
from lab.foresee.situation import controller_of
from lab.inputs import scaledobject_file
from lab.inputs.scale import HPA_SYNC_S, SYNCS_S
from lab.inputs.scaledobject import ScaledObject

A_SYNC = 3  # scrapes of a record's HPA: one in 5 s at real time
LONGEST_WINDOW_S = 3_600  # that the API allows: the HPA may remember so much of what was before
INSTANT = Kind(scrapes.instant, "epoch seconds, or a time such as 2026-01-15T14:03:00Z")


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    text = "the file of the ScaledObject as it was then, YAML or JSON; - for standard input"
    parser.flag("scaledobject", Path, None, text, optional=True)
    parser.flag("name", str, "", "the ScaledObject of this name, or NAMESPACE/NAME, where several are in the file")
    parser.flag("prometheus", scrapes.URL, None, "the URL of a Prometheus that scrapes kube-state-metrics", optional=True)
    parser.flag("namespace", str, "default", "the namespace of the ScaledObject, for --prometheus")
    text = "a selector of an exporter's lag, such as kafka_consumergroup_lag{topic=\"orders\"}, where Prometheus has no HPA's"
    parser.flag("query", str, "", text)
    text = "a CSV file with the columns time, replicas and lag, or one for each trigger"
    parser.flag("csv", Path, None, text, optional=True)
    text = "the HPA's events, of `kubectl get events -o json`: each tells a step to the second"
    parser.flag("events", Path, None, text, optional=True)
    parser.flag("record", Path, None, "the record of a trial, which has its ScaledObject", optional=True)
    parser.flag("from", INSTANT, None, "the first time to explain [default: of all there is]", optional=True)
    parser.flag("to", INSTANT, None, "the last time to explain", optional=True)
    parser.flag("at", INSTANT, None, "a time at which it did not scale; again for each", optional=True, many=True)
    text = "the partitions of the topic, whose number caps the lag [default: not known; with --query its series]"
    parser.flag("partitions", whole(1, MOST_PARTITIONS), None, text, optional=True)
    parser.flag("hpa-sync-s", number(*SYNCS_S), HPA_SYNC_S, "the HPA's sync period, s")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Namespace) -> int:
    """Explain and print. Returns the exit code: none of it is judged."""
    given = [name for name in ("prometheus", "csv", "record") if getattr(options, name)]
    if len(given) != 1:
        raise InputError("command line", "--prometheus, --csv, --record", " and ".join(given) or None, "one of them")
    begin, end = vars(options)["from"], options.to
    if begin is not None and end is not None and begin >= end:
        raise InputError("command line", "--from, --to", f"{begin:.0f}, {end:.0f}", "two times, the first before the last")
    name, series = _record(options) if options.record else _live(options)
    found = [
        one
        for one in explain.explain(series, options.at or ())
        if (begin is None or one.until >= begin) and (end is None or one.since <= end)
    ]
    times = [one.t for one in series.samples]
    answer = Explained(name, len(times), series.scrape_s, series.sync_s, times[0], times[-1], tuple(found))
    print(as_json(asdict(answer)) if options.json else _text(answer))
    return 0


def _record(options: Namespace) -> tuple[str, Series]:
    """The name of the record's ScaledObject, and its series: of as many scrapes as at real time one in 5 s makes."""
    from lab.record.store import opened

    record = opened(options.record)
    policy = record.policy
    if not isinstance(policy, ScaledObject):
        raise InputError(options.record, "policy", type(policy).__name__, "a ScaledObject")
    sync_s = record.scale.hpa_sync_s + MORE_S
    samples = scrapes.of_record(record, record.scale.hpa_sync_s / A_SYNC)
    return policy.name, scraped.series(policy, samples, sync_s, record.inputs.partitions, controller_of(record.scale))


def _live(options: Namespace) -> tuple[str, Series]:
    if not options.scaledobject:
        raise InputError("command line", "--scaledobject", None, "its file: no Prometheus has windows and policies")
    scaled = scaledobject_file.load(options.scaledobject, options.name).scaled
    scraped.check(scaled)
    partitions = options.partitions
    if options.csv:
        samples = scrapes.of_csv(options.csv, sync.labels(scaled))
        if partitions is None and any(map(scraped.capped, scaled.triggers)):
            raise InputError("command line", "--partitions", None, "the partitions of the topic: KEDA caps the lag by them")
    else:
        begin, end = vars(options)["from"], options.to
        if begin is None or end is None:
            raise InputError("command line", "--from, --to", None, "two times, the first before the last, with --prometheus")
        asked = scrapes.Prometheus(options.prometheus, options.namespace)
        samples, count = asked.scrapes(scaled, sync.hpa_of(scaled), begin - LONGEST_WINDOW_S, end, options.query)
        partitions = partitions or count
    series = scraped.series(scaled, samples, options.hpa_sync_s + MORE_S, partitions)
    return scaled.name, series.pinned(scrapes.events(options.events, scaled.hpa)) if options.events else series


def _text(answer: Explained) -> str:
    head = f"{answer.scaledobject}: {answer.scrapes} scrapes {answer.scrape_s:.3g} s apart, {_clock(answer.since)} to "
    lines = [f"{head}{_clock(answer.until)} UTC; a sync every {answer.sync_s:.4g} s"]
    if not answer.explanations:
        lines.append("the replicas did not change: --at TIME says why not")
    for one in answer.explanations:
        by = one.by or "not told"
        lines.append(f"\n{_clock(one.at)}  {one.before} -> {one.after}  {by}: {one.said}")
        lines += _steps(one)
    return "\n".join(lines)


def _steps(one: Explanation) -> Sequence[str]:
    steps = [f"  {reason}" for reason in one.reasons]
    if one.higher is not None:
        steps.append(f"  with {one.metric} higher by its target for one pod: {one.higher}, lower: {one.lower}")
    return steps


def _clock(t: float) -> str:
    return f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d %H:%M:%S}"
