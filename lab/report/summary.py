"""The session's summary: what held, what did not, what was not shown, and the policy it recommends. Pure: rows in, text out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from lab.judge.claim import BREACHED, HELD, NO_DATA
from lab.report.tables import MARKS, Cell, Table, claim, number, render, verdict_cell

CLAIMS = ("experiment", "claim", "quantity", "target", "measured", "verdict", "records")
SETTINGS = ("setting", "value", "because", "experiment")
ATTENTION = {BREACHED: "Breached", NO_DATA: "No data"}
TITLE = "Elastic Lab: summary of the session"
NOTHING_JUDGED = "Nothing was judged."
NOTHING_CONCLUDED = "No experiment of this session concluded anything about a setting."
NOT_RUN = "no verdict at all: it did not run, or ended before it was judged"


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
    return render("summary.md", **_content(verdicts, conclusions, head, policy_yaml, expected))


def summary_html(
    verdicts: Sequence[Mapping[str, Any]],
    conclusions: Sequence[Mapping[str, str]],
    head: Mapping[str, Any],
    *,
    policy_yaml: str | None = None,
    expected: Sequence[str] = (),
) -> str:
    """The same summary as one HTML page that fetches nothing; its links to records are relative."""
    return render("summary.html", **_content(verdicts, conclusions, head, policy_yaml, expected))


def _content(
    verdicts: Sequence[Mapping[str, Any]],
    conclusions: Sequence[Mapping[str, str]],
    head: Mapping[str, Any],
    policy_yaml: str | None,
    expected: Sequence[str],
) -> dict[str, Any]:
    """What both templates show."""
    longest = max(map(len, re.findall("`+", policy_yaml or "")), default=0)
    return {
        "title": TITLE,
        "head": head,
        "tally": tally(verdicts, expected),
        "attention": _attention(verdicts, expected),
        "claims": Table(CLAIMS, [_claim(row) for row in verdicts], frozenset({CLAIMS.index("measured")})),
        "settings": Table(SETTINGS, [[str(row[name]) for name in SETTINGS] for row in conclusions]),
        "policy_yaml": policy_yaml,
        "fence": "`" * max(3, 1 + longest),
        "nothing_judged": NOTHING_JUDGED,
        "nothing_concluded": NOTHING_CONCLUDED,
    }


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


def _claim(row: Mapping[str, Any]) -> list[str | Cell]:
    """A claim's cells, with links to its records."""
    links = tuple((str(trial), f"records/{quote(str(trial), safe='')}/") for trial in row["trials"])
    texts = [str(row["experiment"]), claim(row), str(row["objective"]), _target(row), _measured(row)]
    return [*texts, verdict_cell(row), Cell(links=links)]
