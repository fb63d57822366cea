"""What ``explain`` and ``profile`` read: scrapes of a live HPA, or of its traffic, out of a Prometheus, a CSV file or a trial.

A time is in epoch s, lag in messages.
"""

from __future__ import annotations

import csv
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab import yamlfile, yamltext
from lab.audit.objects import listed, mapping
from lab.errors import InputError, LabFault, report, together
from lab.foresee.live_hpa import Sample
from lab.foresee.queries import GROUPS, RENAMED
from lab.inputs.hpa_spec import MAX_REPLICAS, HpaSpec
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers.kafka import Kafka

if TYPE_CHECKING:
    from lab.record.store import Record

TIME, REPLICAS, LAG = "time", "replicas", "lag"  # the columns of a CSV file
MOMENT = "epoch s, or a time such as 2026-01-15T14:03:00Z"
_CELLS = {TIME: MOMENT, REPLICAS: f"pods, a whole number to {MAX_REPLICAS:,}"}
LATEST_S = 32_503_680_000.0  # of the year 3000: what is later was meant as ms
MOST_BYTES = 1_000_000_000  # of a CSV file
STALE_S = 300.0  # Prometheus' own: an older sample is none
SAME_S = 1.0  # within a scrape all samples of a target have one time
STATUS = "kube_horizontalpodautoscaler_status_"
SCALES = {  # spec.replicas and status.replicas by the kind of the scale target, and the label of its name
    "Deployment": ("kube_deployment_spec_replicas", "kube_deployment_status_replicas", "deployment"),
    "StatefulSet": ("kube_statefulset_replicas", "kube_statefulset_status_replicas", "statefulset"),
}


@dataclass
class Curve:
    """A value over time that stays until its next sample."""

    times: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def at(self, t: float, old_s: float = STALE_S) -> float | None:
        """The value at ``t``; None where there is none that is at most ``old_s`` old."""
        place = bisect_right(self.times, t) - 1
        if place < 0 or t - self.times[place] > old_s or not math.isfinite(self.values[place]):
            return None
        return self.values[place]


Found = list[tuple[Mapping[str, str], Curve]]  # labels and samples of each series


def of_csv(file: Path, names: Sequence[str]) -> list[Sample]:
    """The rows of ``file``, whose head is time, replicas and lag, or for several triggers a column for each of their ``names``.

    A time is in epoch s, or such as 2026-01-15T14:03:00Z; a lag of "" or NaN is no data. Raises :class:`InputError` for all
    that can't be used.
    """
    where, needed = yamlfile.name(file), (TIME, REPLICAS, *(names if len(names) > 1 else (LAG,)))
    head, *rows = csv_lines(file) or [[]]
    head = [name.strip() for name in head]
    if not {*needed} <= {*head}:
        raise InputError(where, "line 1", ",".join(head), f"the columns {', '.join(needed)}, with commas between them")
    found = []
    with together():
        for number, cells in enumerate(rows, 2):
            row = dict(zip(head, [*cells, *[""] * len(head)], strict=False))
            read = [_number(where, number, name, row[name].strip()) for name in needed] if cells else []
            if read and None not in read:
                at, replicas, *values = (one for one in read if one is not None)
                found.append(Sample(at, int(replicas), tuple(None if math.isnan(one) else one for one in values)))
    if len(found) < 2:
        raise InputError(where, "rows", len(found), "two at least")
    return sorted(found, key=lambda one: one.t)


def csv_lines(file: Path) -> list[list[str]]:
    """The cells of each line of the CSV ``file``, "-" for standard input. Raises :class:`InputError` for what is no text."""
    try:
        return list(csv.reader(yamlfile.text(file, MOST_BYTES).splitlines()))
    except csv.Error as error:
        raise InputError(yamlfile.name(file), "content", str(error), "a CSV file") from None


def _number(where: str, line: int, name: str, text: str) -> float | None:
    """The number in a cell, NaN for a lag without one. None for a cell that is reported."""
    try:
        found = instant(text) if name == TIME else float(text or (math.nan if name != REPLICAS else ""))
        if found < 0 or (name == REPLICAS and not (found <= MAX_REPLICAS and found.is_integer())):
            raise ValueError
    except ValueError:
        report(InputError(where, f"line {line}: {name}", text, _CELLS.get(name, "a number from 0")))
        return None
    return found


def instant(text: str, most: float = LATEST_S) -> float:
    """The epoch s that ``text`` writes, as such or as a time with its zone. Raises ``ValueError``, also beyond ``most``."""
    try:
        found = float(text)
    except ValueError:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            raise
        found = at.timestamp()
    if not 0 <= found <= most:
        raise ValueError(text)
    return found


def of_record(record: Record, every_s: float, phase_s: float = 0.0) -> list[Sample]:
    """What kube-state-metrics would have shown of the trial to one scrape in ``every_s``, the first after ``phase_s``."""
    statuses = record.hpa_statuses_of(record.policy.hpa) if record.policy.hpa else record.hpa_statuses
    replicas = record.replicas
    times, wanted, existing = (replicas[name].tolist() for name in ("t", "desired", "current"))
    begin = max(times[0], statuses[0].t) + phase_s
    known = [one.t for one in statuses]
    found = []
    for t in takewhile(lambda t: t <= record.end, (begin + number * every_s for number in count())):
        status = statuses[bisect_right(known, t) - 1]
        names = [one["external"]["metric"]["name"] for one in status.object["spec"]["metrics"]]
        shown = [status.metric("external", name) for name in names]
        averages = tuple(None if one is None else one.total(1) for one in shown)
        place = bisect_right(times, t) - 1
        found.append(Sample(t, wanted[place], averages, status.current, status.desired, existing[place]))
    return found


def events(file: Path, hpa: str) -> list[tuple[float, int]]:
    """:func:`rescales` of the events in ``file``, as ``kubectl get events -o json`` prints them. Raises :class:`InputError`."""
    found = yamltext.documents(yamlfile.text(file), yamlfile.name(file))
    return rescales((event for one in found for event in listed(mapping(one.content).get("items"))), hpa)


def rescales(events: Iterable[Mapping[str, Any]], hpa: str) -> list[tuple[float, int]]:
    """The second and the new replicas of each rescale of ``hpa`` in ``events``.

    Equal events are one, of which the first and the last time are known. After ten texts in ten minutes all others are
    one, with the text of the last.
    """
    found = set()
    for event in events:
        size = re.match(r"(\(combined from similar events\): )?New size: (\d{1,9}); ", str(event.get("message")))
        if size and event.get("reason") == "SuccessfulRescale" and mapping(event.get("involvedObject")).get("name") == hpa:
            for name in ("lastTimestamp",) if size[1] else ("firstTimestamp", "lastTimestamp"):
                with suppress(ValueError):
                    found.add((instant(str(event.get(name))), int(size[2])))
    return sorted(found)


class Prometheus:
    """Asks the one at ``url`` for raw samples, each with the time of its scrape. Raises :class:`LabFault` where it can't."""

    def __init__(self, url: str, namespace: str) -> None:
        from prometheus_api_client import PrometheusConnect
        from urllib3.util import Retry

        self._url, self._namespace = url, namespace
        self._prometheus = PrometheusConnect(url=url.rstrip("/"), retry=Retry(1))

    def scrapes(
        self, scaled: ScaledObject, spec: HpaSpec, begin: float, end: float, query: str
    ) -> tuple[list[Sample], int | None]:
        """The samples of ``scaled``, whose HPA is ``spec``, and the number of partitions of ``query``, None without one.

        Its metrics are the sum of the ``query``'s series, else what the HPA's status shows, else KEDA's last answers. Raises
        :class:`InputError` where there are no replicas, or none of these.
        """
        if query and (len(scaled.triggers) > 1 or scaled.modifiers):
            kinds = [str(one["type"]) for one in scaled.content["spec"]["triggers"]]
            raise InputError(scaled.where, "spec.triggers", kinds, "one, without a formula: --query is of one lag")
        kind = scaled.content["spec"]["scaleTargetRef"].get("kind") or "Deployment"
        if kind not in SCALES:
            raise InputError(scaled.where, "spec.scaleTargetRef.kind", kind, " or ".join(SCALES))
        name, there, label = SCALES[kind]
        replicas = self._one(f'{name}{{{label}="{scaled.target}"', begin, end)
        if not replicas.times:
            said = f"no sample of {label} {self._namespace}/{scaled.target}"
            raise InputError("Prometheus", name, said, "those of kube-state-metrics")
        places = range(len(spec.metrics))
        if query:
            parts = partition_lags(scaled, self._raw(query, begin, end))
            total = _Sum(list(map(merged, parts.values())))
            return _some(_joined(total, replicas, [total])), len(parts)
        hpa = f'horizontalpodautoscaler="{scaled.hpa}"'
        status = self._known(f"{STATUS}target_metric{{{hpa}", begin, end)
        counts = tuple(self._one(f"{STATUS}{one}_replicas{{{hpa}", begin, end) for one in ("current", "desired"))
        if status and all(one.times for one in counts):
            counts = (*counts, self._one(f'{there}{{{label}="{scaled.target}"', begin, end))
            return _some(_joined(replicas, replicas, [_of_metric(status, spec, place) for place in places], counts)), None
        if scaled.modifiers:
            allowed = f"samples of {STATUS}target_metric: KEDA's own metric is of each trigger, and not of the formula"
            raise InputError("Prometheus", "the HPA's metric", "no sample", allowed)
        answers = self._known(f'keda_scaler_metrics_value{{scaledObject="{scaled.name}"', begin, end)
        shown = [_of_metric(answers, spec, place) for place in places]
        return _some(_joined(shown[0], replicas, shown)), None

    def _one(self, selector: str, begin: float, end: float) -> Curve:
        """The series that fit, which differ in the pod that was scraped, as one."""
        return merged([curve for _, curve in self._known(selector, begin, end)])

    def _known(self, selector: str, begin: float, end: float) -> Found:
        """The series that fit an open ``selector`` in the namespace, which a Prometheus without honorLabels renames."""
        for label in ("exported_namespace", "namespace"):
            if found := self._raw(f'{selector},{label}="{self._namespace}"}}', begin, end):
                return found
        return []

    def series(self, query: str, begin: float, end: float, every_s: float | None = None) -> Found:
        """The series that a selector ``query`` has, as they were scraped; an expression's answers, one in ``every_s``."""
        return self._raw(query, begin, end) if every_s is None else self._raw(f"({query})", begin, end, f":{every_s:g}s")

    def _raw(self, selector: str, begin: float, end: float, every: str = "") -> Found:
        from prometheus_api_client.exceptions import PrometheusApiClientException
        from requests.exceptions import RequestException

        query = f"{selector}[{math.ceil(end - begin)}s{every}]"
        try:
            answer: list[dict[str, Any]] = self._prometheus.custom_query(query, params={"time": end})
            return [
                (one["metric"], Curve([float(t) for t, _ in one["values"]], [float(value) for _, value in one["values"]]))
                for one in answer
            ]
        except (PrometheusApiClientException, RequestException, ValueError, KeyError) as error:
            raise LabFault(f"Prometheus at {self._url} does not answer {query}: {str(error)[:120]}") from error


class _Sum(Curve):
    """The sum of several curves, at the times of the first."""

    def __init__(self, curves: Sequence[Curve]) -> None:
        super().__init__(curves[0].times if curves else [])
        self._curves = curves

    def at(self, t: float, old_s: float = STALE_S) -> float | None:
        values = [curve.at(t, old_s) for curve in self._curves]
        known = [one for one in values if one is not None]
        return sum(known) if known else None


def own(labels: Mapping[str, str]) -> object:
    """What a series is of: a partition, whichever exporters show it; else what all its labels say."""
    known = renamed(labels)
    return (known.get("topic"), known["partition"]) if "partition" in known else tuple(sorted(labels.items()))


def renamed(labels: Mapping[str, str]) -> dict[str, str]:
    """``labels`` by their usual names."""
    return {RENAMED.get(name, name): value for name, value in labels.items()}


def partition_lags(scaled: ScaledObject, found: Found) -> dict[object, list[Curve]]:
    """The curves of each partition in ``found`` that the one trigger of ``scaled`` counts.

    An exporter shows -1 where nothing is committed. KEDA counts 1 there by offsetResetPolicy latest; by earliest it counts the
    log, which has no data. Raises :class:`InputError` for series of several groups or topics, unless the trigger names its own.
    """
    (trigger,) = scaled.triggers
    asked = trigger if isinstance(trigger, Kafka) else None
    group, topic = (asked.group.literal, asked.topic.literal) if asked else ("", "")
    for what, names, wanted in (("group", GROUPS, group), ("topic", ("topic",), topic)):
        usual = [renamed(labels) for labels, _ in found]
        of = [next((one[name] for name in names if name in one), "") for one in usual]
        if wanted in of:
            found = [one for one, its in zip(found, of, strict=True) if its == wanted]
        elif len({*of} - {""}) > 1 and (what == "group" or asked is None or wanted):
            several = ", ".join(sorted({*of} - {""}))
            raise InputError("command line", "--query", f"series of several {what}s: {several}", f"those of one {what}")
    unknown = 1.0 if asked and asked.offset_reset == "latest" else math.nan
    parts: dict[object, list[Curve]] = {}
    for labels, curve in found:
        values = [unknown if value < 0 else value for value in curve.values]
        parts.setdefault(own(labels), []).append(Curve(curve.times, values))
    return parts


def merged(curves: Iterable[Curve]) -> Curve:
    """The samples of all ``curves`` in order of time, one at each."""
    pairs = sorted({t: value for one in curves for t, value in zip(one.times, one.values, strict=True)}.items())
    return Curve([t for t, _ in pairs], [value for _, value in pairs])


def _of_metric(found: Found, spec: HpaSpec, place: int) -> Curve:
    """The curve of the metric at ``place``. A name that is read from a pod's environment is known by its index alone."""
    kind = "value" if spec.metrics[place].target == "Value" else "average"
    fitting = []
    for labels, curve in found:
        name = labels.get("metric_name") or labels.get("metric", "")
        fits = name == spec.metrics[place].name or name.startswith(f"s{place}-") or len(spec.metrics) == 1
        if fits and labels.get("metric_target_type", kind) == kind:
            fitting.append(curve)
    return merged(fitting)


def _joined(clock: Curve, replicas: Curve, shown: Sequence[Curve], status: tuple[Curve, ...] = ()) -> Iterator[Sample]:
    """A sample at each time of the ``clock`` at which the replicas are known: with what one scrape has of a ``status``."""
    for t in clock.times:
        wanted, counts = replicas.at(t), [one.at(t, SAME_S) for one in status]
        if wanted is not None and None not in counts[:2]:
            values = tuple(one.at(t, SAME_S if status else STALE_S) for one in shown)
            yield Sample(t, int(wanted), values, *(None if one is None else int(one) for one in counts))


def _some(found: Iterable[Sample]) -> list[Sample]:
    samples = list(found)
    if not samples:
        allowed = f"{STATUS}target_metric, keda_scaler_metrics_value, or a --query that selects an exporter's lag"
        raise InputError("Prometheus", "the HPA's metric", "no sample", allowed)
    return samples
