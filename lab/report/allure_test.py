"""What Allure shows of a test: its description in words, its charts and tables, and the steps that each trial took.

The description begins with the answer, its chart and all verdicts; the question, the method and what is asserted follow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import allure
import yaml
from allure_commons import plugin_manager
from allure_commons.model2 import Status, TestStepResult
from allure_commons.reporter import AllureReporter
from allure_commons.types import AttachmentType
from allure_commons.utils import uuid4

from lab.charts.comparison import comparison_chart
from lab.charts.curves import by_trial, compared_runs, duets, timeline_of
from lab.charts.drawing import svg
from lab.charts.thumbnail import thumbnail
from lab.charts.timeline import timeline
from lab.errors import NoData
from lab.judge.claim import Verdict
from lab.record.store import Record
from lab.report import verdict_text
from lab.report.running_session import RunningSession
from lab.report.session import BROKEN, FAILED, PASSED, Case, Row
from lab.report.session_tables import gate_table, other_attempts
from lab.report.tables import comparison_table, image, render

Chart = Callable[[], Any]
VERDICT = "verdict"  # the label
DOCS = "docs/"
ADAPTED = re.compile(r"<style>.*?</style>", re.DOTALL)  # to the reader's scheme, which is not the one of Allure's own switch
PREPARING = "preparing"


def begin(test: Case) -> None:
    """Name the running Allure test, and describe what it asks: that is all there is of one which never ends."""
    allure.dynamic.title(test.name)
    allure.dynamic.description_html(description(test))
    for one in test.known:
        if one.startswith(DOCS):  # from the report in the results of a checkout
            allure.dynamic.link(f"../../{one}/README.md", name=one)


def end(test: Case, drawn: str = "") -> None:
    """Describe what the running Allure test found, with its chart ``drawn`` as SVG, and label it with the word for that."""
    allure.dynamic.description_html(description(test, drawn))
    allure.dynamic.label(VERDICT, verdict_text.answer_of(test).word if test.is_shown else PASSED)


def description(test: Case, drawn: str = "") -> str:
    """The description of a ``test`` as HTML with its own style."""
    found = verdict_text.answer_of(test) if test.rows or test.outcome in (FAILED, BROKEN) else None
    led = [found.led] if found and found.led else []
    return render(
        "description.html",
        answer=found,
        rows=[*led, *(found.rows if found else [])],
        picture=image(ADAPTED.sub("", drawn), test.alt),
        paragraphs=verdict_text.paragraphs(test.note) + test.explained,
        tables=test.tables,
        w=verdict_text,
    )


def attach(
    records: Mapping[str, Record],
    test: Case,
    verdicts: Sequence[Row],
    charts: Mapping[str, Chart],
    measured: Sequence[Mapping[str, Mapping[str, float | None]]],
    validity: Mapping[str, Sequence[Verdict]],
    session: RunningSession,
) -> None:
    """Attach the evidence of a ``test`` to the running Allure test, and keep its small chart in the ``session``.

    ``records`` by what the experiment calls them, ``verdicts`` on them, ``charts`` and ``measured`` its own; ``validity`` has
    the verdicts on each record's gates. The session's ``timelines`` get the Vega-Lite spec of each record's timeline, and of
    several side by side by the test's id. Of a repeated trial the first run alone has its image and its files attached.
    """
    _parameters(records)
    _steps(records)
    allure.attach(verdict_text.verdict_table(verdicts).html, "1 verdicts", AttachmentType.HTML)
    allure.attach(gate_table(validity).html, "1 validity", AttachmentType.HTML)
    allure.attach("".join(comparison_table(one).html for one in measured), "2 before and after", AttachmentType.HTML)
    if len(records) > 1:
        _draw(partial(_side_by_side, records, test, session.timelines), "2 side by side")
    for name, make in charts.items():
        _draw(make, f"3 {name}")
    others = {id(record) for runs in by_trial(records).values() for record in runs[1:]}
    for name, record in records.items():
        if id(record) in others:
            with suppress(NoData, ValueError):
                _timeline(record, session.timelines)
        else:
            _draw(partial(_timeline, record, session.timelines), f"4 timeline: {name}")
            policy = yaml.safe_dump(record.policy.content, sort_keys=False)
            allure.attach(policy, f"5 policy as applied: {name}", AttachmentType.YAML)
            allure.attach.file(str(record.folder / "trial.json"), f"5 trial.json: {name}", AttachmentType.JSON)
            allure.attach.file(str(record.folder / "measures.json"), f"6 measures: {name}", AttachmentType.JSON)
        for other, ended in other_attempts(record):
            named = f"5 another attempt at {name}: {other.name}, {ended}"
            allure.attach.file(str(other / "trial.json"), named, AttachmentType.JSON)
    if len(records) == 1:
        for file in sorted((record.folder / "inputs").glob("*.yaml")):
            allure.attach.file(str(file), f"5 input: {file.name}", AttachmentType.YAML)
    with suppress(NoData, ValueError):  # a record without a curve has no chart
        session.keep_picture(test, *thumbnail(by_trial(records)))


def _timeline(record: Record, timelines: dict[str, dict[str, Any]]) -> Any:
    chart = timeline(timeline_of(record))
    timelines[record.name] = chart.to_dict()
    return chart


def _side_by_side(records: Mapping[str, Record], test: Case, timelines: dict[str, dict[str, Any]]) -> Any:
    runs = by_trial(records)
    first = next(iter(records.values())).inputs
    profiles = sorted({record.inputs.profile_name for record in records.values()})
    subtitle = f"profile {', '.join(profiles)}; scale {first.scale}; {first.runtime} runtime"
    if (most := max(map(len, runs.values()))) > 1:
        subtitle += f"; a line is the median of {most} runs, its band holds all of them"
    chart = comparison_chart(compared_runs(runs), test.name, subtitle, duets(runs))
    timelines.setdefault(test.id, chart.to_dict())
    return chart


def _draw(make: Chart, name: str) -> None:
    """Attach a chart as an image with its size in its name; what can't be drawn says why."""
    try:
        drawn = svg(make())
        allure.attach(drawn, f"{name} ({len(drawn.encode()) / 1000:.0f} kB)", AttachmentType.SVG)
    except (NoData, ValueError) as missing:
        allure.attach(f"no data: {missing}", name, AttachmentType.TEXT)


def _steps(records: Mapping[str, Record]) -> None:
    """Add a step for each trial, with its phases inside, when they were and as long as they took."""
    reporters = [one.allure_logger for one in plugin_manager.get_plugins() if hasattr(one, "allure_logger")]
    for name, record in records.items() if reporters else ():
        trial = record.trial
        if trial.finished is None or not trial.times:
            continue
        at = next(iter(trial.times.values()))
        phases = [(PREPARING, at - trial.begun), *record.phase_lengths]
        with _step(reporters[0], f"{name}: {record.name}", trial.begun, trial.finished):
            at = trial.begun
            for phase, seconds in phases:
                with _step(reporters[0], phase, at, at + seconds):
                    at += seconds


@contextmanager
def _step(reporter: AllureReporter, name: str, begun: float, ended: float) -> Iterator[None]:
    """A step of the running test from ``begun`` to ``ended``, in epoch seconds; what the block adds is inside it."""
    identity = uuid4()
    reporter.start_step(None, identity, TestStepResult(name=name, status=Status.PASSED, start=round(begun * 1000)))
    yield
    reporter.stop_step(identity, stop=round(ended * 1000))


def _parameters(records: Mapping[str, Record]) -> None:
    """What a reader compares tests by; it is no part of a test's identity, so that its history goes on where it changes."""
    inputs = [record.inputs for record in records.values()]
    compared: dict[str, list[object]] = {
        "traffic profiles": [one.profile_name for one in inputs],
        "policies": [one.policy_name for one in inputs],
        "partitions": [one.partitions for one in inputs],
        "scale": [one.scale.name for one in inputs],
        "runtime": [one.runtime for one in inputs],
    }
    for name, values in compared.items():
        allure.dynamic.parameter(name, ", ".join(dict.fromkeys(map(str, values))), excluded=True)
