"""``python -m tests.scale RESULTS``: the errors of the same trials at several scales against real time.

A mark is a verdict of :mod:`lab.measure.similarity`: ✔ faithful, ✘ not faithful, ~ undecided.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from lab.errors import BAD_INPUT, InputError
from lab.flags import Flags
from lab.host.machine import median_speed, name_machines
from lab.inputs import scale as scales
from lab.judge.claim import INVALID
from lab.judge.gates import word
from lab.measure import outcome as outcomes
from lab.measure.outcome import Outcome, Runs
from lab.measure.similarity import FAITHFUL, NO_DATA, TOLERANCE, UNDECIDED, UNFAITHFUL, Row, compare, figures
from lab.measure.validity import judge_validity
from lab.number_format import number
from lab.record import store
from lab.record.store import Record
from lab.report.tables import Table

log = logging.getLogger("lab")

MARKS = {FAITHFUL: "✔", UNFAITHFUL: "✘", UNDECIDED: "~"}

Blocks = Sequence[Sequence[Record]]  # the sides of each block
Place = tuple[str, str]  # profile and scale


def main(arguments: list[str] | None = None) -> int:
    """Print how far each scale is from real time, of the given records or of the committed. Returns 0, or 2 on bad input."""
    parser = Flags("python -m tests.scale", "how far each scale is from real time, measure by measure", environment=False)
    parser.add_argument("folders", type=Path, nargs="*", metavar="RESULTS", help="results of pytest -m scale")
    text = f"write {outcomes.FILE.name}, in the place of what it has of the same profiles"
    parser.add_argument("--publish", action="store_true", help=text)
    text = "leave its rows out of that file: it is defined anew, and the records that gave them are gone"
    parser.add_argument("--forget", metavar="MEASURE", help=text)
    options = parser.parse_args(arguments)
    try:
        if options.forget:
            forget(outcomes.read(outcomes.FILE), options.forget).write(outcomes.FILE)
        outcome = analyse(*_sides(options.folders), scales.REAL) if options.folders else outcomes.read(outcomes.FILE)
    except InputError as error:
        print(f"tests.scale: {error}", file=sys.stderr)
        return BAD_INPUT
    if options.folders and options.publish:
        outcome.beside(outcomes.read(outcomes.FILE)).write(outcomes.FILE)
    print(tables(outcome))
    return 0


def forget(outcome: Outcome, measure: str) -> Outcome:
    """``outcome`` without rows of ``measure``. Raises :class:`InputError` where it has none."""
    if measure not in (known := {row.measure for row in outcome.rows}):
        raise InputError("command line", "--forget", measure, ", ".join(sorted(known)))
    return replace(outcome, rows=tuple(row for row in outcome.rows if row.measure != measure))


def tables(outcome: Outcome) -> str:
    """The errors of each profile as Markdown: a row for each number, a column for each scale."""
    parts = []
    for profile in dict.fromkeys(one.profile for one in outcome.runs):
        runs = [one for one in outcome.runs if one.profile == profile]
        rows = [row for row in outcome.rows if row.profile == profile]
        parts.append(f"## {profile}\n\n{_run_table(runs).markdown}\n{_error_table(rows, runs, outcome.reference).markdown}")
    return "\n".join(parts)


def _run_table(runs: Sequence[Runs]) -> Table:
    """The sessions that the errors stand on."""
    head = [field.name.replace("left_out", "left out as invalid") for field in fields(Runs)[1:]]
    rows = [[*map(str, astuple(one)[1:-1]), number(one.rate)] for one in runs]
    return Table(head, rows, frozenset({1, 2, 7}))


def _error_table(rows: Sequence[Row], runs: Sequence[Runs], reference: str) -> Table:
    """The error against ``reference``: the median, and an interval that holds it with the confidence in the column's head."""
    blocks = {one.scale: one.blocks for one in runs}
    compared = [scale for scale in blocks if scale != reference]
    worth = {scale: max((row.confidence for row in rows if row.scale == scale), default=0.0) for scale in compared}
    body: list[list[str]] = []
    for name, unit in dict.fromkeys((row.name, row.unit) for row in rows if row.verdict != NO_DATA):
        # Two measures may have one number: the first speaks for it.
        same = {row.scale: row for row in reversed(rows) if (row.name, row.unit) == (name, unit)}
        middle = next((row.reference for row in same.values() if row.reference is not None), None)
        body.append([name, unit, number(middle), *(_cell(same.get(scale)) for scale in compared)])
    heads = [f"{scale} (n = {blocks[scale]}, {worth[scale]:.0%})" for scale in compared]
    head = ["measure", "unit", f"{reference} (n = {blocks.get(reference, 0)})", *heads]
    return Table(head, body, frozenset(range(2, len(head))))


def _cell(row: Row | None) -> str:
    if row is None or row.estimate is None or row.low is None or row.high is None:
        return number(None)
    if row.relative:
        return f"{MARKS[row.verdict]} {100 * row.estimate:+.0f} % ({100 * row.low:+.0f} to {100 * row.high:+.0f})"
    return f"{MARKS[row.verdict]} {row.estimate:+.3g} ({row.low:+.3g} to {row.high:+.3g})"


def _sides(folders: Sequence[Path]) -> tuple[dict[Place, list[list[Record]]], dict[Place, int]]:
    """(the sides of each block by profile and scale, how many records were left out of each as invalid).

    A block counts only with all its sides. Raises :class:`InputError` for a folder without records.
    """
    chosen: dict[Place, list[list[Record]]] = {}
    left_out: dict[Place, int] = {}
    for folder in folders:
        names = store.stored(folder)
        if not names:
            raise InputError(folder, "(folder)", "no trial.json", "the results of pytest -m scale")
        for identities in _duets(names):
            records = store.whole(folder, identities)
            if records is None:
                continue
            place = records[0].inputs.profile_name, records[0].scale.name
            if any(word(judge_validity(one)) == INVALID for one in records):
                left_out[place] = left_out.get(place, 0) + len(records)
                continue
            sides = sorted(records, key=lambda record: record.inputs.side.name if record.inputs.side else "")
            chosen.setdefault(place, []).append(sides)
    return chosen, left_out


def _duets(names: Mapping[str, Path]) -> list[tuple[str, ...]]:
    """The identities of trials that ran together, each once."""
    duets: dict[frozenset[str], tuple[str, ...]] = {}
    for path in names.values():
        trial = Record(path).trial
        others = [Record(path.parent / trial.duet.other).id] if trial.duet and (path.parent / trial.duet.other).exists() else []
        identities = tuple(sorted({trial.id, *others}))
        if trial.duet is None or others:
            duets[frozenset(identities)] = identities
    return list(duets.values())


def analyse(chosen: Mapping[Place, Blocks], left_out: Mapping[Place, int], reference: str) -> Outcome:
    """The outcome of these runs against the scale ``reference``; a profile without runs at it has no rows.

    Raises :class:`InputError` where none has any, and where runs of one profile are of several policies, workloads or rates.
    """
    runs: list[Runs] = []
    rows: list[Row] = []
    for profile in dict.fromkeys(profile for profile, _ in chosen):
        own = _of_profile(chosen, profile)
        _check_alike(profile, own)
        if reference not in own:
            continue
        _warn_of_speeds(profile, own)
        runs += [_runs(profile, scale, blocks, left_out.get((profile, scale), 0)) for scale, blocks in own.items()]
        found = {scale: [[figures(side) for side in sides] for sides in blocks] for scale, blocks in own.items()}
        rows += compare(profile, found, reference)
    if not runs:
        places = ", ".join(f"{profile} at {scale}" for profile, scale in sorted(chosen)) or "none that is whole and valid"
        raise InputError("command line", "RESULTS", reference, f"runs at the reference too; there are: {places}")
    return Outcome(reference, tuple(runs), tuple(rows))


def _of_profile(chosen: Mapping[Place, Blocks], profile: str) -> dict[str, Blocks]:
    """The blocks of one profile by scale, the most compressed first."""
    order = [one.name for one in scales.declared()]
    own = {scale: chosen[name, scale] for name, scale in chosen if name == profile}
    return dict(sorted(own.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


def _check_alike(profile: str, found: Mapping[str, Blocks]) -> None:
    """Raise :class:`InputError` unless all runs are of one policy, workload and rate: another difference than the scale's."""
    records = [side for blocks in found.values() for sides in blocks for side in sides]
    alike = {
        "policy": {record.inputs.policy_name for record in records},
        "workload": {str(record.inputs.workload) for record in records},
        "rate of the duet": {f"{_rate(record):g}" for record in records},
    }
    for name, values in alike.items():
        if len(values) > 1:
            raise InputError(profile, name, sorted(values), "one: the runs may differ in scale alone")


def _warn_of_speeds(profile: str, found: Mapping[str, Blocks]) -> None:
    """Say so where the machine's speed differs between scales: then an error is the machine's too (docs/decisions/02)."""
    measured = {
        scale: median_speed(side.trial.machine for sides in blocks for side in sides) for scale, blocks in found.items()
    }
    speeds = {scale: speed for scale, speed in measured.items() if speed is not None}
    if speeds and max(speeds.values()) > (1 + TOLERANCE) * min(speeds.values()):
        words = ", ".join(f"{scale} {speed / 1000:.0f}" for scale, speed in speeds.items())
        log.warning("%s: the machine's speed differed: %s thousand events/s; the errors contain that", profile, words)


def _rate(record: Record) -> float:
    return record.inputs.side.rate if record.inputs.side else 1.0


def _runs(profile: str, scale: str, blocks: Blocks, left_out: int) -> Runs:
    records = [side for sides in blocks for side in sides]
    days = sorted({datetime.fromtimestamp(record.trial.begun, UTC).date().isoformat() for record in records})
    commits = sorted({record.trial.versions.get("commit", "")[:12] for record in records})
    dates, machines = " to ".join(dict.fromkeys((days[0], days[-1]))), name_machines(record.trial.machine for record in records)
    ran = (dates, machines, ", ".join(commits), records[0].inputs.policy_name, _rate(records[0]))
    return Runs(profile, scale, len(blocks), left_out, *ran)


if __name__ == "__main__":
    sys.exit(main())
