"""Tables: rendered once as HTML and once as GitHub's Markdown, by templates that escape every text. Pure."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from lab.number_format import number

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

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

    @property
    def html(self) -> str:
        """The table as HTML with its style."""
        return render("table.html", table=self)

    @property
    def markup(self) -> Markup:
        """The table as HTML for a page that has a style of its own."""
        from markupsafe import Markup

        return Markup(render("tablemarkup.html", table=self))

    @property
    def markdown(self) -> str:
        """The table as GitHub's Markdown, one line a row."""
        return render("table.md", table=self)


def comparison_table(rows: Mapping[str, Mapping[str, float | None]]) -> Table:
    """The measures of several trials, {measure: {trial: value}}, as a row a measure and a column a trial.

    None is ``n/a``, and what was not asked of a trial is blank. Exactly two trials get the ratio of the second to the first.
    ``ValueError`` if there is nothing to compare.
    """
    trials = list(dict.fromkeys(trial for values in rows.values() for trial in values))
    if not trials:
        raise ValueError("comparison: there is no measure of any trial to compare")
    body = []
    for measure, values in rows.items():
        found = [number(values[trial]) if trial in values else "" for trial in trials]
        ratio = [number(_ratio(*map(values.get, trials))) if all(found) else ""] if len(trials) == 2 else []
        body.append([measure, *found, *ratio])
    head = ["measure", *trials, *([RATIO] if len(trials) == 2 else [])]
    return Table(head, body, frozenset(range(1, len(head))))


def _ratio(first: float | None, second: float | None) -> float | None:
    if first is None or second is None or not (math.isfinite(first) and math.isfinite(second)) or first <= 0:
        return None
    return second / first


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
    made.filters |= {"md": markdown, "number": number, "code": code}
    return made


def image(drawn: str | bytes, alt: str) -> Markup:
    """An SVG, or the bytes of a PNG, as an HTML image that needs no other file; ``alt`` is its text. "" for no picture."""
    from markupsafe import Markup

    kind, content = ("png", drawn) if isinstance(drawn, bytes) else ("svg+xml", drawn.encode())
    data = base64.b64encode(content).decode()
    return Markup(f'<img src="data:image/{kind};base64,{data}" alt="{escape(alt)}">' if drawn else "")


def code(text: object) -> Markup:
    """``text`` of a docstring as HTML: escaped, and what stands between two double backticks as code."""
    from markupsafe import Markup

    return Markup(re.sub(r"``([^`]+)``", r"<code>\1</code>", escape(str(text))))


def markdown(text: object) -> str:
    """``text`` as one cell of GitHub's Markdown, escaped."""
    flat = " ".join(escape(str(text), quote=False).split())
    return "".join(f"\\{character}" if character in "\\`*_[]|~#" else character for character in flat)
