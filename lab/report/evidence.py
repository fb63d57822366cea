"""Evidence: what Allure is given of a trial, in a fixed order: verdicts, timeline, other charts, inputs, raw tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from html import escape
from typing import Any

import allure
import pandas as pd
import yaml
from allure_commons.types import AttachmentType

from lab.errors import NoData
from lab.judge.bounds import REACTION_S
from lab.measure.killed import killed
from lab.measure.overview import overview
from lab.measure.reaction import POLICY, Reaction
from lab.record.store import Record
from lab.report import attempts
from lab.report.chart import Timeline, timeline
from lab.report.compare import comparison_chart, comparison_table
from lab.report.look import html, png
from lab.report.parts import breakdown
from lab.report.tables import verdict_table

Chart = Callable[[], Any]


def attach(
    records: Mapping[str, Record],
    verdicts: Sequence[dict[str, Any]],
    note: str,
    charts: Mapping[str, Chart],
    measured: Sequence[Mapping[str, Mapping[str, float | None]]],
) -> None:
    """Attach the evidence of an experiment to the running Allure test.

    ``records`` by what the experiment calls them, ``note`` its hypothesis and method, ``charts`` and ``measured`` its own.
    """
    _parameters(next(iter(records.values())))
    for name, record in records.items():
        for phase, seconds in record.phase_lengths:
            with allure.step(f"{name}: {phase}: {seconds:.1f} s"):
                pass
    table = verdict_table(verdicts).html
    paragraphs = "".join(f"<p>{escape(part)}</p>" for part in note.strip().split("\n\n"))
    tables = "".join(comparison_table(one).html for one in measured)
    allure.dynamic.description_html(paragraphs + table + tables)
    allure.attach(table, "1 verdicts", AttachmentType.HTML)
    allure.attach(tables, "2 before and after", AttachmentType.HTML)
    if len(records) > 1:
        _draw(lambda: comparison_chart(compared(records), "Before and after", _subtitle(records)), "2 before and after (chart)")
    for name, make in charts.items():
        _draw(make, f"3 {name}")
    for name, record in records.items():
        _draw(partial(_timeline, record), f"4 timeline: {name}", page=len(records) == 1)
        allure.attach(
            yaml.safe_dump(record.policy.content, sort_keys=False), f"5 policy as applied: {name}", AttachmentType.YAML
        )
        allure.attach.file(str(record.folder / "trial.json"), f"5 trial.json: {name}", AttachmentType.JSON)
        for other, ended in attempts.others(record):
            allure.attach.file(
                str(other / "trial.json"), f"5 another attempt at {name}: {other.name}, {ended}", AttachmentType.JSON
            )
        allure.attach.file(str(record.folder / "measures.json"), f"6 measures: {name}", AttachmentType.JSON)
    if len(records) == 1:
        for file in sorted((record.folder / "inputs").glob("*.yaml")):
            allure.attach.file(str(file), f"5 input: {file.name}", AttachmentType.YAML)
        for file in sorted(record.folder.glob("*.parquet")):
            allure.attach.file(str(file), f"7 raw: {file.name}", "application/vnd.apache.parquet", file.suffix[1:])


def side_by_side(records: Mapping[str, Record]) -> dict[str, dict[str, float | None]]:
    """Each measure's value by trial, in the measures' order."""
    found = {name: overview(record) for name, record in records.items()}
    return {measure: {name: row[measure] for name, row in found.items()} for measure in next(iter(found.values()))}


def _timeline(record: Record) -> Any:
    return timeline(timeline_of(record))


def _draw(make: Chart, name: str, *, page: bool = True) -> None:
    """Attach a chart as an image and, with ``page``, as one to zoom; what can't be drawn says why."""
    try:
        chart = make()
        allure.attach(png(chart), f"{name} (image)", AttachmentType.PNG)
        if not page:
            return
        # Allure's preview runs no scripts: there this page shows its picture, saved and opened it zooms.
        allure.attach(html(chart), f"{name} (interactive: download and open)", AttachmentType.HTML)
    except (NoData, ValueError) as missing:
        allure.attach(f"no data: {missing}", name, AttachmentType.TEXT)


def compared(records: Mapping[str, Record]) -> pd.DataFrame:
    """The curves of several trials as comparison_chart takes them. Raises :class:`NoData` for a missing curve."""
    parts = []
    for name, record in records.items():
        begun = record.zero
        lag, replicas = record.lag, record.replicas
        rate = _throughput(record)
        rate = rate[rate["series"] == "consumed"]
        for panel, t, value in (
            ("lag", lag["t"] - begun, lag["lag"]),
            ("replicas", replicas["t"] - begun, replicas["desired"]),
            ("throughput", rate["t"] - begun, rate["rate"]),
        ):
            parts.append(pd.DataFrame({"trial": name, "panel": panel, "t": t, "value": value}))
    return pd.concat(parts, ignore_index=True)


def _subtitle(records: Mapping[str, Record]) -> str:
    first = next(iter(records.values())).inputs
    profiles = sorted({record.inputs.profile_name for record in records.values()})
    return f"profile {', '.join(profiles)}; scale {first.scale}; {first.runtime} runtime"


def timeline_of(record: Record) -> Timeline:
    """The timeline's tables, in seconds since :attr:`Record.zero`. Raises :class:`NoData` for a missing curve."""
    zero = record.zero
    inputs = record.inputs
    threshold = record.policy.lag_threshold
    asked = f"lagThreshold {threshold:,} a replica" if threshold else "no lagThreshold"
    phases = record.phases

    def since(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
        return frame.assign(**{name: frame[name] - zero for name in columns or ("t",)})

    replicas = record.replicas.melt("t", ["desired", "current", "ready"], var_name="kind", value_name="replicas")
    return Timeline(
        title=f"{inputs.profile_name} on policy {inputs.policy_name}: lag, replicas, throughput",
        subtitle=(
            f"scale {inputs.scale}; {inputs.runtime} runtime; P = {inputs.partitions}, "
            f"{inputs.workload.balancer}, {asked}, seed {inputs.seed}; "
            f"{record.trial.machine.cores} cores; {record.id}"
        ),
        lag=since(record.lag),
        lag_objective=threshold,
        replicas=since(replicas),
        throughput=since(_throughput(record)),
        spans=since(phases[~phases["label"].isin(["baseline", "drain", "lull"])], "start", "end"),
        marks=since(_marks(record)),
        faults=since(_faults(record), "start", "end"),
    )


def _throughput(record: Record, bin_s: float = 0.2) -> pd.DataFrame:
    """The group's rates, messages/s in the middle of each bin; a bin without messages is 0, which the table leaves out."""
    rates = record.rates
    rates = rates[(rates["bin_s"] == bin_s) & (rates["pod"] == "")]
    if rates.empty:
        raise NoData(f"no rates in bins of {bin_s:g} s")
    number = (rates["t"] / bin_s).round().astype("int64")
    counts = rates.assign(bin=number).pivot_table("messages", "bin", "series", "sum", fill_value=0.0)
    whole = counts.reindex(range(counts.index.min(), counts.index.max() + 1), fill_value=0.0).iloc[1:-1]  # ends are cut bins
    table = (whole / bin_s).rename_axis("bin").reset_index().melt("bin", var_name="series", value_name="rate")
    return table.assign(t=(table["bin"] + 0.5) * bin_s)[["t", "series", "rate"]]


def breakdown_of(reaction: Reaction) -> Any:
    """The reaction's parts as a chart."""
    groups = {"lag crosses": "traffic", POLICY: "policy", "pod created": "Kubernetes", "process started": "Kubernetes"}
    groups |= {"pod Ready": "consumer start", "partitions assigned": "rebalance", "first receipt": "work"}
    table = [{"part": part, "seconds": seconds, "group": groups[part]} for part, seconds in reaction.parts.items()]
    return breakdown(pd.DataFrame(table), bound=float(REACTION_S), what="Reaction")


def _marks(record: Record) -> pd.DataFrame:
    scale: list[dict[str, object]] = [
        {
            "t": change.t,
            "kind": "scale up" if change.after > change.before else "scale down",
            "label": f"{change.before}→{change.after}",
            "detail": "desired replicas",
        }
        for change in record.scalings
    ]
    moved: list[dict[str, object]] = [
        {"t": t, "kind": "rebalance", "label": event, "detail": f"{pod}: {len(partitions)} partitions {event}"}
        for t, pod, event, partitions in record.handovers
        if partitions
    ]
    return pd.DataFrame(scale + moved, columns=["t", "kind", "label", "detail"]).sort_values("t", ignore_index=True)


def _faults(record: Record) -> pd.DataFrame:
    """One bar per fault, from the kill until every partition of the killed consumer is being processed again, by any pod."""
    rows = [(one.t, one.t + 1, one.fault) for one in record.trial.faults]
    if len(rows) == 1:
        with suppress(NoData):
            start, _, label = rows[0]
            rows = [(start, start + (killed(record).standstill_s.number or 1), label)]
    return pd.DataFrame(rows, columns=["start", "end", "label"])


def _parameters(record: Record) -> None:
    inputs = record.inputs
    for name, value in {
        "P": inputs.partitions,
        "most replicas allowed": record.policy.max_replicas,
        "lagThreshold": record.policy.lag_threshold,
        "balancer": inputs.workload.balancer,
        "scale": str(inputs.scale),
        "cluster": inputs.runtime,
        "seed": inputs.seed,
        "trial": record.id,
    }.items():
        allure.dynamic.parameter(name, value)
