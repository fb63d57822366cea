"""Evidence of an experiment: it judges the records, has verdicts, charts and tables attached, and fails on a breach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from lab.charts.curves import by_trial
from lab.errors import Breach, InvalidTrial, NoData
from lab.judge import gates
from lab.judge.aggregate import interval
from lab.judge.claim import Verdict, absent, judge
from lab.judge.measure import Runs
from lab.judge.quantity import Comparison, Quantity, Undecided, absence
from lab.measure import autoscaler, faults
from lab.measure.delivery import AT_LEAST_ONCE, CONTRACT, EXACTLY_ONCE, Guarantee, guarantee
from lab.measure.outcome import REFUTED, committed, remark
from lab.measure.overview import figures, least_differences
from lab.measure.validity import judge_validity
from lab.record.store import Record
from lab.report.allure_test import Chart, attach
from lab.report.running_session import RunningSession
from lab.report.session import Conclusion
from lab.report.tables import comparison_table

Figures = Mapping[str, float | Quantity | None]


def side_by_side(records: Mapping[str, Record]) -> dict[str, dict[str, Quantity]]:
    """Each measure by trial, in the measures' order."""
    found = {name: figures(record) for name, record in records.items()}
    return {measure: {name: row[measure] for name, row in found.items()} for measure in next(iter(found.values()))}


class Claim:
    """Judges comparisons: a call makes a claim, its methods an invariant or a control (:func:`lab.judge.claim.judge`).

    ``sentence`` says what is claimed, ``source`` where the bound is from.
    """

    def __init__(self, judged: Callable[[Verdict, Quantity, str], None]) -> None:
        self._judged = judged

    def __call__(
        self, comparison: Comparison, sentence: str, source: str = "", kind: str = "claim", *, refuted: str = ""
    ) -> None:
        """Claim what is to be found out. ``refuted`` is the number, and its session, by which real time breached the claim."""
        self._judged(judge(comparison, sentence, kind=kind, source=source), comparison.quantity, refuted)

    def control(self, comparison: Comparison, sentence: str, source: str = "") -> None:
        """Claim that the method sees the effect at all."""
        self(comparison, sentence, source, "control")

    def invariant(self, comparison: Comparison, sentence: str, source: str = "") -> None:
        """Claim what must hold in every run."""
        self(comparison, sentence, source, "invariant")


class Evidence:
    """Judges the records of one experiment; ``session`` keeps what was judged."""

    def __init__(self, experiment: str, session: RunningSession) -> None:
        self._experiment, self._session = experiment, session
        self._explained: list[str] = []
        self._charts: dict[str, Chart] = {}
        self._figures: dict[str, dict[str, float | None]] = {}
        self._known: dict[str, str] = {}  # as Case.figures
        self._noise: dict[str, dict[str, Quantity]] = {}
        self._marks: list[str] = []

    def chart(self, name: str, make: Chart) -> None:
        """Attach a chart of this experiment's own; ``make`` draws it."""
        self._charts[name] = make

    def chart_of(self, name: str, draw: Callable[[Record], Any], records: Runs[Record]) -> None:
        """Attach what ``draw`` makes of a record; of a trial that was repeated the chart of each run, numbered as elsewhere."""
        for numbered, record in _named({name: records}).items():
            self._charts[numbered] = partial(draw, record)

    def report(self, name: str, figures: Figures) -> None:
        """Add figures to the experiment's table. They are shown and not judged; a quantity without a number is "n/a"."""
        self._figures[name] = _shown(figures)
        self._known |= {f"{name}: {key}": absence(one) for key, one in figures.items()}

    def noise(self, one: Sequence[Record], other: Sequence[Record]) -> None:
        """Show the least difference of each figure that A/A duets of ``one`` and ``other`` can tell, beside the comparison."""
        column = f"A/A differ by up to (n = {len(one)})"
        self._noise = {figure: {column: least} for figure, least in least_differences(one, other, figures).items()}

    def sign_off(self, runs: Runs[Record]) -> None:
        """Put text 1, section 12, as ``runs`` answer it, at the head of the session's page."""
        self._session.signed[self._session.running(self._experiment).id] = runs

    def explain(self, paragraph: str) -> None:
        """Add a paragraph to what is shown of the test; none for an empty text."""
        self._explained += [paragraph] if paragraph else []

    def conclude(self, setting: str, value: object, because: str) -> None:
        """Add a line to the recommended policy: ``setting`` should be ``value``, ``because``; with the mark of the claims."""
        worst = min(self._marks, key=lambda mark: (REFUTED not in mark, "validated" not in mark), default="")
        said = f"{because} ({worst})" if worst else because
        self._session.conclusions.append(Conclusion(setting, f"{value}", said, self._experiment))

    @contextmanager
    def of(
        self,
        records: Runs[Record] | Mapping[str, Runs[Record]],
        *,
        delivery: Guarantee | None = EXACTLY_ONCE,
    ) -> Iterator[Claim]:
        """Judge ``records`` inside the block, several by the names the experiment gives them, the runs of one numbered.

        Every claim is judged, then one :class:`Breach` names each that did not hold, or not as the session expects. A claim
        that it has too few runs for (:class:`Undecided`) is no data, and no breach. The evidence is attached also when the
        block raises. Where a record is invalid, all claims of the block are, since a claim may stand on any of them; nothing
        then held or was breached, and :class:`InvalidTrial` names the gates.

        The last claim is that all records keep the guarantee ``delivery``; with None the block makes no such claim. Records
        with a schedule of faults keep at-least-once, and the invariants of :mod:`lab.measure.faults` and
        :mod:`lab.measure.autoscaler`.
        """
        named = _named(records)
        validity = {name: judge_validity(record) for name, record in named.items()}
        why = "; ".join(f"{name}: {reason}" for name, each in validity.items() if (reason := gates.reason(each)))
        verdicts: list[Verdict] = []
        undecided: list[Verdict] = []
        scales = dict.fromkeys(record.scale for record in named.values())

        def keep(judged: Verdict, quantity: Quantity, refuted: str) -> None:
            marks = [remark(judged.kind, quantity.origin, scale, committed(), refuted) for scale in scales]
            self._marks += (found := list(filter(None, marks)))
            marked = "; ".join(found) if judged.measured is not None else ""
            verdicts.append(self._expected(replace(judged, real_time=marked)))
            if isinstance(quantity, Undecided):
                undecided.append(verdicts[-1])

        claim = Claim(keep)
        try:
            yield claim
            if delivery:
                for found in _invariants(list(records.values()) if isinstance(records, Mapping) else [records], delivery):
                    claim.invariant(*found)
        except NoData as missing:  # of what the block does beside its claims
            verdicts.append(absent(str(missing)))
        finally:
            self._close(named, [gates.invalid(one, why) for one in verdicts] if why else verdicts, validity)
        if why:
            raise InvalidTrial(f"invalid, so nothing is judged: {why}")
        if failed := [str(verdict) for verdict in verdicts if not verdict.passes and verdict not in undecided]:
            raise Breach("\n".join(failed))

    def _expected(self, verdict: Verdict) -> Verdict:
        """``verdict`` with what the session expects of it, where it was told anything."""
        known = self._session.expectations
        return known.judge(self._session.running(self._experiment).id, verdict) if known else verdict

    def _close(
        self, named: Mapping[str, Record], verdicts: Sequence[Verdict], validity: Mapping[str, Sequence[Verdict]]
    ) -> None:
        """Attach the evidence, and keep the verdicts for the session."""
        runs = max(map(len, by_trial(named).values()), default=1)
        table = self._session.judged(verdicts, self._experiment, [record.name for record in named.values()], runs)
        self._session.records.extend(named.values())
        self._session.validity |= {record.name: validity[name] for name, record in named.items()}
        test = self._session.running(self._experiment)
        beside = {figure: row | self._noise.get(figure, {}) for figure, row in side_by_side(named).items()}
        values = {figure: {column: one.value for column, one in row.items()} for figure, row in beside.items()}
        shown: list[Mapping[str, Mapping[str, float | None]]] = [*([self._figures] if self._figures else []), values]
        test.tables.extend(map(comparison_table, shown))
        title = {name: record.name for name, record in named.items()}
        known = {f"{figure}, {title.get(of, of)}": absence(one) for figure, row in beside.items() for of, one in row.items()}
        test.figures |= self._known | known
        test.explained = self._explained  # which grows with the test
        attach(named, test, table, self._charts, shown, validity, self._session)
        for record in named.values():
            record.release()


def breached(record: Record) -> list[str] | None:
    """What an experiment claims of ``record`` alone, and it breaches; None where that is not known.

    It is not of an invalid record, and where none is known to be breached and there is no data for some.
    """
    if (delivery := guarantee(record.inputs)) is None:
        return []
    if gates.reason(judge_validity(record)):
        return None
    holds = {sentence: found.holds for found, sentence, _ in _invariants([Runs([record])], delivery)}
    wrong = [sentence for sentence, held in holds.items() if held is False]
    return None if not wrong and None in holds.values() else wrong


def _invariants(given: Sequence[Runs[Record]], delivery: Guarantee) -> Iterator[tuple[Comparison, str, str]]:
    """What must hold of the runs of each trial, by whether faults were injected in it, with its sentence and its source."""
    struck = [runs for runs in given if runs[0].inputs.faults]
    if whole := [runs for runs in given if not runs[0].inputs.faults]:
        yield delivery.missing(*whole) == 0, delivery.sentence, CONTRACT
    if struck:
        least = AT_LEAST_ONCE if delivery is EXACTLY_ONCE else delivery
        yield least.missing(*struck) == 0, least.sentence, CONTRACT
        for comparison, sentence in (*faults.invariants(struck), *autoscaler.invariants(struck)):
            yield comparison, sentence, faults.SOURCE


def _shown(figures: Figures) -> dict[str, float | None]:
    """The number of each figure; of one that was repeated the median, its interval, and in how many runs."""
    shown: dict[str, float | None] = {}
    for key, one in figures.items():
        shown[key] = one.value if isinstance(one, Quantity) else one
        if isinstance(one, Quantity) and len(one.runs) > 1:
            low, high, _ = interval(one.runs)
            shown |= {f"{key}, from": low, f"{key}, to": high, "runs": len(one.runs)}
    return shown


def _named(records: Runs[Record] | Mapping[str, Runs[Record]]) -> dict[str, Record]:
    """Each record by its name and, where there are several of any, its run."""
    runs = records if isinstance(records, Mapping) else {"trial": records}
    many = any(len(found) > 1 for found in runs.values())
    return {f"{name} #{n}" if many else name: run for name, found in runs.items() for n, run in enumerate(found, 1)}
