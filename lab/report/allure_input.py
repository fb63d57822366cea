"""Allure's results as its report shows them, a copy without noise, and with what a session was asked for and did not run."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lab.report.coverage import Coverage
from lab.report.session import ID, Session
from lab.report.trend import main_numbers, speed_metric
from lab.report.verdict_text import natural

LEAST_MS = 100  # a fixture that takes less is no news
NOISE = ("host", "thread", "framework", "language", "package", "parentSuite", "suite", "subSuite", "story", "tag")
NUMBERS = "main-numbers-perf.json"


def prepare(source: Path, target: Path, session: Session | None) -> None:
    """Copy the results of a ``session`` in ``source`` into the new folder ``target``."""
    target.mkdir()
    results = []
    for file in sorted(source.iterdir()):
        if file.name.endswith("-result.json"):
            made = result(json.loads(file.read_text(encoding="utf-8")))
            results += [] if _is_cut_off(made, session) else [made]
        elif file.name.endswith("-container.json"):
            _write(target / file.name, container(json.loads(file.read_text(encoding="utf-8"))))
        else:
            try:
                os.link(file, target / file.name)
            except OSError:  # a file system without links
                shutil.copyfile(file, target / file.name)
    shown = results + (unrun(session, results) if session else [])
    for place, made in enumerate(sorted(shown, key=_order)):  # by which Allure reads them, and then orders its tree
        _write(target / f"{place:05d}-result.json", made)
    if session:
        _write(target / NUMBERS, metrics(session, results))


def result(made: Mapping[str, Any]) -> dict[str, Any]:
    """A test's result: its labels are the lab's own, and a parameter that is a text stands without quotes."""
    labels = [one for one in made.get("labels", []) if one["name"] not in NOISE or one["value"] == "known"]
    # Allure writes a text as Python does.
    parameters = [one | {"value": re.sub(r"^'(.*)'$", r"\1", str(one["value"]))} for one in made.get("parameters", [])]
    return {**made, "labels": labels, "parameters": parameters, "titlePath": []}


def container(made: Mapping[str, Any]) -> dict[str, Any]:
    """The fixtures of some tests: those that took a while or did not pass, by their own names."""
    kept: dict[str, Any] = {}
    for part in ("befores", "afters"):
        news = filter(_is_news, made.get(part) or [])
        kept[part] = [one | {"name": one["name"].partition("::")[0]} for one in news]  # without the function that ends it
    return {**made, **kept}


def unrun(session: Session, results: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A result for each test that the session was asked for, did not run, and has none of in ``results``."""
    known = {identity for one in results for identity in _ids(one)}
    epics = {label["value"] for one in results for label in one["labels"] if label["name"] == "epic"}
    coverage = Coverage(session)
    found = []
    for test in (one for tests in coverage.left.values() for one in tests if one.id not in known):
        labels = [{"name": ID, "value": test.id}, {"name": "feature", "value": test.called}]
        labels += [{"name": "epic", "value": epic} for epic in sorted(epics)[:1]] + [{"name": "verdict", "value": "not run"}]
        made = dict.fromkeys(("uuid", "fullName", "testCaseId", "historyId"), test.id) | {"name": test.name, "labels": labels}
        said = {"message": f"not run. {' '.join(coverage.sentences)}"}
        found.append({**made, "status": "skipped", "statusDetails": said})
    return found


def metrics(session: Session, results: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The speed of the machine, and the main number of each test that has a result, as Allure keeps them in its history."""
    times = {identity: (one.get("start", 0), one.get("stop", 0)) for one in results for identity in _ids(one)}
    mains = [main for main in main_numbers(session) if main.test.id in times]
    found = [main.metric(place, *times[main.test.id]) for place, main in enumerate(mains)]
    if not times:
        return found
    return [*speed_metric(session, min(begin for begin, _ in times.values()), max(end for _, end in times.values())), *found]


def _is_cut_off(made: Mapping[str, Any], session: Session | None) -> bool:
    """Whether a result is of the test in which the session ended: it has the status of its setup, and no label of pytest's."""
    if session is None or _ids(made):
        return False
    return made["name"] in {one.name for tests in Coverage(session).left.values() for one in tests}


def _order(made: Mapping[str, Any]) -> tuple[Any, ...]:
    """The natural order of experiments, and within one that in which tests began; what did not run comes last."""
    features = [label["value"] for label in made["labels"] if label["name"] == "feature"]
    return natural(features[0] if features else ""), "start" not in made, made.get("start", 0)


def _ids(made: Mapping[str, Any]) -> list[str]:
    return [label["value"] for label in made["labels"] if label["name"] == ID]


def _is_news(fixture: Mapping[str, Any]) -> bool:
    """Whether a fixture took a while or did not pass; of one without an end or a status allure-pytest saw nothing."""
    lasted = (fixture.get("stop") or 0) - (fixture.get("start") or 0)
    return lasted >= LEAST_MS or fixture.get("status", "passed") != "passed"


def _write(file: Path, content: object) -> None:
    file.write_text(json.dumps(content), encoding="utf-8")
