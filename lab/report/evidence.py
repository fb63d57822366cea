"""Evidence: what Allure is given of a trial, in a fixed order: verdicts, timeline, other charts, inputs, raw tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from itertools import pairwise
from typing import Any

import allure
import pandas as pd
from allure_commons.types import AttachmentType

from lab.measure import curves
from lab.measure.reaction import POLICY, Reaction
from lab.objective import Verdict
from lab.report.chart import Timeline, timeline
from lab.report.look import html, png
from lab.report.parts import breakdown
from lab.report.tables import verdict_table
from lab.trial.record import NoData, Record


def rows(verdicts: Sequence[Verdict], experiment: str, trials: Sequence[str]) -> list[dict[str, Any]]:
    """Verdicts as verdicts.json holds them."""
    return [{"experiment": experiment, **asdict(verdict), "trials": list(trials)} for verdict in verdicts]


def attach(record: Record, verdicts: Sequence[dict[str, Any]], reaction: Reaction | None, note: str) -> None:
    """Attach a trial's evidence to the running Allure test; ``note`` is the experiment's hypothesis and method."""
    _parameters(record)
    for phase, seconds in _phases(record):
        with allure.step(f"{phase}: {seconds:.1f} s"):
            pass
    table = verdict_table(verdicts)
    paragraphs = "".join(f"<p>{escape(part)}</p>" for part in note.strip().split("\n\n"))
    allure.dynamic.description_html(paragraphs + table)
    allure.attach(table, "1 verdicts", AttachmentType.HTML)
    try:
        chart = timeline(timeline_of(record))
        allure.attach(png(chart), "2 timeline (image)", AttachmentType.PNG)
        # Allure's preview runs no scripts: there this page shows its picture, saved and opened it zooms.
        allure.attach(html(chart), "2 timeline (interactive: download and open)", AttachmentType.HTML)
    except (NoData, ValueError) as missing:
        allure.attach(f"no data: {missing}", "2 timeline", AttachmentType.TEXT)
    if reaction is not None:
        allure.attach(png(breakdown_of(reaction)), "3 reaction, by part", AttachmentType.PNG)
    allure.attach(
        json.dumps(json.loads((record.folder / "measures.json").read_text()), indent=1), "4 measures", AttachmentType.JSON
    )
    for file in sorted((record.folder / "inputs").glob("*.yaml")):
        allure.attach.file(str(file), f"5 input: {file.name}", AttachmentType.YAML)
    allure.attach(json.dumps(record.trial, indent=1), "5 trial.json", AttachmentType.JSON)
    for file in sorted(record.folder.glob("*.parquet")):
        allure.attach.file(str(file), f"6 raw: {file.name}", "application/vnd.apache.parquet", file.suffix[1:])


def timeline_of(record: Record) -> Timeline:
    """The timeline's tables, in seconds since :func:`lab.measure.curves.zero`. Raises :class:`NoData` when a curve is missing."""
    zero = curves.zero(record)
    inputs = record.trial["inputs"]
    threshold = curves.policy(record).threshold
    phases = curves.phases(record)

    def since(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
        return frame.assign(**{name: frame[name] - zero for name in columns or ("t",)})

    replicas = curves.replicas(record).melt("t", ["desired", "current", "ready"], var_name="kind", value_name="replicas")
    return Timeline(
        title=f"{inputs['profile_name']} on policy {inputs['policy_name']}: lag, replicas, throughput",
        subtitle=(
            f"scale {record.trial['scale']}; {inputs['runtime']} runtime; P = {inputs['partitions']}, "
            f"{inputs['workload']['balancer']}, {f'lagThreshold {threshold:,} a replica' if threshold else 'no lagThreshold'}, seed {inputs['seed']}; "
            f"{record.trial['machine']['cores']} cores; {record.id}"
        ),
        lag=since(curves.lag(record)),
        lag_objective=threshold,
        replicas=since(replicas),
        throughput=since(_throughput(record)),
        spans=since(phases[~phases["label"].isin(["baseline", "drain", "lull"])], "start", "end"),
        marks=since(_marks(record)),
    )


def _throughput(record: Record, bin_s: float = 0.2) -> pd.DataFrame:
    """The group's rates, messages/s in the middle of each bin; a bin without messages is 0, which the table leaves out."""
    rates = record.rates
    rates = rates[(rates["bin_s"] == bin_s) & (rates["pod"] == "")]
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
    return breakdown(pd.DataFrame(table), bound=90.0, what="Reaction")


def _marks(record: Record) -> pd.DataFrame:
    scale = [
        {
            "t": change.t,
            "kind": "scale up" if change.after > change.before else "scale down",
            "label": f"{change.before}→{change.after}",
            "detail": "desired replicas",
        }
        for change in curves.scalings(record)
    ]
    moved = [
        {"t": t, "kind": "rebalance", "label": event, "detail": f"{pod}: {count} partitions {event}"}
        for t, pod, event, count, _ in curves.rebalances(record).itertuples(index=False, name=None)
        if count
    ]
    return pd.DataFrame(scale + moved, columns=["t", "kind", "label", "detail"]).sort_values("t", ignore_index=True)


def _phases(record: Record) -> list[tuple[str, float]]:
    """(phase, its length in s) in order; what follows the trial's end is closing the record."""
    times = {
        name if name != "ended" else "closing the record": at
        for name, at in record.trial["times"].items()
        if not name.endswith("_s")
    }
    marks = [*times.items(), ("end of record", float(record.trial["finished"]))]
    return [(name, later - at) for (name, at), (_, later) in pairwise(marks)]


def _parameters(record: Record) -> None:
    inputs = record.trial["inputs"]
    bounds = curves.policy(record)
    for name, value in {
        "P": inputs["partitions"],
        "most replicas allowed": bounds.ceiling,
        "lagThreshold": bounds.threshold,
        "balancer": inputs["workload"]["balancer"],
        "scale": record.trial["scale"],
        "cluster": inputs["runtime"],
        "seed": inputs["seed"],
        "trial": record.id,
    }.items():
        allure.dynamic.parameter(name, value)
