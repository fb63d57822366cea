"""Made-up sessions for tests of what is said of one, and what a reader sees of their summaries."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from lab.judge.gates import judge_gates
from lab.judge.quantity import Quantity
from lab.report import session_page
from lab.report.session import Case, Conclusion, Head, Row, Session
from lab.report.summary import Summary

HELD = Row(
    objective="reaction",
    measured=71.234,
    operator="<",
    bound=90.0,
    unit="s",
    verdict="held",
    why="fast enough",
    experiment="2 reaction",
    trials=["a1"],
)
BREACHED = replace(HELD, objective="drain", measured=1.62, bound=1.5, unit="x", verdict="breached", why="two hot | ones")
NO_DATA = replace(HELD, experiment="4 ceiling", objective="idle", measured=None, verdict="no data", note="no spike")
INVALID = replace(HELD, experiment="3 dip", objective="dip", verdict="invalid", note="steal 0.3")
INVARIANT = replace(HELD, kind="invariant", source="text 1")
BECAUSE = "24 surplus pods owned 0 partitions and added 0 messages/s"
CONCLUSION = Conclusion("maxReplicaCount", "24", BECAUSE, "4 ceiling")
HEAD = Head(scale="standard: time / 5", runtime="binary", machine="2 cores")
Page = Callable[..., str]


def session(rows: Sequence[Row], *, outcomes: Mapping[str, str] | None = None, **fields: Any) -> Session:
    """A session whose experiments have one test each, which judged these rows."""
    tests: dict[str, Case] = {}
    for row in rows:
        tests.setdefault(row.experiment, Case(row.experiment, row.experiment, outcome="passed")).rows.append(row)
    for name, outcome in (outcomes or {}).items():
        test = tests.setdefault(name, Case(name, name))
        test.outcome, test.remark = outcome, f"why {name} {outcome}"
    return Session(**{"head": HEAD, "tests": list(tests.values())} | fields)


def markdown(*given: Any, **named: Any) -> str:
    """summary.md of :func:`session`."""
    return session_page.markdown(Summary(session(*given, **named)))


def html(*given: Any, **named: Any) -> str:
    """The page of :func:`session`."""
    return session_page.html(Summary(session(*given, **named)), Path("nowhere"))


def terminal(*given: Any, **named: Any) -> str:
    """What a terminal shows at the end of :func:`session`."""
    parts = Summary(session(*given, **named)).terminal
    return "\n".join(line for title, lines in parts for line in (title, *lines))


pages = pytest.mark.parametrize("page", [markdown, html])
everywhere = pytest.mark.parametrize("page", [terminal, markdown, html])


def plain(text: str) -> str:
    """A page's words without its markup."""
    return unescape(re.sub(r"\\(.)", r"\1", re.sub(r"<[^>]*>|\*\*", "", text)))


def section(text: str, heading: str) -> str:
    """What stands under one heading, without markup; empty if there is no such heading."""
    parts = re.split(r"^## |<h2>|<nav", text, flags=re.MULTILINE)
    return next((plain(part) for part in parts if part.startswith(heading)), "")


def gates(**values: float | None) -> tuple[Any, ...]:
    """The verdicts on all gates of a trial: 0, or as given."""
    return tuple(judge_gates(lambda name: Quantity(name, "x", values.get(name, 0.0))))
