"""Writes what a person reads of a session: summary.md, and report.html, one file that opens offline and fetches nothing."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab import wholefile
from lab.report import answers, attempts, durations, pictures, session, summary
from lab.report.session import Session
from lab.report.summary import Summary
from lab.report.tables import MARKS, Table, render

if TYPE_CHECKING:
    from markupsafe import Markup

PAGE, MARKDOWN, TIMELINES = "report.html", "summary.md", "timelines.html"
TIMES = "Where the time went"
TIMES_NOTE = "The seconds of each part of every run; before is what the session did since the run before."
ATTEMPTS = "Trials that were begun more than once"
ATTEMPTS_NOTE = "Every attempt has its record; the last whole one is judged."
MOST = 6  # records that are named without a click
SHOWN = 2  # entries of a heading that stand above the rest


@dataclass(frozen=True)
class Around:
    """What lies beside the page: ``exists`` says whether an address does, ``evidence`` has Allure's page of each test's id.

    ``trend`` has the main numbers of earlier sessions.
    """

    exists: Callable[[str], bool] = lambda _: True
    evidence: Mapping[str, str] = field(default_factory=dict)
    trend: Table | None = None


def write(
    results: Path, content: Mapping[str, Any], evidence: Mapping[str, str] | None = None, trend: Table | None = None
) -> Path:
    """Write summary.md and report.html of the session's ``content`` into ``results``; returns the page.

    ``evidence`` has the address of Allure's page of each test, ``trend`` is of its history. Only what is there is linked.
    """
    found = Summary(content)
    around = Around(lambda address: (results / address).exists(), evidence or {}, trend)
    wholefile.write(results / MARKDOWN, markdown(found))
    page = results / PAGE
    wholefile.write(page, html(found, around))
    return page


def leave(results: Path, state: Session) -> Path:
    """Write session.json of the session's ``state`` into ``results``, and what is made of it; returns the page."""
    results.mkdir(parents=True, exist_ok=True)
    if spent := durations.runs({record.name: record.trial for record in state.readable()}.values()):
        state.add_section(TIMES, durations.duration_table(spent), TIMES_NOTE)
    if (tried := attempts.table(results)).rows:
        state.add_section(ATTEMPTS, tried, ATTEMPTS_NOTE)
    content = state.content(results)
    wholefile.write(results / session.FILE, session.as_text(content))
    if state.timelines:
        titles = {test.id: f"{test.heading or test.experiment}: {answers.title(asdict(test))}" for test in state.tests.values()}
        wholefile.write(results / TIMELINES, timelines(state.timelines, titles))
    return write(results, content)


def timelines(specs: Mapping[str, Mapping[str, Any]], titles: Mapping[str, str] | None = None) -> str:
    """One page with every timeline to zoom, and its scripts inside; ``specs`` are Vega-Lite's, by name.

    ``titles`` has the words for each name that is a test's, whose trials are side by side. The others are names of records. The
    specs are compressed: their numbers are most of the page.
    """
    from lab.charts.drawing import scripts

    titles = titles or {}
    packed = {name: _packed(spec) for name, spec in specs.items()}
    groups = {
        "Trials side by side, by test": [(name, titles[name]) for name in specs if name in titles],
        "One trial": [(name, name) for name in specs if name not in titles],
    }
    shown = {heading: entries for heading, entries in groups.items() if entries}
    return render("timelines.html", groups=shown, specs=json.dumps(packed).replace("</", "<\\/"), bundle=scripts())


def _packed(spec: Mapping[str, Any]) -> str:
    """The ``spec`` as gzip in Base64, the same for the same spec."""
    text = json.dumps(spec, separators=(",", ":")).encode()
    return base64.b64encode(gzip.compress(text, mtime=0)).decode()


def markdown(found: Summary) -> str:
    """The summary as GitHub's Markdown; every text in it is escaped."""
    longest = max(map(len, re.findall("`+", found.content["policy"] or "")), default=0)
    return render("summary.md", **_content(found), fence="`" * max(3, 1 + longest))


def html(found: Summary, around: Around | None = None) -> str:
    """The session's page."""
    return render(
        "report.html", **_content(found), around=around or Around(), image=_image, shown=SHOWN, most=MOST, marks=MARKS
    )


def _content(found: Summary) -> dict[str, Any]:
    """What both templates show."""
    content = found.content
    shown = {"s": found, "w": answers, "c": summary, "Table": Table, "title": summary.TITLE}
    return {**shown, "head": content["head"], "policy": content["policy"]}


def _image(svg: str, alt: str) -> Markup:
    from markupsafe import Markup

    return Markup(pictures.image(svg, alt))
