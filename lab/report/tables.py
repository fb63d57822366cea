"""Tables: rendered once as HTML and once as GitHub's Markdown, by templates that escape every text. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, Self

from lab.judge.claim import BREACHED, HELD, INVALID, NO_DATA, Repeats
from lab.judge.pairs import Pairs
from lab.number_format import beside, number

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

HEAD = ("verdict", "kind", "claim", "quantity", "measured", "wanted", "unit", "source", "experiment")
MARKS = {HELD: "✔", BREACHED: "✘", NO_DATA: "?", INVALID: "!"}
NOT_STATED = "not stated"
RATIO = "second / first"


@dataclass(frozen=True)
class Cell:
    """A text of a table, as ``code`` or not; ``links`` are (text, address) in its place, ``style`` is a class of the page."""

    text: str = ""
    links: tuple[tuple[str, str], ...] = ()
    style: str = ""
    code: bool = False


@dataclass(frozen=True)
class Table:
    """A ``head`` and ``rows`` of texts or cells; the columns ``numbers`` are set to the right."""

    head: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    numbers: frozenset[int] = field(default_factory=frozenset)

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows as cells."""
        return [[cell if isinstance(cell, Cell) else Cell(str(cell)) for cell in row] for row in self.rows]

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """The table that :attr:`stored` describes."""
        rows = [[Cell(**(cell | {"links": tuple(map(tuple, cell["links"]))})) for cell in row] for row in stored["rows"]]
        return cls(stored["head"], rows, frozenset(stored["numbers"]))

    @property
    def stored(self) -> dict[str, Any]:
        """The table as JSON holds it."""
        rows = [[asdict(cell) for cell in row] for row in self.cells]
        return {"head": list(self.head), "rows": rows, "numbers": sorted(self.numbers)}

    @property
    def html(self) -> str:
        """The table as HTML with its style."""
        return render("table.html", table=self)

    @property
    def markup(self) -> str:
        """The table as HTML for a page that has a style of its own."""
        return render("tablemarkup.html", table=self)

    @property
    def markdown(self) -> str:
        """The table as GitHub's Markdown, one line a row."""
        return render("table.md", table=self)


def render(template: str, **content: Any) -> str:
    """The ``template`` of this package with ``content``; in ``.html`` every text is escaped, ``.md`` asks for it (``| md``)."""
    return _templates().get_template(template).render(content)


@cache
def _templates() -> jinja2.Environment:
    import jinja2  # a command that prints numbers needs no templates

    made = jinja2.Environment(
        loader=jinja2.PackageLoader("lab.report"),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"md": markdown, "number": number, "code": code, "prose": prose}
    return made


def comparison_table(rows: Mapping[str, Mapping[str, float | None]]) -> Table:
    """The measures of several trials as one table: a row a measure, a column a trial.

    ``rows`` is {measure: {trial: value}}, in the order shown; a value that is missing or None is ``n/a``. Exactly two trials
    get the ratio of the second to the first. ``ValueError`` if there is nothing to compare.
    """
    trials = list(dict.fromkeys(trial for values in rows.values() for trial in values))
    if not trials:
        raise ValueError("comparison: there is no measure of any trial to compare")
    body = []
    for measure, values in rows.items():
        found = [values.get(trial) for trial in trials]
        ratio = [number(_ratio(*found))] if len(trials) == 2 else []
        body.append([measure, *map(number, found), *ratio])
    head = ["measure", *trials, *([RATIO] if len(trials) == 2 else [])]
    return Table(head, body, frozenset(range(1, len(head))))


def _ratio(first: float | None, second: float | None) -> float | None:
    if first is None or second is None or not (math.isfinite(first) and math.isfinite(second)) or first <= 0:
        return None
    return second / first


def verdict_table(verdicts: Iterable[Mapping[str, Any]]) -> Table:
    """The verdicts as a table.

    Each verdict is a row of ``verdicts.json``: {experiment, objective, measured: float | None, operator, bound: float, unit,
    verdict: held | breached | no data | invalid, note, kind, why, source, trials}; ``ValueError`` on any other verdict.
    """
    return Table(
        HEAD, [_verdict_row(verdict) for verdict in verdicts], frozenset({HEAD.index("measured"), HEAD.index("wanted")})
    )


def verdict_cell(verdict: Mapping[str, Any]) -> Cell:
    """The verdict as a mark and a word. ``ValueError`` on an unknown one."""
    word = str(verdict["verdict"])
    if word not in MARKS:
        raise ValueError(f"verdict: {word!r} is not one of {', '.join(MARKS)}")
    return Cell(f"{MARKS[word]} {word}", style=f"verdict {word.replace(' ', '-')}")


def _verdict_row(verdict: Mapping[str, Any]) -> list[str | Cell]:
    return [
        verdict_cell(verdict),
        kind(verdict),
        claim(verdict),
        str(verdict["objective"]),
        beside(verdict["measured"], verdict["bound"]),
        f"{verdict['operator']} {number(verdict['bound'])}",
        str(verdict["unit"]),
        source(verdict),
        str(verdict["experiment"]),
    ]


def claim(verdict: Mapping[str, Any]) -> str:
    """The sentence of a verdict, why it has no number or is invalid or what it leaves out, and in how many runs it held.

    Also what it is worth at real time, where its trials were compressed and that is not the same.
    """
    word = INVALID if verdict["verdict"] == INVALID else "no data" if verdict["measured"] is None else "but"
    remarks = {f"{word}: ": verdict["note"], "runs: ": interval_of(verdict), "": verdict.get("real_time")}
    return str(verdict["why"]) + "".join(f" ({word}{remark})" for word, remark in remarks.items() if remark)


def interval_of(verdict: Mapping[str, Any]) -> str:
    """In how many runs a verdict held, and between which numbers; of a paired difference its interval. Empty for one number."""
    parts = ((Repeats, verdict.get("repeats")), (Pairs, verdict.get("pairs")))
    return "; ".join(str(made(**fields)) for made, fields in parts if fields)


def kind(verdict: Mapping[str, Any]) -> str:
    """The class of a verdict's bound: invariant, control or claim; a row of an older session is a claim."""
    return str(verdict.get("kind") or "claim")


def source(verdict: Mapping[str, Any]) -> str:
    """Where the bound of a verdict is from: an objective of a text, an SLO, a pilot; or that no one says so."""
    return str(verdict.get("source") or NOT_STATED)


def code(text: object) -> Markup:
    """``text`` of a docstring as HTML: escaped, and what stands between two double backticks as code."""
    from markupsafe import Markup

    return Markup(re.sub(r"``([^`]+)``", r"<code>\1</code>", escape(str(text))))


def prose(text: object) -> str:
    """``text`` of a docstring as GitHub's Markdown: escaped, and what stands between two double backticks as code."""
    parts = re.split(r"``([^`]+)``", str(text))
    return "".join(f"`{part}`" if at % 2 else _spaced(part) for at, part in enumerate(parts))


def _spaced(text: str) -> str:
    """``text`` escaped, with the spaces at its ends, which :func:`markdown` drops."""
    return " " * text[:1].isspace() + markdown(text) + " " * (text[-1:].isspace() and bool(text.strip()))


def markdown(text: object) -> str:
    """``text`` as one cell of GitHub's Markdown, escaped."""
    flat = " ".join(escape(str(text), quote=False).split())
    return "".join(f"\\{character}" if character in "\\`*_[]|~#" else character for character in flat)
