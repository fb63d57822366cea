"""The tables that charts draw of a record: the timeline's and the comparison's. Pure: records in, tables out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any

import pandas as pd

from lab.charts.timeline import Timeline
from lab.errors import NoData
from lab.judge.gates import SCRAPE_GAP
from lab.measure.kills import consumer_kill
from lab.record.store import Record

DECREE = "decree"
SHORTEST_S = 1.0  # a shorter bar could not be seen
OUTCOME = ("t", "until", "due", "phase", "event", "result")  # of a row of the trial's events, all but its fields


def timeline_of(record: Record) -> Timeline:
    """The timeline's tables, in seconds since :attr:`Record.zero`. Raises :class:`NoData` for a missing curve."""
    inputs, phases, threshold = record.inputs, record.phases, record.policy.lag_threshold
    asked = f"lagThreshold {threshold:,} a replica" if threshold else "no lagThreshold"

    def since(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
        return frame.assign(**{name: frame[name] - record.zero for name in columns or ("t",)})

    replicas = record.replicas.melt("t", ["desired", "current", "ready"], var_name="kind", value_name="replicas")
    return Timeline(
        title=f"{inputs.profile_name} on policy {inputs.policy_name}: lag, replicas, throughput",
        subtitle=(
            f"scale {inputs.scale}; {inputs.runtime} runtime; P = {inputs.partitions}, "
            f"{inputs.workload.balancer}, {asked}, seed {inputs.seed}; "
            f"{record.trial.machine.cores} cores; {record.id}"
        ),
        lag=since(_lag(record)),
        lag_objective=threshold,
        replicas=since(replicas),
        throughput=since(_throughput(record)),
        spans=since(phases[~phases["label"].isin(["baseline", "drain", "lull"])], "start", "end"),
        marks=since(_marks(record)),
        events=since(_events(record), "start", "end"),
    )


def _lag(record: Record) -> pd.DataFrame:
    """The curve of lag, with an empty row in the midst of each time for which it was not seen for longer than a gate allows."""
    lag = record.lag
    gaps = lag["t"].diff()
    wide = gaps > SCRAPE_GAP * gaps[gaps > 0].median()
    unseen = pd.DataFrame({"t": (lag["t"] - gaps / 2)[wide], "lag": float("nan")})
    return pd.concat([lag, unseen]).sort_values("t", ignore_index=True) if len(unseen) else lag


def _throughput(record: Record) -> pd.DataFrame:
    """The group's rates, messages/s in the middle of each bin; a bin without messages is 0, which the table leaves out."""
    bin_s, rates = 0.2, record.rates
    rates = rates[(rates["bin_s"] == bin_s) & (rates["pod"] == "")]
    if rates.empty:
        raise NoData(f"no rates in bins of {bin_s:g} s")
    number = (rates["t"] / bin_s).round().astype("int64")
    counts = rates.assign(bin=number).pivot_table("messages", "bin", "series", "sum", fill_value=0.0)
    whole = counts.reindex(range(counts.index.min(), counts.index.max() + 1), fill_value=0.0).iloc[1:-1]  # ends are cut bins
    table = (whole / bin_s).rename_axis("bin").reset_index().melt("bin", var_name="series", value_name="rate")
    return table.assign(t=(table["bin"] + 0.5) * bin_s)[["t", "series", "rate"]]


def compared_runs(runs: Mapping[str, Sequence[Record]]) -> pd.DataFrame:
    """The curves of every run of several trials as comparison_chart takes them, with the number of the ``run`` from 0.

    Raises :class:`NoData` for a missing curve.
    """
    parts = []
    for name, number, record in ((name, n, record) for name, several in runs.items() for n, record in enumerate(several)):
        rate = _throughput(record).query("series == 'consumed'")
        for panel, curve, column in (
            ("lag", record.lag, "lag"),
            ("replicas", record.replicas, "desired"),
            ("throughput", rate, "rate"),
        ):
            values = {"trial": name, "panel": panel, "t": curve["t"] - record.zero, "value": curve[column], "run": number}
            parts.append(pd.DataFrame(values))
    return pd.concat(parts, ignore_index=True)


def by_trial(records: Mapping[str, Record]) -> dict[str, list[Record]]:
    """The runs of each trial; those of one are called by its name and " #1", " #2" and so on."""
    runs: dict[str, list[Record]] = {}
    for name, record in records.items():
        runs.setdefault(name.rpartition(" #")[0] or name, []).append(record)
    return runs


def duets(runs: Mapping[str, Sequence[Record]]) -> list[tuple[str, str]]:
    """The names of the trials that are the two sides of one duet, run by run."""
    others = {name: [one.trial.duet.other if one.trial.duet else "" for one in several] for name, several in runs.items()}
    return [
        (one, other)
        for one, other in combinations(runs, 2)
        if all(others[one]) and others[one] == [record.name for record in runs[other]]
    ]


def _marks(record: Record) -> pd.DataFrame:
    rows = [
        (one.t, "scale up" if one.after > one.before else "scale down", f"{one.before}→{one.after}", "desired replicas")
        for one in record.scalings
    ]
    rows += [
        (one.t, "rebalance", one.event, f"{one.pod}: {len(one.partitions)} partitions {one.event}")
        for one in record.handovers
        if one.partitions
    ]
    return pd.DataFrame(rows, columns=["t", "kind", "label", "detail"]).sort_values("t", ignore_index=True)


def _events(record: Record) -> pd.DataFrame:
    """One bar per event of the trial with its name and fields, for at least one second; a decreed step is a mark of scaling.

    So has each fault that its schedule injected, until it was taken back. The bar of a trial's one kill lasts
    until every partition of the killed consumer is processed again, by any pod.
    """
    happened = [row for row in record.trial.events if row["event"] != DECREE]
    rows = [(row["t"], max(row["until"], row["t"] + SHORTEST_S), _label(row)) for row in happened]
    if not record.trial.events:  # a record of before the events were kept has its kills
        rows = [(one.t, one.t + SHORTEST_S, one.fault) for one in record.trial.faults if one.injection is None]
    struck = [one for one in record.trial.faults if one.injection is not None and not one.skipped]
    rows += [(one.t, max(one.until or one.t, one.t + SHORTEST_S), f"{one.fault} {one.component}") for one in struck]
    if len(record.trial.faults) == 1:
        kill = record.trial.faults[0]
        with suppress(NoData):
            back = kill.t + (consumer_kill(record).standstill_s.number or SHORTEST_S)
            rows = [(start, back if start == kill.t else end, label) for start, end, label in rows]
    return pd.DataFrame(rows, columns=["start", "end", "label"])


def _label(row: Mapping[str, Any]) -> str:
    """The name of an event and its fields, as in "grow 48"."""
    fields = [str(value) for name, value in row.items() if name not in OUTCOME]
    return " ".join([str(row["event"]).replace("_", " "), *fields])
