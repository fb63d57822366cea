"""The session's summary: what held, what did not, what was not shown, and the policy it recommends. Pure: rows in, text out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from lab.judge.claim import BREACHED, HELD, NO_DATA
from lab.report.tables import MARKS, claim, html_table, markdown, markdown_table, number

CLAIMS = ("experiment", "claim", "quantity", "target", "measured", "verdict", "records")
SETTINGS = ("setting", "value", "because", "experiment")
MEASURED = CLAIMS.index("measured")
ATTENTION = {BREACHED: "Breached", NO_DATA: "No data"}
TITLE = "Elastic Lab: summary of the session"
NOTHING_JUDGED = "Nothing was judged."
NOTHING_CONCLUDED = "No experiment of this session concluded anything about a setting."
NOT_RUN = "no verdict at all: it did not run, or ended before it was judged"
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ max-width: 1100px; margin: 24px auto; padding: 0 16px; color: #222; background: #fff; }}
body {{ font: 14px/1.5 Arial, Helvetica, sans-serif; overflow-wrap: break-word; }}
h1 {{ font-size: 22px; }} h2 {{ font-size: 17px; margin-top: 28px; }}
.head {{ color: #555; }}
main {{ overflow-x: auto; }}
pre {{ background: #f5f5f5; padding: 10px 14px; overflow-x: auto; font-size: 12px; }}
</style>
</head>
<body>
<main>
{body}</main>
</body>
</html>
"""


def summary_markdown(
    verdicts: Sequence[Mapping[str, Any]],
    conclusions: Sequence[Mapping[str, str]],
    head: Mapping[str, Any],
    *,
    policy_yaml: str | None = None,
    expected: Sequence[str] = (),
) -> str:
    """The session's summary as GitHub's Markdown; every text in it is escaped.

    ``verdicts`` are the rows of ``verdicts.json``; ``conclusions`` [{experiment, setting, value, because}] say what an
    experiment concluded about one setting of the recommended policy, whose YAML is ``policy_yaml``; ``head`` is printed as one
    line; an experiment that is ``expected`` and has no verdict is named. ``ValueError`` on an unknown verdict.
    """
    parts = [f"# {TITLE}", _line(head, markdown), f"**{tally(verdicts, expected)}**"]
    for heading, entries in _attention(verdicts, expected):
        items = "\n".join(f"- **{markdown(name)}**: {markdown(text)}" for name, text in entries)
        parts += [f"## {heading}", items]
    rows = [[*map(markdown, _cells(row)), _records(row, _linked)] for row in verdicts]
    parts += ["## Claims", markdown_table(CLAIMS, rows, numbers=[MEASURED]) if rows else NOTHING_JUDGED]
    parts += ["## Recommended policy"]
    settings = [[markdown(text) for text in _setting(row)] for row in conclusions]
    parts += [markdown_table(SETTINGS, settings) if settings else NOTHING_CONCLUDED]
    if policy_yaml is not None:
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", policy_yaml)), default=0))
        parts += [f"{fence}yaml\n{policy_yaml.rstrip()}\n{fence}"]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def summary_html(
    verdicts: Sequence[Mapping[str, Any]],
    conclusions: Sequence[Mapping[str, str]],
    head: Mapping[str, Any],
    *,
    policy_yaml: str | None = None,
    expected: Sequence[str] = (),
) -> str:
    """The same summary as one HTML page that fetches nothing; its links to records are relative."""
    parts = [f"<h1>{TITLE}</h1>", f'<p class="head">{_line(head, escape)}</p>', f"<p><b>{tally(verdicts, expected)}</b></p>"]
    for heading, entries in _attention(verdicts, expected):
        items = "".join(f"<li><b>{escape(name)}</b>: {escape(text)}</li>\n" for name, text in entries)
        parts += [f"<h2>{heading}</h2>\n<ul>\n{items}</ul>"]
    columns = [f'<th class="number">{name}</th>' if n == MEASURED else f"<th>{name}</th>" for n, name in enumerate(CLAIMS)]
    table = html_table(columns, map(_html_row, verdicts))
    parts += ["<h2>Claims</h2>", table if len(verdicts) else f"<p>{NOTHING_JUDGED}</p>", "<h2>Recommended policy</h2>"]
    settings = [[f"<td>{escape(text)}</td>" for text in _setting(row)] for row in conclusions]
    columns = [f"<th>{name}</th>" for name in SETTINGS]
    parts += [html_table(columns, settings) if settings else f"<p>{NOTHING_CONCLUDED}</p>"]
    if policy_yaml is not None:
        parts += [f"<pre>{escape(policy_yaml.rstrip())}</pre>"]
    return PAGE.format(title=TITLE, body="".join(f"{part}\n" for part in parts))


def missing(verdicts: Iterable[Mapping[str, Any]], expected: Sequence[str]) -> list[str]:
    """The ``expected`` experiments that have no verdict at all, in that order: none held, and none breached either."""
    judged = {row["experiment"] for row in verdicts}
    return [name for name in dict.fromkeys(expected) if name not in judged]


def tally(verdicts: Sequence[Mapping[str, Any]], expected: Sequence[str] = ()) -> str:
    """How many claims held, were breached or had no data, and how many experiments were not judged at all."""
    words = [_word(row) for row in verdicts]
    counts = [f"{words.count(word)} {word}" for word in (HELD, BREACHED, NO_DATA)]
    absent = len(missing(verdicts, expected))
    return ", ".join(counts) + (f"; {absent} of {len(set(expected))} experiments missing" if absent else "")


def _word(row: Mapping[str, Any]) -> str:
    word = str(row["verdict"])
    if word not in MARKS:
        raise ValueError(f"verdict: {word!r} is not one of {', '.join(MARKS)}")
    return word


def _line(head: Mapping[str, Any], safe: Callable[[str], str]) -> str:
    return "; ".join(f"{safe(name)} {safe('unknown' if value is None else str(value))}" for name, value in head.items())


def _attention(verdicts: Sequence[Mapping[str, Any]], expected: Sequence[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """(heading, its (name, text) entries) for each kind of verdict that needs attention and for what was not judged."""
    found = []
    for word, heading in ATTENTION.items():
        entries = [(f"{row['experiment']}, {row['objective']}", _in_words(row)) for row in verdicts if _word(row) == word]
        found.append((heading, entries))
    found.append(("Missing", [(name, NOT_RUN) for name in missing(verdicts, expected)]))
    return [(heading, entries) for heading, entries in found if entries]


def _in_words(row: Mapping[str, Any]) -> str:
    """A verdict in words: the number, the target, and the claim's sentence with its remarks."""
    return f"{_measured(row)}, wanted {_target(row)}; {claim(row)}"


def _target(row: Mapping[str, Any]) -> str:
    return _with_unit(f"{row['operator']} {number(row['bound'])}", row)


def _measured(row: Mapping[str, Any]) -> str:
    return number(None) if row["measured"] is None else _with_unit(number(row["measured"]), row)


def _with_unit(text: str, row: Mapping[str, Any]) -> str:
    return f"{text} {row['unit']}".rstrip()


def _cells(row: Mapping[str, Any]) -> list[str]:
    """The texts of a verdict's cells, but for its records."""
    word = _word(row)
    texts = [str(row["experiment"]), claim(row), str(row["objective"])]
    return [*texts, _target(row), _measured(row), f"{MARKS[word]} {word}"]


def _html_row(row: Mapping[str, Any]) -> list[str]:
    experiment, sentence, quantity, target, measured, verdict = map(escape, _cells(row))
    return [
        f"<td>{experiment}</td>",
        f"<td>{sentence}</td>",
        f"<td>{quantity}</td>",
        f"<td>{target}</td>",
        f'<td class="number">{measured}</td>',
        f'<td class="verdict {_word(row).replace(" ", "-")}">{verdict}</td>',
        f"<td>{_records(row, _html_link)}</td>",
    ]


def _records(row: Mapping[str, Any], link: Callable[[str], str]) -> str:
    return ", ".join(link(str(trial)) for trial in row["trials"])


def _address(trial: str) -> str:
    return f"records/{quote(trial, safe='')}/"


def _linked(trial: str) -> str:
    return f"[{markdown(trial)}]({_address(trial)})"


def _html_link(trial: str) -> str:
    return f'<a href="{_address(trial)}">{escape(trial)}</a>'


def _setting(row: Mapping[str, str]) -> list[str]:
    return [str(row[name]) for name in SETTINGS]
