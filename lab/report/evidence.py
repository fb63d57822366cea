"""Evidence of an experiment: it judges the records, attaches verdicts, charts and tables to Allure, and fails on a breach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import allure
import yaml
from allure_commons.types import AttachmentType

from lab.errors import Breach, InvalidTrial, NoData
from lab.judge import gates
from lab.judge.aggregate import interval
from lab.judge.claim import HELD, Verdict, absent, judge
from lab.judge.quantity import Comparison, Quantity, Undecided
from lab.measure.noise import least_differences
from lab.measure.outcome import committed, remark
from lab.measure.overview import figures, overview
from lab.measure.validity import judge_validity
from lab.record.store import Record
from lab.report import attempts
from lab.report.compare import comparison_chart, comparison_table
from lab.report.curves import compared, timeline_of
from lab.report.drawing import svg
from lab.report.glance import glance, image
from lab.report.session import Session
from lab.report.tables import code, verdict_table
from lab.report.timeline import timeline
from lab.report.validity import gate_table

Chart = Callable[[], Any]


def attach(
    records: Mapping[str, Record],
    verdicts: Sequence[dict[str, Any]],
    note: str,
    charts: Mapping[str, Chart],
    measured: Sequence[Mapping[str, Mapping[str, float | None]]],
    validity: Mapping[str, Sequence[Verdict]],
    timelines: dict[str, dict[str, Any]],
) -> tuple[str, str]:
    """Attach the evidence of an experiment to the running Allure test.

    ``records`` by what the experiment calls them, ``note`` its hypothesis and method, ``charts`` and ``measured`` its own.
    ``validity`` has the verdicts on each record's gates. ``timelines`` gets the Vega-Lite spec of each record's timeline, by
    the record's name. The tables of a record stay in its folder, to which the session's page links. Returns the small chart
    of the test for that page, as :func:`picture` does.
    """
    _parameters(next(iter(records.values())))
    for name, record in records.items():
        for phase, seconds in record.phase_lengths:
            with allure.step(f"{name}: {phase}: {seconds:.1f} s"):
                pass
    table = verdict_table(verdicts).html
    paragraphs = "".join(f"<p>{code(part)}</p>" for part in note.strip().split("\n\n"))
    tables = "".join(comparison_table(one).html for one in measured)
    shown = gate_table(validity).html
    drawn = picture(records)
    allure.dynamic.description_html(table + image(*drawn) + paragraphs + shown + tables)
    allure.attach(table, "1 verdicts", AttachmentType.HTML)
    allure.attach(shown, "1 validity", AttachmentType.HTML)
    allure.attach(tables, "2 before and after", AttachmentType.HTML)
    if len(records) > 1:
        _draw(lambda: comparison_chart(compared(records), "Before and after", _subtitle(records)), "2 before and after (chart)")
    for name, make in charts.items():
        _draw(make, f"3 {name}")
    for name, record in records.items():
        _draw(partial(_timeline, record, timelines), f"4 timeline: {name}")
        allure.attach(
            yaml.safe_dump(record.policy.content, sort_keys=False), f"5 policy as applied: {name}", AttachmentType.YAML
        )
        allure.attach.file(str(record.folder / "trial.json"), f"5 trial.json: {name}", AttachmentType.JSON)
        for other, ended in attempts.others(record):
            allure.attach.file(
                str(other / "trial.json"), f"5 another attempt at {name}: {other.name}, {ended}", AttachmentType.JSON
            )
        allure.attach.file(str(record.folder / "measures.json"), f"6 measures: {name}", AttachmentType.JSON)
    if len(records) == 1:
        for file in sorted((record.folder / "inputs").glob("*.yaml")):
            allure.attach.file(str(file), f"5 input: {file.name}", AttachmentType.YAML)
    return drawn


def picture(records: Mapping[str, Record]) -> tuple[str, str]:
    """(SVG, its text) of the test's small chart; both are empty where a record has no curve to draw."""
    runs: dict[str, list[Record]] = {}
    for name, record in records.items():
        runs.setdefault(name.partition(" #")[0], []).append(record)
    try:
        return glance(runs)
    except (NoData, ValueError):
        return "", ""


def side_by_side(records: Mapping[str, Record]) -> dict[str, dict[str, float | None]]:
    """Each measure's value by trial, in the measures' order."""
    found = {name: overview(record) for name, record in records.items()}
    return {measure: {name: row[measure] for name, row in found.items()} for measure in next(iter(found.values()))}


def _timeline(record: Record, timelines: dict[str, dict[str, Any]]) -> Any:
    chart = timeline(timeline_of(record))
    timelines[record.name] = chart.to_dict()
    return chart


def _draw(make: Chart, name: str) -> None:
    """Attach a chart as an image with its size in its name; what can't be drawn says why."""
    try:
        image = svg(make())
        allure.attach(image, f"{name} ({len(image.encode()) / 1000:.0f} kB)", AttachmentType.SVG)
    except (NoData, ValueError) as missing:
        allure.attach(f"no data: {missing}", name, AttachmentType.TEXT)


def _subtitle(records: Mapping[str, Record]) -> str:
    first = next(iter(records.values())).inputs
    profiles = sorted({record.inputs.profile_name for record in records.values()})
    return f"profile {', '.join(profiles)}; scale {first.scale}; {first.runtime} runtime"


def _parameters(record: Record) -> None:
    inputs = record.inputs
    for name, value in {
        "P": inputs.partitions,
        "most replicas allowed": record.policy.max_replicas,
        "lagThreshold": record.policy.lag_threshold,
        "balancer": inputs.workload.balancer,
        "scale": str(inputs.scale),
        "cluster": inputs.runtime,
        "seed": inputs.seed,
        "trial": record.id,
    }.items():
        allure.dynamic.parameter(name, value)


Figures = Mapping[str, float | Quantity | None]


class Claim(Protocol):
    """Judges one comparison; ``sentence``, ``kind`` and ``source`` are those of :func:`lab.judge.claim.judge`."""

    def __call__(self, comparison: Comparison, sentence: str, *, kind: str = "claim", source: str = "") -> None: ...  # noqa: D102


class Evidence:
    """Judges the records of one experiment; ``session`` keeps what was judged, ``note`` is its hypothesis and method."""

    def __init__(self, experiment: str, note: str, session: Session) -> None:
        self._experiment, self._note, self._session = experiment, note, session
        self._charts: dict[str, Callable[[], Any]] = {}
        self._figures: dict[str, dict[str, float | None]] = {}
        self._noise: dict[str, dict[str, float | None]] = {}

    def chart(self, name: str, make: Callable[[], Any]) -> None:
        """Attach a chart of this experiment's own; ``make`` draws it."""
        self._charts[name] = make

    def report(self, name: str, figures: Figures) -> None:
        """Add figures to the experiment's table. They are shown and not judged; a quantity without a number is "n/a"."""
        self._figures[name] = _shown(figures)

    def noise(self, one: Sequence[Record], other: Sequence[Record]) -> None:
        """Show the least difference of each figure that A/A duets of ``one`` and ``other`` can tell, beside the comparison."""
        column = f"A/A differ by up to (n = {len(one)})"
        self._noise = {figure: {column: least.value} for figure, least in least_differences(one, other, figures).items()}

    def explain(self, paragraph: str) -> None:
        """Add a paragraph to the experiment's note; none for an empty text."""
        self._note = "\n\n".join(part for part in (self._note.strip(), paragraph) if part)

    def conclude(self, setting: str, value: object, because: str) -> None:
        """Add a line to the recommended policy: ``setting`` should be ``value``, ``because``."""
        row = {"experiment": self._experiment, "setting": setting, "value": f"{value}", "because": because}
        self._session.conclusions.append(row)

    @contextmanager
    def of(self, records: Record | Sequence[Record] | Mapping[str, Record | Sequence[Record]]) -> Iterator[Claim]:
        """Judge ``records`` inside the block, several by the names the experiment gives them, the runs of one numbered.

        Every claim is judged, then one :class:`Breach` names each that did not hold. A claim that the session has too few runs
        for (:class:`Undecided`) is no data, and no breach. The evidence is attached also when the block raises. Where a record
        is invalid, all claims of the block are, since a claim may stand on any of them; nothing then held or was breached, and
        :class:`InvalidTrial` names the gates.
        """
        named = _named(records)
        validity = {name: judge_validity(record) for name, record in named.items()}
        why = "; ".join(f"{name}: {reason}" for name, each in validity.items() if (reason := gates.reason(each)))
        verdicts: list[Verdict] = []
        undecided: list[Verdict] = []
        scales = dict.fromkeys(record.scale for record in named.values())

        def claim(comparison: Comparison, sentence: str, *, kind: str = "claim", source: str = "") -> None:
            judged, origin = judge(comparison, sentence, kind=kind, source=source), comparison.quantity.origin
            remarks = [remark(kind, origin, scale, committed()) for scale in scales if judged.measured is not None]
            verdicts.append(replace(judged, real_time="; ".join(filter(None, remarks))))
            if isinstance(comparison.quantity, Undecided):
                undecided.append(verdicts[-1])

        try:
            yield claim
        except NoData as missing:  # of what the block does beside its claims
            verdicts.append(absent(str(missing)))
        finally:
            self._close(named, [gates.invalid(one, why) for one in verdicts] if why else verdicts, validity)
        if why:
            raise InvalidTrial(f"invalid, so nothing is judged: {why}")
        if failed := [str(verdict) for verdict in verdicts if verdict.verdict != HELD and verdict not in undecided]:
            raise Breach("\n".join(failed))

    def _close(
        self, named: Mapping[str, Record], verdicts: Sequence[Verdict], validity: Mapping[str, Sequence[Verdict]]
    ) -> None:
        """Attach the evidence, and keep the verdicts for the session."""
        table = self._session.judged(verdicts, self._experiment, [record.name for record in named.values()])
        self._session.records.extend(named.values())
        self._session.validity |= {record.name: validity[name] for name, record in named.items()}
        test = self._session.running(self._experiment)
        beside = {figure: row | self._noise.get(figure, {}) for figure, row in side_by_side(named).items()}
        shown: list[Mapping[str, Mapping[str, float | None]]] = [*([self._figures] if self._figures else []), beside]
        test.tables.extend(comparison_table(one).stored for one in shown)
        drawn = attach(named, table, self._note, self._charts, shown, validity, self._session.timelines)
        if drawn and not test.picture:
            test.picture, test.alt = drawn


def _shown(figures: Figures) -> dict[str, float | None]:
    """The number of each figure; of one that was repeated the median, its interval, and in how many runs."""
    shown: dict[str, float | None] = {}
    for key, one in figures.items():
        shown[key] = one.value if isinstance(one, Quantity) else one
        if isinstance(one, Quantity) and len(one.runs) > 1:
            low, high, _ = interval(one.runs)
            shown |= {f"{key}, from": low, f"{key}, to": high, "runs": len(one.runs)}
    return shown


def _named(records: Record | Sequence[Record] | Mapping[str, Record | Sequence[Record]]) -> dict[str, Record]:
    """Each record by its name and, where there are several of any, its run."""
    if not isinstance(records, Mapping):
        records = {"trial": records}
    runs = {name: [found] if isinstance(found, Record) else found for name, found in records.items()}
    many = any(len(found) > 1 for found in runs.values())
    return {f"{name} #{n}" if many else name: run for name, found in runs.items() for n, run in enumerate(found, 1)}
