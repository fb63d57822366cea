"""The sheet that a panel signs: each line of text 1, section 12, with number, interval, n and class. Pure.

Records and verdicts in, tables out. A line without a number says "no data" and why; what no claim judges is "shown".
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from lab import yamltext
from lab.judge.aggregate import interval
from lab.judge.claim import HELD, INVALID, NO_DATA
from lab.judge.measure import Runs
from lab.judge.quantity import Quantity, absence
from lab.measure.outcome import committed, remark
from lab.number_format import beside, number
from lab.record.store import Record
from lab.report import criteria
from lab.report.criteria import Line, Trial
from lab.report.session import WORDS, Case, Row, SignOff
from lab.report.tables import Cell, Table
from lab.report.verdict_text import NOT_STATED, word_cell

LINES = ("criterion", "measured", "number", "interval", "n", "class", "wanted", "bound from", "verdict", "scale", "trial")
TRIALS = ("trial", "what ran", "reproduce", "records")
SHOWN = "shown"
NOTE = (
    "A number is the median of the runs, and the interval is of that median. What is shown is judged by no claim. A measure "
    "that is not validated may be off by more than a tenth at real time."
)


def sign_off(
    test: Case,
    runs: Runs[Record],
    tests: Sequence[Case],
    records: Sequence[Record],
    address: Callable[[str], str],
    altering: Sequence[str] = (),
) -> SignOff:
    """The sheet of the acceptance ``test`` and its ``runs``, without its pictures.

    ``tests`` and ``records`` are all of the session, ``address`` gives that of a record by its name. ``altering`` are the
    session's options that alter trials.
    """
    found = criteria.trials(test, runs, tests, records)
    listed = criteria.lines(found)
    rows, before = [], ""
    for line in listed:
        rows.append([line.criterion if line.criterion != before else "", *_cells(line, found)])
        before = line.criterion
    words = Counter(line.row.verdict if line.row else SHOWN if line.quantity.value is not None else NO_DATA for line in listed)
    tally = ", ".join(f"{words[word]} {word}" for word in (*WORDS, SHOWN) if words[word])
    described = [[letter, *_described(trial, address, altering)] for letter, trial in found.items()]
    count = f"{len(runs)} run{'s' * (len(runs) > 1)}"
    note = f"{count} at {runs[0].trial.scale}; commit {_commits(runs)}. {tally}. {NOTE}"
    figures = {f"{line.criterion}: {line.quantity.name}": absence(line.quantity) for line in listed}
    open_lines = ", ".join(f"{words[word]} {word}" for word in WORDS if words[word] and word != HELD)
    sheet = Table(LINES, rows, frozenset({2, 3}))
    policy = yamltext.written(runs[0].inputs.policy.content)
    return SignOff(test.name, note, sheet, Table(TRIALS, described), figures=figures, open_lines=open_lines, policy=policy)


def _cells(line: Line, found: Mapping[str, Trial]) -> list[str | Cell]:
    """The cells of a line, but its criterion."""
    one, row, trial = line.quantity, line.row, found.get(line.trial)
    unit = "" if one.unit in ("", "x") or f" {one.unit} " in f" {one.name} " else f", {one.unit}"
    said = f"{one.name}{unit}" + (f" ({one.why})" if one.why else "")
    if one.value is None:
        shown = Cell(word_cell(NO_DATA).text, style="number verdict no-data")
    else:
        worst = f", worst {_worst(one, row)}" if row and row.repeats and row.repeats.held < row.repeats.n else ""
        shown = Cell((beside(one.value, row.bound) if row else number(one.value)) + worst, style="number")
    invalid = trial is not None and any(other.verdict == INVALID for other in trial.test.rows)
    word = row.verdict if row else INVALID if invalid else ""
    held = f", held in {row.repeats.held}" if row and row.repeats and row.repeats.held < row.repeats.n else ""
    count = f"{row.runs if row else len(one.runs) or 1}{held}" if trial else ""
    kind, wanted = (row.kind, row.target.removesuffix(row.unit).rstrip()) if row else (SHOWN, "")
    worth = _worth(line, trial.runs[0]) if trial and one.value is not None else ""
    return [
        said,
        shown,
        _interval(line),
        count,
        kind,
        wanted,
        row.source or NOT_STATED if row else "",
        word_cell(word) if word else "",
        worth,
        line.trial if trial else "",
    ]


def _worst(quantity: Quantity, row: Row) -> str:
    """The number of the run that is furthest on the wrong side of its bound: a median hides it."""
    known = [one.number for one in quantity.runs if one.value is not None]
    off = {">": lambda one: -one, ">=": lambda one: -one, "==": lambda one: abs(one - row.bound)}
    return number(max(known, key=off.get(row.operator)))


def _interval(line: Line) -> str:
    """The interval of the median and its confidence; "" for one run, and where a run has no number."""
    one, repeats = line.quantity, line.row.repeats if line.row else None
    if repeats:
        low, high, sure = repeats.low, repeats.high, repeats.confidence
    else:
        low, high, sure = interval(one.runs) if one.runs else (None, None, None)
    if low is None or high is None or sure is None:
        return ""
    return f"{number(low)} to {number(high)} ({sure:.0%})".replace("%", " %")


def _worth(line: Line, record: Record) -> str:
    """What the number is worth at real time: whether its measure is faithful at the scale of its trial."""
    row, scale = line.row, record.scale
    if scale.time == 1:
        return scale.name
    name = f"{scale.name}, times / {scale.time:g}"
    if row and row.kind != "claim":
        return f"{name}, this run only"
    said = row.real_time if row else remark("claim", line.quantity.origin, scale, committed())
    factor = line.quantity.origin.dimension.at_real_time(1.0, scale.time, scale.rate)
    if "stands for" in said or not said:
        return f"{name}, faithful" + (f" (x {factor:g})" if factor != 1 else "")
    return said.replace(f"{scale.name} only; ", f"{name}, ").removesuffix(" at real time")


def _described(trial: Trial, address: Callable[[str], str], altering: Sequence[str]) -> list[str | Cell]:
    """What ran, the command that runs it again, and the records.

    How an existing cluster is reached is no part of the command: it alters no trial, and may be a login.
    """
    first, several = trial.runs[0], {one.name: one for one in trial.runs}.values()
    policies = ", ".join(dict.fromkeys(one.inputs.policy_name for one in several))
    seeds = ", ".join(map(str, sorted({one.inputs.seed for one in several})))
    inputs = first.inputs
    what = (
        f"{trial.test.name}: profile {inputs.profile_name}, policy {policies}, P = {inputs.partitions}, "
        f"{inputs.workload.balancer}; seed {seeds}; {inputs.scale}; {inputs.runtime}, {first.trial.machine.cores} cores; "
        f"commit {_commits(trial.runs)}"
    )
    blocks = max(one.inputs.repetition for one in several)
    words = [trial.test.id, f"--scale={inputs.scale.name}", f"--repeat={blocks}", f"--cluster={inputs.runtime}", *altering]
    words += [f"--lab-order-seed={turn.seed}"] if (turn := first.trial.turn) and blocks > 1 else []
    command = Cell(f"pytest {shlex.join(words)}", code=True)
    return [what, command, Cell(links=tuple((one.name, address(one.name)) for one in several))]


def _commits(runs: Runs[Record]) -> str:
    return ", ".join(dict.fromkeys(one.trial.versions.get("commit", "unknown") for one in runs))


def caption(found: SignOff) -> str:
    """What stands below the picture of the live board, or in its place."""
    if found.board:
        return "The live board, as a browser showed it during the run."
    return f"No picture of the live board: {found.no_board or 'no record of these runs has one'}."
