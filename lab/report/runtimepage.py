"""The page that sets the same trials on two runtimes side by side: what is compared, how far it agrees, every pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from PIL import Image

from lab.errors import NoData
from lab.host.machine import Machine
from lab.measure.dip import dips, traces
from lab.record.store import Record
from lab.report import blocks, runtimecharts, runtimes, trust
from lab.report.blocks import Block, Contents, Facts, Heading, Picture, Table, Text
from lab.report.compare import comparison_chart
from lab.report.dips import dip_bars, dip_traces
from lab.report.evidence import compared
from lab.report.look import png
from lab.report.runtimes import (
    COLD,
    COST,
    DECREED,
    INTEGRITY,
    LAG,
    MEASURED,
    REACTION,
    REPLICAS,
    UNDRAINED,
    UP,
    Comparison,
    Pair,
    Row,
    ratio,
)
from lab.report.tables import number

IMAGE_SCALE = 1.4
NOT_HARDWARE = ("load",)
ARROW = " → "
# The figures of the summary's tables: column, part, figure; "points" are compared by their difference, counts as they are.
Column = tuple[str, str, str, str]
TIMES: tuple[Column, ...] = (
    ("reaction (s)", REACTION, runtimes.TOTAL, "ratio"),
    ("KEDA and HPA decide (s)", REACTION, "KEDA and HPA decide (s)", "ratio"),
    ("cold start (s)", COLD, runtimes.WORKING, "ratio"),
    ("drain (s)", LAG, runtimes.DRAIN, "ratio"),
    ("dip up, worst (%)", UP, runtimes.WORST, "points"),
)
AMOUNTS: tuple[Column, ...] = (
    ("peak lag (messages)", LAG, runtimes.PEAK, "ratio"),
    ("messages/s while lag > 0", LAG, runtimes.RATE, "ratio"),
    ("pod-minutes", COST, runtimes.POD_MINUTES, "ratio"),
    ("flips", REPLICAS, runtimes.FLIPS, "count"),
    ("lost or unseen", INTEGRITY, runtimes.LOST, "count"),
    ("doubled", INTEGRITY, runtimes.DOUBLED, "count"),
)


def write(comparison: Comparison, page: Path) -> tuple[Path, Path]:
    """Write the page and, beside it, its tables as Markdown; returns both files. ``page`` ends in ``.html``."""
    title = "The same trials on {} and on {}".format(*comparison.runtimes)
    content = list(document(comparison, title))
    twin = page.with_suffix(".md")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(blocks.html(title, content), encoding="utf-8")
    twin.write_text(blocks.text(content), encoding="utf-8")
    return page, twin


def document(comparison: Comparison, title: str) -> Iterator[Block]:
    """The page's blocks in order."""
    base, other = comparison.runtimes
    anchors = {pair.name: f"trial-{n}" for n, pair in enumerate(comparison.pairs, 1)}
    yield Heading(1, title)
    yield Text(_scope(comparison))
    yield Text(trust.told_by_runs(comparison))
    machines = {runtime: [record.trial.machine for record in _records(comparison, runtime)] for runtime in (base, other)}
    yield Text(trust.shared_machine(machines))
    yield Heading(2, "Summary", "summary")
    yield from _summary(comparison)
    yield Text(
        f"Each cell: {other} / {base} (dips: the difference in percentage points), in brackets {base}{ARROW}{other}; counts as "
        "they are. decreed: given by the trial, not a result. not drained: it ended with lag, as it was meant to. n/a: the "
        "record has no data for it."
    )
    yield from _drawn(lambda: runtimecharts.ratios(comparison), f"Ratio {other} / {base} of each figure")
    yield from _drawn(lambda: runtimecharts.reactions(comparison), "Reaction by part on both runtimes")
    yield Heading(2, "How far the embedded default can be trusted", "trust")
    for topic in trust.topics(comparison):
        yield Heading(3, topic.heading)
        yield Text("", topic.show[0])
        if topic.show[1:]:
            yield Facts(topic.show[1:])
        yield Text(topic.why, "Why it may differ.")
    yield Heading(2, "Versions and machine", "versions")
    yield from _environment(comparison, machines)
    yield Heading(2, "Trials", "trials")
    yield Contents(tuple((anchor, name) for name, anchor in anchors.items()))
    for pair in comparison.pairs:
        yield from _pair(pair, comparison.runtimes, anchors[pair.name])
    yield from _left_out(comparison)


def _scope(comparison: Comparison) -> str:
    base, other = comparison.runtimes
    count = len(comparison.pairs)
    trials = "1 trial" if count == 1 else f"{count} trials"
    scales = sorted({str(record.scale) for record in _records(comparison, base)})
    return (
        f"{trials}, each run on both runtimes with inputs that are equal in everything else: profile, policy, workload, seed, "
        f"partitions and scale ({', '.join(scales)}). On {base} pods are local processes on loopback; on {other} they are "
        "containers in a cluster of containers. Both columns are computed by the same code from the records."
        if (base, other) == ("binary", "kind")
        else f"{trials} on {base} and {other}, with inputs that are equal in everything else."
    )


def _records(comparison: Comparison, runtime: str) -> Iterator[Record]:
    for pair in comparison.pairs:
        yield from pair.runs[runtime]


def _summary(comparison: Comparison) -> Iterator[Table]:
    for columns, decided in ((TIMES, True), (AMOUNTS, False)):
        head = ("trial", *(("replica sequence",) if decided else ()), *(name for name, *_ in columns))
        rows = tuple(_summed(pair, comparison.runtimes, columns, decided=decided) for pair in comparison.pairs)
        yield Table(head, rows, frozenset(range(1 + decided, len(head))))


def _summed(pair: Pair, names: tuple[str, str], columns: tuple[Column, ...], *, decided: bool) -> tuple[str, ...]:
    cells = [pair.withheld(part, figure) or _brief(pair.row(part, figure), names, how) for _, part, figure, how in columns]
    if not decided:
        return (pair.name, *cells)
    found = trust.decisions(pair)
    return (pair.name, trust.agreement(found[names[0]], found[names[1]]) if pair.autoscaled else DECREED, *cells)


def _brief(row: Row | None, names: tuple[str, str], how: str) -> str:
    """A figure of the summary: the ratio (or the difference in points) and both values; n/a if neither side has it."""
    one, two = (row.middle(name) if row else None for name in names)
    if one is None and two is None:
        return "n/a"
    both = f"{_rounded(one)}{ARROW}{_rounded(two)}"
    if how == "count":
        return both
    if how == "points":
        return f"{_difference(one, two)} ({both})"
    return f"{_rounded(ratio(one, two))} ({both})"


def _environment(comparison: Comparison, machines: Mapping[str, list[Machine]]) -> Iterator[Block]:
    base, other = comparison.runtimes
    versions = {
        runtime: _seen([record.trial.versions for record in _records(comparison, runtime)]) for runtime in (base, other)
    }
    hardware = {
        runtime: _seen([{k: v for k, v in asdict(one).items() if k not in NOT_HARDWARE} for one in machines[runtime]])
        for runtime in (base, other)
    }
    names = list(dict.fromkeys([*versions[base], *versions[other]]))
    unlike = [name for name in names if not _equal(versions[base].get(name), versions[other].get(name))]
    same = [name for name in names if name not in unlike]
    if not names:
        yield Text("The records name no versions.")
    elif unlike:
        yield Text(
            f"{len(same)} of {len(names)} versions are equal on both runtimes; different, or known on one side only: "
            f"{', '.join(unlike)}."
        )
    else:
        yield Text(f"All {len(names)} versions are equal on both runtimes.")
    rows = [
        (name, own[base].get(name, "n/a"), own[other].get(name, "n/a"))
        for own, known in ((versions, [*unlike, *same]), (hardware, list(dict.fromkeys([*hardware[base], *hardware[other]]))))
        for name in known
    ]
    if rows:
        told = tuple((*row, "same" if _equal(*row[1:]) else "differs") for row in rows)
        yield Table(("version or machine", base, other, ""), told)


def _equal(one: str | None, two: str | None) -> bool:
    """Whether two versions are one: images are tagged ``v1.2.3`` where modules are 1.2.3."""
    return one is not None and two is not None and one.removeprefix("v") == two.removeprefix("v")


def _seen(contents: list[Mapping[str, Any]]) -> dict[str, str]:
    """Every value that the records of a runtime have for each name, in order."""
    names = dict.fromkeys(name for one in contents for name in one)
    return {name: "; ".join(dict.fromkeys(str(one[name]) for one in contents if name in one)) for name in names}


def _pair(pair: Pair, names: tuple[str, str], anchor: str) -> Iterator[Block]:
    base, other = names
    yield Heading(2, pair.name, anchor)
    yield Facts(tuple(_told(pair)))
    found = trust.decisions(pair)
    who = "asked for by the autoscaler" if pair.autoscaled else DECREED
    for name in names:
        runs = list(dict.fromkeys(map(str, found[name])))
        yield Text(f"{' or '.join(runs) or 'n/a'}", f"Replicas {who} on {name}:")
    yield from _drawn(
        lambda: comparison_chart(compared(pair.first), pair.name, f"{base} and {other}; the first run of each"),
        f"Lag, replicas and consumed rate of {pair.name} on both runtimes",
    )
    yield Table(
        ("part", "figure", base, other, f"{other} - {base}", f"{other} / {base}"),
        tuple(_rows(pair, names)),
        frozenset({2, 3, 4, 5}),
    )
    if any(record.trial.steps for record in pair.first.values()):
        yield from _drawn(lambda: _bars(pair), f"Depth of each step's dip in {pair.name} on both runtimes")
        yield from _drawn(lambda: _traces(pair), f"Consumed rate around each step of {pair.name} on both runtimes")


def _told(pair: Pair) -> Iterator[str]:
    """Which records, how they ended, and how busy the machine was when they began."""
    for runtime, records in pair.runs.items():
        for record in records:
            load = record.trial.machine.load[0]
            yield f"{runtime}: {record.id}, {record.trial.ended}, load average {load:.2f} at its start"


def _rows(pair: Pair, names: tuple[str, str]) -> Iterator[tuple[str, ...]]:
    base, other = names
    for part in MEASURED:
        own = [row for row in pair.rows if row.part == part]
        for n, row in enumerate(own):
            if (why := pair.withheld(part, row.name)) == UNDRAINED:
                yield (part if n == 0 else "", row.name, why, why, "", "")
                continue
            one, two = row.middle(base), row.middle(other)
            values = [_values(row.values[name]) for name in names]
            yield (part if n == 0 else "", row.name, *values, _difference(one, two), _rounded(ratio(one, two)))
        reasons = pair.lacking.get(part, {})
        if not own:
            why = "; ".join(dict.fromkeys(reasons.values()))
            yield (part, f"n/a: {why}", "n/a", "n/a", "n/a", "n/a")
        elif reasons:
            yield ("", "; ".join(f"{name} n/a: {why}" for name, why in reasons.items()), "", "", "", "")


def _values(values: tuple[float, ...]) -> str:
    """One run's value; of several the median, the least and the most."""
    if len(values) < 2:
        return _rounded(values[0] if values else None)
    least, most = _rounded(min(values)), _rounded(max(values))
    spread = f"{least} to {most}, " if least != most else ""
    return f"{_rounded(median(values))} ({spread}n = {len(values)})"


def _rounded(value: float | None) -> str:
    """A value with what can be told of a trial: two decimals below a hundred, none from there on."""
    if value is None:
        return number(None)
    return number(round(value, 2 if abs(value) < 100 else 0))


def _difference(one: float | None, two: float | None) -> str:
    if one is None or two is None or float("inf") in (one, two):
        return number(None)
    apart = round(two, 2) - round(one, 2)
    return ("+" if apart > 0 else "") + _rounded(apart)


def _bars(pair: Pair) -> Any:
    table = pd.DataFrame(
        [vars(dip) | {"configuration": name} for name, runs in pair.runs.items() for run in runs for dip in dips(run)]
    )
    table["recovery_s"] = table["recovery_s"].replace(float("inf"), float("nan"))  # never back
    return dip_bars(table, title="Depth of the dip, by step, on both runtimes")


def _traces(pair: Pair) -> Any:
    frames = [traces(run).assign(configuration=name) for name, run in pair.first.items()]
    return dip_traces(
        pd.concat(frames, ignore_index=True),
        "Consumed rate around each step",
        "share of the rate before it; the first run of each",
    )


def _drawn(make: Callable[[], Any], what: str) -> Iterator[Block]:
    """The chart as an image; what can't be drawn says why."""
    try:
        yield Picture(_small(png(make(), IMAGE_SCALE)), what)
    except (NoData, ValueError) as missing:
        yield Text(f"{what}: n/a, {missing}.")


def _small(image: bytes) -> bytes:
    """The same pixels in fewer bytes: the renderer packs for speed, a page of many images wants size."""
    packed = BytesIO()
    Image.open(BytesIO(image)).save(packed, "PNG", optimize=True)
    return packed.getvalue()


def _left_out(comparison: Comparison) -> Iterator[Block]:
    told = [f"{runtime}, no counterpart: {identity}" for runtime, ids in comparison.alone.items() for identity in ids]
    told += [f"unfinished: {one}" for one in comparison.unfinished]
    if told:
        yield Heading(2, "Records left out", "left-out")
        yield Facts(tuple(told))
