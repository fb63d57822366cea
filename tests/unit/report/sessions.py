"""Made-up sessions for tests of what is said of one, and what a reader sees of their summaries."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from lab.report import page as renderer
from lab.report.session import Case, Session
from lab.report.summary import Summary
from tests.unit.report.test_tables import VERDICT

HELD = VERDICT | {"experiment": "2 reaction"}
BREACHED = HELD | {
    "objective": "drain",
    "measured": 1.62,
    "bound": 1.5,
    "unit": "x",
    "verdict": "breached",
    "why": "two hot | ones",
}
NO_DATA = HELD | {"experiment": "4 ceiling", "objective": "idle", "measured": None, "verdict": "no data", "note": "no spike"}
INVALID = HELD | {"experiment": "3 dip", "objective": "dip", "verdict": "invalid", "note": "steal 0.3"}
INVARIANT = HELD | {"kind": "invariant", "source": "text 1"}
CONCLUSION = {
    "experiment": "4 ceiling",
    "setting": "maxReplicaCount",
    "value": "24",
    "because": "24 surplus pods owned 0 partitions and added 0 messages/s",
}
HEAD = {"scale": "standard", "runtime": "binary", "machine": "2 cores", "commit": None}
Page = Callable[..., str]


def content(
    rows: Sequence[dict[str, Any]],
    concluded: Sequence[dict[str, str]] = (),
    head: Mapping[str, Any] | None = None,
    *,
    expected: Sequence[str] = (),
    policy_yaml: str | None = None,
    outcomes: Mapping[str, str] | None = None,
    stopped: str = "",
) -> dict[str, Any]:
    """The content of a session whose experiments have one test each, which judged these rows."""
    tests: dict[str, Case] = {}
    for row in rows:
        name = row["experiment"]
        tests.setdefault(name, Case(name, name, outcome="passed")).rows.append(row)
    for name, outcome in (outcomes or {}).items():
        test = tests.setdefault(name, Case(name, name))
        test.outcome, test.remark = outcome, f"why {name} {outcome}"
    made = Session(tests=tests, conclusions=list(concluded), expected=expected, stopped=stopped).content(Path())
    return made | {"head": head or {}, "policy": policy_yaml}


def markdown(*given: Any, **named: Any) -> str:
    """summary.md of :func:`content`."""
    return renderer.markdown(Summary(content(*given, **named)))


def html(*given: Any, **named: Any) -> str:
    """The session's page of :func:`content`."""
    return renderer.html(Summary(content(*given, **named)))


def terminal(*given: Any, **named: Any) -> str:
    """What a terminal shows at the end of :func:`content`'s session."""
    parts = Summary(content(*given, **named)).terminal
    return "\n".join(line for title, lines in parts for line in (title, *lines))


PAGES = [markdown, html]
pages = pytest.mark.parametrize("page", PAGES)


def plain(text: str) -> str:
    """A page's words without its markup."""
    return unescape(re.sub(r"\\(.)", r"\1", re.sub(r"<[^>]*>|\*\*", "", text)))


def section(text: str, heading: str) -> str:
    """What stands under one heading, without markup; empty if there is no such heading."""
    parts = re.split(r"^## |<h2>|<nav", text, flags=re.MULTILINE)
    return next((plain(part) for part in parts if part.startswith(heading)), "")
