"""Writes what a person reads of a session: summary.md, and report.html, one file that opens offline and fetches nothing."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab import wholefile
from lab.errors import NoData
from lab.judge.measure import Runs
from lab.record import store
from lab.record.store import Record
from lab.report import session_tables, sign_off, summary, verdict_text
from lab.report.running_session import PICTURES, RunningSession
from lab.report.session import Case, Session, SignOff
from lab.report.summary import Summary
from lab.report.tables import Table, image, render

PAGE, MARKDOWN, TIMELINES = "report.html", "summary.md", "timelines.html"
TIMES = "Where the time went"
TIMES_NOTE = "The seconds of each part of every run; before is what the session did since the run before."
ATTEMPTS = "Trials that were begun more than once"
ATTEMPTS_NOTE = "Every attempt has its record; the last whole one is judged."
MOST = 6  # records that are named without a click
SHOWN = 2  # entries of a heading that stand above the rest


def leave(results: Path, state: RunningSession) -> Path:
    """Write session.json of the session's ``state`` into ``results``, and what is made of it; returns the page."""
    results.mkdir(parents=True, exist_ok=True)
    if spent := session_tables.runs({record.name: record.trial for record in state.readable()}.values()):
        state.add_section(TIMES, session_tables.duration_table(spent), TIMES_NOTE)
    if (tried := session_tables.attempt_table(results)).rows:
        state.add_section(ATTEMPTS, tried, ATTEMPTS_NOTE)
    readable = {record.name for record in state.readable()}
    signed = {test: runs for test, runs in state.signed.items() if readable >= {one.name for one in runs}}
    state.sign_offs[:] = [_sign_off(results, state, state.tests[test], runs) for test, runs in signed.items()]
    for name, svg in state.pictures.items():
        (results / name).parent.mkdir(exist_ok=True)
        wholefile.write(results / name, svg)
    if state.timelines:
        titles = {test.id: f"{test.called}: {test.name}" for test in state.tests.values()}
        wholefile.write(results / TIMELINES, timelines(state.timelines, titles))
    session = state.session(results)
    session.write(results)
    return write(results, session)


def _sign_off(results: Path, state: RunningSession, test: Case, runs: Runs[Record]) -> SignOff:
    """The sheet of ``test`` with its pictures; lag, replicas and throughput are those of the first run."""
    from lab.charts.curves import timeline_of
    from lab.charts.drawing import svg
    from lab.charts.timeline import timeline

    addresses = {one.name: os.path.relpath(one.folder, results) for one in state.records}
    tests, records = list(state.tests.values()), state.readable()
    found = sign_off.sign_off(test, runs, tests, records, lambda name: f"{addresses[name]}/", state.altering)
    boards = [f"{addresses[one.name]}/{store.BOARD}" for one in runs if (one.folder / store.BOARD).is_file()]
    found = replace(found, board=next(iter(boards), ""), no_board=state.no_board)
    with suppress(NoData, ValueError):  # a record without a curve has no chart
        name = f"{PICTURES}/sign-off-{runs[0].name}.svg"
        state.pictures[name] = svg(timeline(timeline_of(runs[0])))
        found = replace(found, chart=name, alt=f"Lag, replicas and throughput over time, of {runs[0].name}")
    return found


def write(results: Path, session: Session, evidence: Mapping[str, str] | None = None, trend: Table | None = None) -> Path:
    """Write summary.md and report.html of ``session`` into ``results``; returns the page.

    ``evidence`` has the address of Allure's page of each test by its id, ``trend`` the main numbers of earlier sessions.
    """
    found = Summary(session)
    wholefile.write(results / MARKDOWN, markdown(found))
    wholefile.write(results / PAGE, html(found, results, evidence, trend))
    return results / PAGE


def markdown(found: Summary) -> str:
    """The summary as GitHub's Markdown; every text in it is escaped."""
    texts = [found.session.policy or "", found.session.advice.diff if found.session.advice else ""]
    longest = max(map(len, re.findall("`+", "\n".join(texts))), default=0)
    return render("summary.md", s=found, w=verdict_text, c=summary, fence="`" * max(3, 1 + longest))


def html(found: Summary, results: Path, evidence: Mapping[str, str] | None = None, trend: Table | None = None) -> str:
    """The session's page, which stands in the folder ``results``; the others are those of :func:`write`."""

    def picture(name: str, alt: str) -> str:
        file = results / name
        return image(file.read_text(encoding="utf-8"), alt) if name and file.is_file() else ""

    def photo(name: str, alt: str) -> str:
        file = results / name
        return image(file.read_bytes(), alt) if name and file.is_file() else ""

    return render(
        "report.html",
        s=found,
        w=verdict_text,
        c=summary,
        exists=lambda address: (results / address).exists(),
        evidence=evidence or {},
        trend=trend,
        picture=picture,
        photo=photo,
        caption=sign_off.caption,
        shown=SHOWN,
        most=MOST,
    )


def timelines(specs: Mapping[str, Mapping[str, Any]], titles: Mapping[str, str]) -> str:
    """One page with every timeline to zoom, and its scripts inside; ``specs`` are Vega-Lite's, by name, and compressed.

    ``titles`` has the words for each name that is a test's, whose trials are side by side; the others are names of records.
    """
    from lab.charts.drawing import scripts

    texts = {name: json.dumps(spec, separators=(",", ":")).encode() for name, spec in specs.items()}
    packed = {name: base64.b64encode(gzip.compress(text, mtime=0)).decode() for name, text in texts.items()}
    groups = {
        "Trials side by side, by test": [(name, titles[name]) for name in specs if name in titles],
        "One trial": [(name, name) for name in specs if name not in titles],
    }
    shown = {heading: entries for heading, entries in groups.items() if entries}
    return render("timelines.html", groups=shown, specs=json.dumps(packed).replace("</", "<\\/"), bundle=scripts())
