"""``elastic-lab profile``: the traffic that a Prometheus or a CSV file saw, as a profile of few steps that keeps its bursts."""

from __future__ import annotations

import math
import os
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path

from lab import yamlfile
from lab.commands import arrivals
from lab.commands.arrivals import COUNTER, RATE, TIME, Arrivals, clock_of
from lab.commands.explain import INSTANT
from lab.commands.situation import writable
from lab.commands.text import as_json, number, table
from lab.errors import HELD, InputError, report, together
from lab.flags import URL, Flags, Kind, choice, whole
from lab.flags import number as numbers
from lab.foresee import traffic
from lab.foresee.traffic import GAP, SECOND_DIGITS, Errors, Phase, Traffic
from lab.foresee.usage import carried_rate
from lab.inputs import profile
from lab.inputs.profile import MAX_RATE, MAX_SECONDS, Profile
from lab.number_format import duration, many

MOST_GAPS = 0.1  # of the time may be without data
MOST_LINES = 10  # for gaps, and for phases
STANDS = 0.2  # of the samples, beyond which an exporter may be slower than its scrapes


def length(most: float) -> Kind:
    """A time from a minute to ``most`` s."""

    def convert(text: str) -> float:
        value = float(yamlfile.as_number(text, "s"))
        if not 60 <= value <= most:
            raise ValueError(text)
        return value

    return Kind(convert, f"a time such as 24h, from 1m to {most / 86_400:g}d")


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    parser.flag("prometheus", URL, None, "the URL of a Prometheus", optional=True)
    text = 'a counter of arrivals, such as kafka_topic_partition_current_offset{topic="orders"}, or a rate of them'
    parser.flag("query", str, "", text)
    parser.flag("range", length(MAX_SECONDS), "24h", "how much of the past")
    parser.flag("to", INSTANT, None, "the end of the range [default: now]", optional=True)
    text = "what the query answers [default: what its names tell]"
    parser.flag("values", choice(RATE, COUNTER), None, text, optional=True)
    parser.flag("every-s", numbers(1, 3600), 15, "s between the answers of a query that is no selector")
    parser.flag("csv", Path, None, f"a CSV file, - for standard input; its head: {arrivals.HEAD}", optional=True)
    parser.flag("steps", whole(2, 10_000), 200, "the most steps, and two more for the peak and each gap")
    parser.flag("factor", numbers(1e-6, 1e3), 1, "takes all rates times so much")
    text = "write the profile into this file [default: to standard output]"
    parser.flag("output", writable, None, text, "FILE in a folder that is there", optional=True)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Namespace) -> int:
    """Read, fit and print. Returns the exit code: nothing is judged."""
    source = _read(options)
    seen = traffic.total(source.parts)
    _check(source, seen, options.factor)
    steps = _yaml(traffic.fit(seen, options.steps, options.factor), seen)
    fitted = profile.build(yamlfile.parse(steps, source.name), source.name)  # what is said is of the text that is written
    kept, phases = traffic.errors(seen, fitted, options.factor), traffic.phases(fitted)
    notes = [*source.notes, *_notes(source, seen, kept, options.factor)]
    begin, series = float(seen.edges[0]), len(source.parts)
    head = f"{source.name}: {duration(fitted.duration)} from {clock_of(begin)} UTC, a sample in {seen.sample_s:g} s"
    head += f", {series} series" if series > 1 else ""
    head += f"; rates x {options.factor:g}" if options.factor != 1 else ""
    lines = [head, "", *_text(kept, phases), *(f"note: {note}" for note in notes)]
    text = "".join(f"# {line}".rstrip() + "\n" for line in lines) + steps
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    if options.json:
        content = {"source": source.name, "begin": begin, "duration_s": fitted.duration, "sample_s": seen.sample_s}
        content |= {"series": series, "factor": options.factor, "steps": len(fitted.steps), "kept": asdict(kept)}
        print(as_json(content | {"phases": [asdict(one) for one in phases], "notes": notes, "yaml": text}))
    else:
        print("\n".join(lines) if options.output else text.removesuffix("\n"))
    return HELD


def _read(options: Namespace) -> Arrivals:
    given = [name for name in ("prometheus", "csv") if getattr(options, name)]
    if len(given) != 1:
        raise InputError("command line", "--prometheus, --csv", " and ".join(given) or None, "one of them")
    if options.csv:
        return arrivals.of_csv(options.csv)
    end = time.time() if options.to is None else options.to
    return arrivals.of_prometheus(options.prometheus, options.query, options.values, end - options.range, end, options.every_s)


def _check(source: Arrivals, seen: Traffic, factor: float) -> None:
    """Raise :class:`InputError` for what makes no profile."""
    with together():
        if seen.duration > MAX_SECONDS:
            allowed = f"at most {duration(MAX_SECONDS)} from first to last"
            report(InputError(source.name, TIME, duration(seen.duration), allowed))
        lacks = float(seen.spans[seen.gaps].sum())
        if lacks > MOST_GAPS * seen.duration:
            begin, end, _ = seen.lacking()[0]
            value = f"{duration(lacks)} of {duration(seen.duration)}, as from {clock_of(begin)} to {clock_of(end)}"
            report(InputError(source.name, "no data", value, f"at most {MOST_GAPS:.0%}: take a range that has it"))
        if seen.peak * factor > MAX_RATE:
            allowed = f"at most {MAX_RATE:,.0f} messages/s at the peak, which is {seen.peak:,.0f}"
            report(InputError("command line", "--factor", factor, allowed, _floor(MAX_RATE / seen.peak)))


def _notes(source: Arrivals, seen: Traffic, kept: Errors, factor: float) -> Iterator[str]:
    """What a reader must know of the traffic and its steps."""
    yield f"a burst shorter than {max(seen.sample_s, source.window_s):g} s keeps its messages, and not its height"
    stands = sum(end - first for first, end in traffic.runs(seen.rates == 0) if end - first <= GAP)
    if stands > STANDS * len(seen.rates):
        asked = "perhaps the exporter asks Kafka more rarely than it is scraped, and heights are too high: take rate(...[2m])"
        yield f"nothing came in {stands / len(seen.rates):.0%} of the samples, a few at a time: {asked}"
    if kept.burst_s.seen is None:
        yield f"no burst: no rate is above {number(kept.burst_rate)} messages/s, twice the median"
    gaps = seen.lacking()
    for begin, end, rate in gaps[:MOST_LINES]:
        assumed = f"{number(rate * factor)} messages/s are assumed"
        yield f"no data from {clock_of(begin)} to {clock_of(end)} UTC, for {end - begin:,.0f} s: {assumed}"
    if len(gaps) > MOST_LINES:
        yield f"no data in {len(gaps) - MOST_LINES} more gaps, marked in the profile"
    if falls := seen.falls:
        assumed = "that sample is no data, and the higher rate beside it is assumed"
        yield f"the counter falls {many(len(falls), 'time')}, first at {clock_of(falls[0])} UTC: {assumed}"
    late, early = seen.edges[0] + GAP * seen.sample_s, seen.edges[-1] - GAP * seen.sample_s
    if partly := sum(one.edges[0] > late or one.edges[-1] < early for one in source.parts):
        yield f"{partly} of {len(source.parts)} series are there for a part of the time, and count as nothing beside it"
    cores = os.cpu_count() or 1
    if seen.peak * factor > (most := carried_rate(cores)) > 0:
        advice = f"--factor {_floor(most / seen.peak)}, and a pod's rate and lagThreshold by as much"
        yield f"a trial on {cores} cores carries some {most:,.0f} messages/s: {advice}; the model takes any rate"


def _text(kept: Errors, phases: Sequence[Phase]) -> list[str]:
    rows = [["", "seen", "steps", "error"]]
    of = {"peak (messages/s)": kept.peak_rate, "volume (messages)": kept.messages, "longest burst (s)": kept.burst_s}
    for name, one in of.items():
        error = "no data" if one.error_percent is None else f"{one.error_percent:+.2g} %"
        rows.append([name, *("no data" if value is None else number(value) for value in (one.seen, one.steps)), error])
    lines = [*table(rows, numbers=[1, 2, 3]).splitlines()]
    lines.append(f"a burst is above {number(kept.burst_rate)} messages/s, twice the median, with dips of up to {GAP:g} samples")
    lines.append(f"at no time more than {number(kept.moved)} messages come earlier or later than seen")
    rows = [["phase, a guess", "from (s)", "to (s)", "mean (messages/s)", "peak", "messages"]]
    for phase in phases[:MOST_LINES]:
        figures = (phase.begin, phase.end, phase.mean, phase.peak, phase.messages)
        rows.append([phase.phase, *map(number, figures)])
    more = [f"and {len(phases) - MOST_LINES} more"] if len(phases) > MOST_LINES else []
    return [*lines, "", *table(rows, numbers=range(1, 6)).splitlines(), *more]


def _yaml(fitted: Profile, seen: Traffic) -> str:
    """The profile as its file has it: a step a line, and those without data are marked."""
    begins = float(seen.edges[0])
    gaps = [(round(a - begins, SECOND_DIGITS), round(b - begins, SECOND_DIGITS)) for a, b, _ in seen.lacking()]
    at = f'begins_at: "{fitted.begins_at.isoformat(timespec="milliseconds")}"\n' if fitted.begins_at else ""
    text = f"kind: steps\nduration: {_plain(fitted.duration)}\n{at}steps:\n"
    for one in fitted.steps:
        lacks = "  # no data" if any(a <= one.at < b for a, b in gaps) else ""
        text += f"  - {{at: {_plain(one.at)}, rate: {_plain(one.rate)}, phase: {one.phase}}}{lacks}\n"
    return text


def _plain(value: float) -> str:
    """A number as every YAML reads it: without an exponent."""
    return f"{Decimal(repr(value)):f}".removesuffix(".0")


def _floor(value: float) -> str:
    """``value`` rounded down to two digits."""
    places = 1 - math.floor(math.log10(value))
    return _plain(math.floor(value * 10.0**places) / 10.0**places)
