"""The verdict table, as HTML for the report and as Markdown for a summary. Pure: dictionaries in, text out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

HEAD = ("verdict", "claim", "quantity", "measured", "wanted", "unit", "experiment")
NUMBERS = ("measured", "wanted")
MARKS = {"held": "✔", "breached": "✘", "no data": "?"}
STYLE = """<style>
.verdicts { border-collapse: collapse; font: 13px/1.45 Arial, Helvetica, sans-serif; color: #222; background: #fff; }
.verdicts th, .verdicts td { border-bottom: 1px solid #ddd; padding: 5px 12px 5px 0; text-align: left; vertical-align: top; }
.verdicts th { border-bottom: 2px solid #999; font-weight: bold; }
.verdicts .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.verdicts .verdict { font-weight: bold; white-space: nowrap; }
.verdicts .held { color: #00694d; }
.verdicts .breached { color: #a63c00; }
.verdicts .no-data { color: #555; }
</style>"""


def verdict_table(verdicts: Iterable[Mapping[str, Any]]) -> str:
    """The verdicts as one HTML table with its style; every text in it is escaped.

    Each verdict is a row of ``verdicts.json``: {experiment, objective, measured: float | None, operator, bound: float, unit,
    verdict: held | breached | no data, note, why, source, trials}; ``ValueError`` on any other verdict.
    """
    rows = "".join(f"<tr>{''.join(_cells(verdict))}</tr>\n" for verdict in verdicts)
    head = "".join(f'<th class="number">{name}</th>' if name in NUMBERS else f"<th>{name}</th>" for name in HEAD)
    return f'{STYLE}\n<table class="verdicts">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n'


def verdict_markdown(verdicts: Iterable[Mapping[str, Any]]) -> str:
    """The same table as GitHub's Markdown, one line for each verdict; every text in it is escaped."""
    lines = [f"| {' | '.join(HEAD)} |", f"|{'|'.join('---:' if name in NUMBERS else '---' for name in HEAD)}|"]
    lines += [f"| {' | '.join(_row(verdict, markdown))} |" for verdict in verdicts]
    return "\n".join(lines) + "\n"


def claim(verdict: Mapping[str, Any]) -> str:
    """The sentence of a verdict, with where its bound is from and why there is no number."""
    remarks = {"bound": verdict.get("source"), "no data": verdict["note"]}
    return str(verdict["why"]) + "".join(f" ({word}: {remark})" for word, remark in remarks.items() if remark)


def number(value: float | None) -> str:
    """A measure for people: thousands grouped, three significant digits below a hundred; ``n/a`` where there is none."""
    if value is None or math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == int(value) or abs(value) >= 1000:
        text = f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3g}"
    elif abs(value) >= 0.001:
        text = f"{value:.{max(1, 2 - math.floor(math.log10(abs(value))))}f}".rstrip("0").rstrip(".")
    else:
        text = f"{value:.3g}"
    return text


def _row(verdict: Mapping[str, Any], safe: Callable[[str], str]) -> list[str]:
    word = verdict["verdict"]
    if word not in MARKS:
        raise ValueError(f"verdict: {word!r} is not one of {', '.join(MARKS)}")
    wanted = f"{verdict['operator']} {number(verdict['bound'])}"
    texts = [
        claim(verdict),
        str(verdict["objective"]),
        number(verdict["measured"]),
        wanted,
        str(verdict["unit"]),
        str(verdict["experiment"]),
    ]
    return [f"{MARKS[word]} {word}", *map(safe, texts)]


def _cells(verdict: Mapping[str, Any]) -> list[str]:
    classes = dict.fromkeys(NUMBERS, "number") | {"verdict": f"verdict {str(verdict['verdict']).replace(' ', '-')}"}
    cells = zip(HEAD, _row(verdict, escape), strict=True)
    return [f'<td class="{classes[name]}">{text}</td>' if name in classes else f"<td>{text}</td>" for name, text in cells]


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table in the report's look, with its style; every cell comes as its own, already escaped, element."""
    body = "".join(f"<tr>{''.join(row)}</tr>\n" for row in rows)
    return f'{STYLE}\n<table class="verdicts">\n<thead><tr>{"".join(head)}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n'


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = ()) -> str:
    """GitHub's Markdown table of cells that are already escaped; the columns ``numbers`` are set to the right."""
    right = set(numbers)
    rule = "|".join("---:" if n in right else "---" for n in range(len(head)))
    lines = [f"| {' | '.join(head)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


def markdown(text: str) -> str:
    """``text`` as one cell of GitHub's Markdown, escaped."""
    flat = " ".join(escape(text, quote=False).split())
    return "".join(f"\\{character}" if character in "\\`*_[]|~#" else character for character in flat)
