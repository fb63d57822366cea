"""``elastic-lab explain``: why a group scaled, or didn't, from what Prometheus kept of it."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab.commands import scrapes
from lab.commands.sync import MOST_PARTITIONS
from lab.commands.text import as_json
from lab.errors import InputError
from lab.flags import URL, Flags, Kind, number, whole
from lab.foresee import explain, live_hpa, sync
from lab.foresee.explain import Explained, Explanation
from lab.foresee.live_hpa import MORE_S, Series
from lab.foresee.situation import controller_of
from lab.inputs import scaledobject, scaledobject_file
from lab.inputs.scale import HPA_SYNC_S, SYNCS_S
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers.kafka import Kafka

A_SYNC = 3  # scrapes of a record's HPA: one in 5 s at real time
LONGEST_WINDOW_S = 3_600  # that the API allows: the HPA may remember so much of what was before
RECENT_S = 3_600  # of a Prometheus, by default: for so long the API server keeps events
INSTANT = Kind(scrapes.instant, "epoch seconds, or a time such as 2026-01-15T14:03:00Z")


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    text = "the file of the ScaledObject as it was then, YAML or JSON; - for standard input"
    parser.flag("scaledobject", Path, None, text, optional=True)
    text = "in its place: read the live ScaledObject, and its HPA's events, in this context of the kubeconfig"
    parser.flag("context", str, None, text, optional=True)
    parser.flag("kubeconfig", str, None, "the file of --context [default: KUBECONFIG, else ~/.kube/config]", optional=True)
    text = "the live ScaledObject, or where several are in the file the one of this name, or NAMESPACE/NAME"
    parser.flag("name", str, "", text)
    parser.flag("prometheus", URL, None, "the URL of a Prometheus that scrapes kube-state-metrics", optional=True)
    parser.flag("namespace", str, "default", "the namespace of the ScaledObject, for --prometheus and --context")
    text = "a selector of an exporter's lag, such as kafka_consumergroup_lag{topic=\"orders\"}, where Prometheus has no HPA's"
    parser.flag("query", str, "", text)
    text = "a CSV file with the columns time, replicas and lag, or one for each trigger"
    parser.flag("csv", Path, None, text, optional=True)
    text = "the HPA's events, of `kubectl get events -o json`: each tells a step to the second"
    parser.flag("events", Path, None, text, optional=True)
    parser.flag("record", Path, None, "the record of a trial, which has its ScaledObject", optional=True)
    text = "the first time to explain [default: an hour before --to, or all of a file]"
    parser.flag("from", INSTANT, None, text, optional=True)
    parser.flag("to", INSTANT, None, "the last time to explain [default: now, or all of a file]", optional=True)
    text = "a time at which it did not scale, to be explained too; may be given again"
    parser.flag("at", INSTANT, None, text, optional=True, many=True)
    text = "the partitions of the topic, whose number caps the lag [default: not known; with --query its series]"
    parser.flag("partitions", whole(1, MOST_PARTITIONS), None, text, optional=True)
    parser.flag("hpa-sync-s", number(0.1, SYNCS_S[1]), HPA_SYNC_S, "the HPA's sync period, s")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Namespace) -> int:
    """Explain and print. Returns the exit code: none of it is judged."""
    given = [name for name in ("prometheus", "csv", "record") if getattr(options, name)]
    if len(given) != 1:
        raise InputError("command line", "--prometheus, --csv, --record", " and ".join(given) or None, "one of them")
    begin, end = _times(options)
    name, series, notes = _record(options) if options.record else _live(options, begin, end)
    found = [
        one
        for one in explain.explain(series, options.at or ())
        if (begin is None or one.until >= begin) and (end is None or one.since <= end)
    ]
    times = [one.t for one in series.samples]
    answer = Explained(name, len(times), series.scrape_s, series.sync_s, times[0], times[-1], tuple(found), tuple(notes))
    print(as_json(asdict(answer)) if options.json else _text(answer))
    return 0


def _times(options: Namespace) -> tuple[float | None, float | None]:
    """The first and the last time to explain, None where a file has its own. Raises :class:`InputError`."""
    begin, end = vars(options)["from"], options.to
    if options.prometheus:
        end = time.time() if end is None else end
        begin = end - RECENT_S if begin is None else begin
    if begin is not None and end is not None and begin >= end:
        raise InputError("command line", "--from, --to", f"{begin:.0f}, {end:.0f}", "two times, the first before the last")
    return begin, end


def _record(options: Namespace) -> tuple[str, Series, Sequence[str]]:
    """The name of the record's ScaledObject, and its series: of as many scrapes as at real time one in 5 s makes."""
    from lab.record.store import opened

    record = opened(options.record)
    policy = record.policy
    if not isinstance(policy, ScaledObject):
        raise InputError(options.record, "policy", type(policy).__name__, "a ScaledObject")
    sync_s = record.scale.hpa_sync_s + MORE_S
    samples = scrapes.of_record(record, record.scale.hpa_sync_s / A_SYNC)
    return policy.name, live_hpa.series(policy, samples, sync_s, record.inputs.partitions, controller_of(record.scale)), ()


@dataclass(frozen=True)
class _Known:
    """A ScaledObject, its HPA's steps by its events (epoch s, new replicas), and what is not known, in words."""

    scaled: ScaledObject
    steps: Sequence[tuple[float, int]]
    notes: tuple[str, ...] = ()


def _live(options: Namespace, begin: float | None, end: float | None) -> tuple[str, Series, Sequence[str]]:
    chosen = [f"--{name}" for name in ("scaledobject", "context") if getattr(options, name)]
    if len(chosen) != 1:
        allowed = "one of them: no Prometheus has windows and policies"
        raise InputError("command line", "--scaledobject, --context", " and ".join(chosen) or None, allowed)
    known = _in_cluster(options, begin or 0.0) if options.context else _in_files(options)
    scaled, partitions, notes = known.scaled, options.partitions, known.notes
    live_hpa.check(scaled)
    _check_lag(options, scaled)
    capped = any(map(live_hpa.capped, scaled.triggers))
    if options.csv:
        samples = scrapes.of_csv(options.csv, sync.labels(scaled))
        if partitions is None and capped:
            raise InputError("command line", "--partitions", None, "the partitions of the topic: KEDA caps the lag by them")
    else:
        assert begin is not None
        assert end is not None
        asked = scrapes.Prometheus(options.prometheus, options.namespace)
        samples, count = asked.scrapes(scaled, sync.hpa_of(scaled), begin - LONGEST_WINDOW_S, end, options.query)
        partitions = partitions or count
        if partitions is None and capped:
            notes = (*notes, "KEDA's cap is taken for the metric: --partitions, of the topic, tells it")
    series = live_hpa.series(scaled, samples, options.hpa_sync_s + MORE_S, partitions)
    return scaled.name, series.pinned(known.steps) if known.steps else series, notes


def _check_lag(options: Namespace, scaled: ScaledObject) -> None:
    """Raise :class:`InputError` where lag alone, of --query or --csv, does not tell what KEDA answers."""
    lag = "--query" if options.query else "--csv" if options.csv else ""
    if lag and any(isinstance(one, Kafka) and one.limit_to_lagging for one in scaled.triggers):
        allowed = f"false with {lag}: KEDA's cap depends on how many partitions have lag"
        raise InputError(scaled.where, "limitToPartitionsWithLag", "true", allowed)


def _in_files(options: Namespace) -> _Known:
    scaled = scaledobject_file.load(options.scaledobject, options.name).scaled
    return _Known(scaled, scrapes.events(options.events, scaled.hpa) if options.events else ())


def _in_cluster(options: Namespace, begin: float) -> _Known:
    """What the cluster has of the group; ``begin`` is the first time to explain.

    Raises :class:`InputError` for a context that is not there, :class:`LabFault` for a right that is not, and for no answer.
    """
    from lab.trial import watch  # of an extra

    if not options.name:
        raise InputError("command line", "--name", None, "the live ScaledObject")
    with watch.connected(options.kubeconfig, options.context) as api:
        found = watch.scaled_object(api, options.namespace, options.name)
        scaled = scaledobject.parse(found, "the live ScaledObject")
        events = None if options.events else watch.events(api, options.namespace, scaled.hpa)
    notes, changed = list[str](), _changed(found)
    if changed > begin:
        notes.append(f"the ScaledObject was changed at {_clock(changed)}: what was before is explained as if it had been so")
    if options.events:
        return _Known(scaled, scrapes.events(options.events, scaled.hpa), tuple(notes))
    if events is None:
        notes.append("the HPA's events can't be read, which tell its steps to the second: manifests/shadow/rbac.yaml lets them")
    return _Known(scaled, scrapes.rescales(events or (), scaled.hpa), tuple(notes))


def _changed(scaled: Mapping[str, Any]) -> float:
    """When all but the status of a live object was last written, epoch s; 0 where it doesn't say."""
    entries = scaled["metadata"].get("managedFields") or ()
    own = [one for one in entries if one.get("time") and one.get("subresource") != "status"]
    return max((scrapes.instant(one["time"]) for one in own), default=0.0)


def _text(answer: Explained) -> str:
    head = f"{answer.scaledobject}: {answer.scrapes} scrapes {answer.scrape_s:.3g} s apart, {_clock(answer.since)} to "
    lines = [f"{head}{_clock(answer.until)} UTC; a sync every {answer.sync_s:.4g} s"]
    lines += [f"note: {one}" for one in answer.notes]
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
