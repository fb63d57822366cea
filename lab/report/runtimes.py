"""The same trials on two runtimes: which records belong together, and every figure of a pair. Pure but for reading records.

Two records are a pair when their inputs are equal but for the runtime; those that differ in the repetition alone are runs of
one side. Each figure is a measure's own; what a record has no data for is left out and shown as n/a, never as 0.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any
from zlib import crc32

from lab.errors import InputError, NoData
from lab.inputs.inputs import REPLAYED, Inputs
from lab.inputs.steps import ReplicaSteps
from lab.measure.cores import control_plane_cpu, machine_cpu, pod_runtime_cpu
from lab.measure.dip import dips, median_step, worst_step
from lab.measure.overview import overview
from lab.measure.reaction import PARTS, cold_start, reaction
from lab.record.store import Record, opened, stored

BASE = "binary"  # ratios are of the other runtime to this one
LOST = "lost or unseen"
BETWEEN_RUNS = ("runtime", "repetition")

Figures = dict[str, float]


@dataclass(frozen=True)
class Row:
    """One figure of a pair: its ``part`` and ``name`` with its unit, and by runtime the values of the runs that have it."""

    part: str
    name: str
    values: Mapping[str, tuple[float, ...]]

    def middle(self, runtime: str) -> float | None:
        """The median over the runs on ``runtime``; None if none has it."""
        return median(self.values[runtime]) if self.values[runtime] else None


@dataclass(frozen=True)
class Pair:
    """One trial on both runtimes: its ``name``, and by runtime its runs in order of repetition."""

    name: str
    runs: Mapping[str, tuple[Record, ...]]

    @property
    def inputs(self) -> Inputs:
        """The inputs, which but for runtime and repetition are those of every run."""
        return next(iter(self.runs.values()))[0].inputs

    def withheld(self, part: str, name: str) -> bool:
        """Whether the figure is no result here.

        In a trial of decreed steps the backlog and the replicas are given; in one that ends with lag what is left of it is
        not lost.
        """
        if isinstance(self.inputs.policy, ReplicaSteps) and (part, name) in GIVEN:
            return True
        return name == LOST and self.inputs.until == REPLAYED

    @cached_property
    def _measured(self) -> dict[str, list[tuple[dict[str, Figures], dict[str, str]]]]:
        return {runtime: [measured(record) for record in records] for runtime, records in self.runs.items()}

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Every figure that any run has, in the order of display."""
        found = {runtime: [figures for figures, _ in runs] for runtime, runs in self._measured.items()}
        names: dict[tuple[str, str], None] = {}
        for part in MEASURED:
            for figures in (one[part] for runs in found.values() for one in runs if part in one):
                names |= dict.fromkeys((part, name) for name in figures)
        return tuple(
            Row(part, name, {runtime: _values(runs, part, name) for runtime, runs in found.items()}) for part, name in names
        )

    @cached_property
    def lacking(self) -> dict[str, dict[str, str]]:
        """Why a part is n/a, by part and runtime, for the parts that no run on that runtime has."""
        gaps: dict[str, dict[str, str]] = {}
        for runtime, runs in self._measured.items():
            for part in MEASURED:
                if all(part in lacking for _, lacking in runs):
                    gaps.setdefault(part, {})[runtime] = runs[0][1][part]
        return gaps


@dataclass(frozen=True)
class Comparison:
    """``runtimes`` (the base of ratios first), the ``pairs``, and the ids left out: without a counterpart, or unfinished."""

    runtimes: tuple[str, str]
    pairs: tuple[Pair, ...]
    alone: Mapping[str, tuple[str, ...]]
    unfinished: tuple[str, ...]


def compare(first: Path, second: Path) -> Comparison:
    """Pair the finished records under two folders (``results`` or ``results/records``), one runtime in each.

    Raises :class:`InputError` for a folder without finished records, with records of several runtimes, for the same runtime
    in both, and when no two records are equal but for the runtime.
    """
    folders: dict[str, Path] = {}
    found: dict[str, list[Record]] = {}
    unfinished: list[str] = []
    for folder in (first, second):
        finished, others = _records(folder)
        runtime = _runtime(folder, finished)
        if runtime in found:
            allowed = f"records of another runtime than those in {folders[runtime]}"
            raise InputError(folder, "runtime", runtime, allowed)
        found[runtime], folders[runtime] = finished, folder
        unfinished += others
    one, two = sorted(found, key=lambda runtime: runtime != BASE)
    by_key = {runtime: _by_key(records) for runtime, records in found.items()}
    keys = [key for key in by_key[one] if key in by_key[two]]
    if not keys:
        allowed = f"at least one record whose inputs but for the runtime are those of one in {folders[one]}"
        raise InputError(folders[two], "records", f"{len(found[two])} without a counterpart", allowed)
    names = _names([by_key[one][key][0].inputs for key in keys])
    runs = [{runtime: by_key[runtime][key] for runtime in (one, two)} for key in keys]
    alone = {
        runtime: tuple(record.id for key, records in by_key[runtime].items() if key not in keys for record in records)
        for runtime in (one, two)
    }
    pairs = tuple(Pair(name, run) for name, run in sorted(zip(names, runs, strict=True), key=lambda item: item[0]))
    return Comparison((one, two), pairs, alone, tuple(unfinished))


def _records(folder: Path) -> tuple[list[Record], list[str]]:
    """The finished records under ``folder``, and the ids of those that a fault or a user ended."""
    finished, others = [], []
    for path in stored(folder).values():
        record = Record(path)
        if record.finished:
            finished.append(opened(path))
        else:
            others.append(f"{record.id} ({record.inputs.runtime}): {record.trial.ended}")
    if not finished:
        found = f"{len(others)} unfinished" if others else "none"
        raise InputError(
            folder, "records", found, "a folder of results with at least one finished record (records/*/trial.json)"
        )
    return finished, others


def _runtime(folder: Path, records: Iterable[Record]) -> str:
    runtimes = sorted({record.inputs.runtime for record in records})
    if len(runtimes) > 1:
        raise InputError(folder, "runtime", ", ".join(runtimes), "records of one runtime in each folder")
    return runtimes[0]


def _by_key(records: Iterable[Record]) -> dict[str, tuple[Record, ...]]:
    """The runs of each trial in order of repetition, by their inputs without what may differ."""
    found: dict[str, list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.inputs.repetition):
        found[replace(record.inputs, runtime=BASE, repetition=1).id].append(record)
    return {key: tuple(runs) for key, runs in found.items()}


def _names(inputs: Sequence[Inputs]) -> list[str]:
    """A name for each: profile and policy, and where those are the same what else tells the trials apart."""
    alike: dict[tuple[str, str], list[int]] = defaultdict(list)
    for n, one in enumerate(inputs):
        alike[one.profile_name, one.policy_name].append(n)
    names = [""] * len(inputs)
    for (profile, policy), places in alike.items():
        flat = {n: _settings(inputs[n]) for n in places}
        every = dict.fromkeys(name for one in flat.values() for name in one)
        telling = [name for name in every if len({flat[n].get(name) for n in places}) > 1]
        for n in places:
            told = ", ".join(f"{name} {flat[n].get(name)}" for name in telling)
            names[n] = f"{profile}, {policy}" + (f" ({told})" if told else "")
    return names


def _settings(inputs: Inputs) -> dict[str, str]:
    """The settings of a workload by their names, and every other input whole, but for what differs between runs."""
    return {name: _short(value) for name, value in inputs.settings().items() if name not in BETWEEN_RUNS}


def _short(value: Any) -> str:
    """A setting as a name can hold it: a scale by its own name, any other structure by a checksum that tells it apart."""
    if isinstance(value, Mapping) and "name" in value:
        return str(value["name"])
    if isinstance(value, Mapping | list):
        return f"#{crc32(json.dumps(value, sort_keys=True).encode()):08x}"
    return str(value)


def measured(record: Record) -> tuple[dict[str, Figures], dict[str, str]]:
    """The figures of a record by part and name, and for the parts it has no data for the reason."""
    found: dict[str, Figures] = {}
    gaps: dict[str, str] = {}
    row = overview(record)
    for part, figures in MEASURED.items():
        try:
            known = {name: float(value) for name, value in figures(record, row).items() if value is not None}
            if not known:
                raise NoData("the record has none of these figures")
            found[part] = known
        except NoData as missing:
            gaps[part] = str(missing)
    return found, gaps


def _values(runs: Iterable[Mapping[str, Figures]], part: str, name: str) -> tuple[float, ...]:
    return tuple(one[part][name] for one in runs if name in one.get(part, {}))


Overview = Mapping[str, float | None]
Measure = Callable[[Record, Overview], Mapping[str, float | None]]


def _reaction(record: Record, _: Overview) -> Figures:
    found = reaction(record)
    return {f"{part} (s)": found.parts[part] for part in PARTS} | {"total (s)": found.total_s.number}


def _cold_start(record: Record, _: Overview) -> Figures:
    found = cold_start(record)
    return {
        "start, created to subscribed (s)": found.start.number,
        "join, to the first partition (s)": found.join.number,
        "total, to the first receipt (s)": found.total.number,
        "total of the slowest pod (s)": found.slowest.number,
        "pods": found.pods.number,
    }


def _dip(kind: str) -> Measure:
    def figures(record: Record, _: Overview) -> Figures:
        steps = dips(record)
        middle, worst = median_step(steps, kind), worst_step(steps, kind)
        return {
            "depth over 1 s, median step (%)": middle.depth_1s.number * 100,
            "depth over 1 s, worst step (%)": worst.depth_1s.number * 100,
            "recovery, median step (s)": middle.recovery_s.number,
            "recovery, worst step (s)": worst.recovery_s.number,
            "steps": middle.steps.number,
        }

    return figures


def _cores(record: Record, _: Overview) -> dict[str, float | None]:
    found = {"machine": machine_cpu, "control plane": control_plane_cpu, "what runs the pods": pod_runtime_cpu}
    return {f"{name} (cores)": measure(record).value for name, measure in found.items()}


def _of_overview(*names: str) -> Measure:
    return lambda _, row: {name: row[name] for name in names}


# In the order of display; every unit is in the name.
MEASURED: dict[str, Measure] = {
    "Reaction": _reaction,
    "Cold start, median pod": _cold_start,
    "Replicas": _of_overview("most replicas (pods)", "scale-ups", "scale-downs", "flips"),
    "Lag, drain, throughput": _of_overview(
        "peak lag (messages)",
        "lag back at one lagThreshold after (s)",
        "peak consume rate (messages/s)",
        "mean consume rate while lag > 0 (messages/s)",
    ),
    "Rebalance": _of_overview("rebalances", "median rebalance (s)", "longest rebalance (s)"),
    "Dip, scale-up": _dip("up"),
    "Dip, scale-down": _dip("down"),
    "Dip, control": _dip("control"),
    "Integrity (messages)": _of_overview("produced", "processed", LOST, "processed more than once"),
    "Cost": _of_overview("pod-minutes", "idle share of pod time"),
    "CPU while the trial was driven": _cores,
}
# Figures that a trial of decreed steps is given.
GIVEN = {
    ("Lag, drain, throughput", "peak lag (messages)"),
    ("Lag, drain, throughput", "lag back at one lagThreshold after (s)"),
    ("Replicas", "flips"),
    ("Cost", "pod-minutes"),
}


def ratio(first: float | None, second: float | None) -> float | None:
    """``second / first``; None where either is missing or infinite, or the base is not above 0."""
    if first is None or second is None or not 0 < first < float("inf") or second in (float("inf"), float("-inf")):
        return None
    return second / first
