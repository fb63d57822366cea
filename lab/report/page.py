"""Writes what a person reads of a session: summary.md, and report.html, one file that opens offline and fetches nothing."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab import wholefile
from lab.report import summary
from lab.report.summary import Summary
from lab.report.tables import MARKS, Table, render

PAGE, MARKDOWN = "report.html", "summary.md"
SHOWN = 6  # entries of a heading that stand above the rest


@dataclass(frozen=True)
class Around:
    """What lies beside the page: ``exists`` says whether an address does, ``evidence`` has Allure's page of each test's id."""

    exists: Callable[[str], bool] = lambda _: True
    evidence: Mapping[str, str] = field(default_factory=dict)
    timelines: Mapping[str, str] = field(default_factory=dict)


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


def markdown(found: Summary) -> str:
    """The summary as GitHub's Markdown; every text in it is escaped."""
    longest = max(map(len, re.findall("`+", found.content["policy"] or "")), default=0)
    return render("summary.md", **_content(found), fence="`" * max(3, 1 + longest))


def html(found: Summary, around: Around | None = None) -> str:
    """The session's page."""
    return render("report.html", **_content(found), around=around or Around(), picture=_picture, shown=SHOWN, marks=MARKS)


def _content(found: Summary) -> dict[str, Any]:
    """What both templates show."""
    content = found.content
    shown = {"s": found, "w": summary, "Table": Table, "title": summary.TITLE}
    return {**shown, "head": content["head"], "policy": content["policy"]}


def _picture(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
