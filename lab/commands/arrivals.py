"""What ``profile`` reads: the traffic that a CSV file has, or that a Prometheus saw.

Times are epoch s. What of the samples can't be used is an error, all of them at once; what can be, with a loss, is a note.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from lab import yamlfile
from lab.commands import scrapes
from lab.commands.scrapes import MOMENT, Curve
from lab.errors import InputError, NoData, report, together
from lab.foresee import traffic
from lab.foresee.group import Floats
from lab.foresee.traffic import GAP, SECOND_DIGITS, Traffic
from lab.inputs.profile import MAX_SECONDS
from lab.number_format import many

RATE, COUNTER, TIME, TIME_MS = "rate", "counter", "time", "time_ms"
HEAD = f"{TIME},{RATE} (messages/s), {TIME},{COUNTER} (messages so far), or {TIME} alone, a line a message; {TIME_MS} is in ms"
_HEADS = ({TIME, RATE}, {TIME, COUNTER}, {TIME})
_MILLISECONDS = 1e11  # a time beyond it is in ms, or of the year 5138
_SOME = 20  # messages on average that are counted together, where each has its own time
_SELECTOR = re.compile(r"\s*[\w:]*\s*(\{[^{}]*\})?\s*")
_RATES, _COUNTERS = re.compile(r"\b(i?rate|deriv)\s*\("), re.compile(r"(_offset|_total|_count|_high_water_mark|_sum)\b")
_WINDOW = re.compile(r"\[(\d+(?:ms|[smhd]))")
_MISTAKEN = {
    r"_lag(_|\b)": "a lag is what waits",
    r"bytes": "bytes are no messages",
    r"group\w*_offset": "commits are what the group took, and its speed hides a burst",
    r"oldest|low_water|earliest": "that is where a log begins",
    r"\b(increase|i?delta)\s*\(": "that is of a window, rate() of a second",
}


@dataclass(frozen=True)
class Arrivals:
    """The ``name`` of a source and the traffic of each of its series; ``notes`` are lines on what was lost or put right.

    What is shorter than ``window_s`` the query itself has blurred.
    """

    name: str
    parts: list[Traffic]
    notes: list[str]
    window_s: float = 0.0


def of_csv(file: Path) -> Arrivals:
    """The traffic in ``file``, whose head is one of :data:`HEAD`. Raises :class:`InputError` for all that can't be used."""
    where, lines = yamlfile.name(file), scrapes.csv_lines(file)
    head = [name.strip() for name in lines[0]] if lines else []
    clock = TIME_MS if TIME_MS in head else TIME
    if {TIME if name == clock else name for name in head} not in _HEADS or len(set(head)) < len(head):
        raise InputError(where, "line 1", ",".join(head), HEAD)
    kind = next((name for name in head if name != clock), "")
    with together():
        found = (_row(where, number, head, cells, clock) for number, cells in enumerate(lines[1:], 2) if cells)
        rows = [row for row in found if row]
        if clock == TIME and rows and (first := min(rows)[0]) > _MILLISECONDS:
            raise InputError(where, TIME, first, f"{MOMENT}; ms in a column {TIME_MS}", f"{first / 1000:.3f}")
        samples, twice = _samples(where, kind, rows)
    times = [at for at, _ in rows]
    notes = ["rows that are not in order of time were sorted"] if times != sorted(times) else []
    if not kind:
        return Arrivals(where, [_messages(where, np.sort(times))], notes)
    notes += [f"{many(twice, 'row')} with the time of another row: one of each is taken"] if twice else []
    part, lacks = _part(kind, samples)
    if part is None:
        usable = f"{many(len(samples) - lacks, 'sample')} of use"
        raise InputError(where, kind, usable, "two at least; of a counter, two that it does not fall between")
    return Arrivals(where, [part], notes + _lacking(lacks))


def of_prometheus(url: str, query: str, values: str | None, begin: float, end: float, every_s: float) -> Arrivals:
    """What the Prometheus at ``url`` has from ``begin`` to ``end``: raw samples of a selector, else an answer in ``every_s``.

    ``values`` says what they are; None where the names in the query do. Raises :class:`InputError` for a query that is no
    traffic or has no samples, :class:`LabFault` where Prometheus does not answer.
    """
    kind, selector = kind_of(query, values), bool(_SELECTOR.fullmatch(query))
    groups: dict[object, list[Curve]] = {}
    for labels, curve in scrapes.Prometheus(url, "").series(query, begin, end, None if selector else every_s):
        of = scrapes.own(labels) if selector and kind == COUNTER else tuple(sorted(labels.items()))
        groups.setdefault(of, []).append(curve)
    made = [_part(kind, _of_exporters(curves)) for curves in groups.values()]
    parts = [part for part, _ in made if part]
    if not parts:
        allowed = f"what has two samples from {clock_of(begin)} to {clock_of(end)} UTC"
        raise InputError("Prometheus", "--query", query, allowed)
    notes = _lacking(sum(lacks for _, lacks in made))
    if alone := len(made) - len(parts):
        notes.append(f"{alone} of {len(made)} series have no two samples of use, and count as nothing")
    first = min(float(part.edges[0]) for part in parts)
    if first - begin > GAP * parts[0].sample_s:
        notes.append(f"no data before {clock_of(first)} UTC: the profile begins there")
    windows = [float(yamlfile.as_number(one, "s")) for one in _WINDOW.findall(query)]
    return Arrivals(f"Prometheus, {' '.join(query.split())}", parts, notes, max(windows, default=0.0))


def kind_of(query: str, values: str | None) -> str:
    """Whether ``query`` answers a rate or a counter. Raises :class:`InputError` for what is no traffic, or does not tell."""
    names = re.sub(r"\"[^\"]*\"|'[^']*'|\{[^{}]*\}", "", query)
    wrong = [why for pattern, why in _MISTAKEN.items() if re.search(pattern, names)]
    told = RATE if _RATES.search(names) else COUNTER if _COUNTERS.search(names) else None
    with together():
        if wrong or not query:
            allowed = 'arrivals, as kafka_topic_partition_current_offset{topic="orders"}'
            report(InputError("command line", "--query", query or None, "; ".join([allowed, *wrong])))
        elif values is None and told is None:
            report(InputError("command line", "--values", None, f"{RATE} or {COUNTER}: {names.strip()} does not tell"))
    return str(values or told)


def clock_of(t: float) -> str:
    """The time ``t`` in UTC."""
    return f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d %H:%M:%S}"


def _row(where: str, line: int, head: Sequence[str], cells: Sequence[str], clock: str) -> tuple[float, float] | None:
    """The time of a row and its value, NaN for none. None for a row that is reported."""
    value, at = math.nan, math.nan
    if len(cells) > len(head):
        report(InputError(where, f"line {line}", ",".join(cells), f"{len(head)} cells, decimals with a point"))
        return None
    for name, text in zip(head, [*cells, *[""] * (len(head) - len(cells))], strict=True):
        try:
            if name == clock:
                at = float(text) / 1000 if clock == TIME_MS else scrapes.instant(text.strip(), math.inf)
            else:
                value = float(text.strip() or math.nan)
            if value < 0 or (name == clock and not 0 <= at < math.inf):
                raise ValueError
        except (ValueError, OverflowError):
            report(InputError(where, f"line {line}: {name}", text, MOMENT if name == clock else "a number from 0"))
            return None
    return round(at, SECOND_DIGITS), value


def _samples(where: str, kind: str, rows: Sequence[tuple[float, float]]) -> tuple[dict[float, float], int]:
    """The value at each time, and how many rows say again what another says. Two values of one time are reported."""
    found: dict[float, float] = {}
    for at, value in rows:
        other = found.get(at, math.nan)
        if not math.isnan(other) and not math.isnan(value) and other != value:
            report(InputError(where, f"{clock_of(at)} UTC: {kind}", f"{other:g} and {value:g}", "one value at a time"))
        found[at] = value if math.isnan(other) else other
    return found, len(rows) - len(found)


def _messages(where: str, times: Floats) -> Traffic:
    """The traffic of messages that came at ``times``, which rise: their count every second, or until there are some."""
    span = float(times[-1] - times[0]) if len(times) > 1 else 0.0
    if not 0 < span <= MAX_SECONDS:
        allowed = f"two at least, in 1 to {MAX_SECONDS:,.0f} s"
        raise InputError(where, TIME, f"{many(len(times), 'message')} in {span:,.0f} s", allowed)
    every_s = min(60, max(1, math.ceil(_SOME * span / len(times))))
    edges = np.arange(math.floor(times[0]), times[-1] + every_s + 1, every_s, dtype=float)
    return traffic.of_counter(edges, np.searchsorted(times, edges).astype(float))


def _part(kind: str, samples: Mapping[float, float]) -> tuple[Traffic | None, int]:
    """The traffic of the ``samples`` that are numbers, None of fewer than two, and how many are none."""
    known = sorted((at, value) for at, value in samples.items() if math.isfinite(value) and value >= 0)
    times, values = np.array([at for at, _ in known]), np.array([value for _, value in known])
    lacks = len(samples) - len(known)
    with suppress(NoData):
        if len(known) > 1:
            return (traffic.of_counter if kind == COUNTER else traffic.of_rates)(times, values), lacks
    return None, lacks


def _of_exporters(curves: Sequence[Curve]) -> dict[float, float]:
    """The samples of the exporter that was there most, and of the others where it was not: each asks at its own time."""
    best, *others = sorted(curves, key=lambda one: -len(one.times))
    found = dict(zip(best.times, best.values, strict=True))
    apart = GAP * float(np.median(np.diff(best.times))) if len(best.times) > 1 else 0.0
    for other in others:
        known = np.array([-math.inf, *sorted(found), math.inf])
        for at, value in zip(other.times, other.values, strict=True):
            place = int(np.searchsorted(known, at))
            if min(at - known[place - 1], known[place] - at) > apart:
                found[at] = value
    return {round(at, SECOND_DIGITS): value for at, value in found.items()}


def _lacking(count: int) -> list[str]:
    return [f"{many(count, 'sample')} without a number: no data there"] if count else []
