"""Writes what a person reads of a session: summary.md, and report.html, one file that opens offline and fetches nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab import wholefile
from lab.report import answers, attempts, durations, session, summary
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
SHOWN = 6  # entries of a heading that stand above the rest


@dataclass(frozen=True)
class Around:
    """What lies beside the page: ``exists`` says whether an address does, ``evidence`` has Allure's page of each test's id."""

    exists: Callable[[str], bool] = lambda _: True
    evidence: Mapping[str, str] = field(default_factory=dict)


def write(results: Path, content: Mapping[str, Any], evidence: Mapping[str, str] | None = None) -> Path:
    """Write summary.md and report.html of the session's ``content`` into ``results``; returns the page.

    ``evidence`` has the address of Allure's page of each test. Only what is there is linked.
    """
    found = Summary(content)
    around = Around(lambda address: (results / address).exists(), evidence or {})
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
    wholefile.write(results / session.FILE, json.dumps(content, indent=1, default=str) + "\n")
    if state.timelines:
        wholefile.write(results / TIMELINES, timelines(state.timelines))
    return write(results, content)


def timelines(specs: Mapping[str, Mapping[str, Any]]) -> str:
    """One page with every timeline to zoom, and its scripts inside; ``specs`` are Vega-Lite's, by the name of the record."""
    import vl_convert as vlc

    from lab.report.drawing import VEGA_LITE

    text = json.dumps(specs, separators=(",", ":")).replace("</", "<\\/")
    bundle = vlc.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    return render("timelines.html", names=list(specs), specs=text, bundle=bundle)


def markdown(found: Summary) -> str:
    """The summary as GitHub's Markdown; every text in it is escaped."""
    longest = max(map(len, re.findall("`+", found.content["policy"] or "")), default=0)
    return render("summary.md", **_content(found), fence="`" * max(3, 1 + longest))


def html(found: Summary, around: Around | None = None) -> str:
    """The session's page."""
    return render("report.html", **_content(found), around=around or Around(), image=_image, shown=SHOWN, marks=MARKS)


def _content(found: Summary) -> dict[str, Any]:
    """What both templates show."""
    content = found.content
    shown = {"s": found, "w": answers, "c": summary, "Table": Table, "title": summary.TITLE}
    return {**shown, "head": content["head"], "policy": content["policy"]}


def _image(svg: str, alt: str) -> Markup:
    from markupsafe import Markup

    from lab.report.glance import image  # which needs what draws

    return Markup(image(svg, alt))
