"""An experiment of a session: judges its records, attaches the evidence, and fails the test that breached an objective."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from lab.errors import Breach, NoData
from lab.judge.aggregate import interval
from lab.judge.claim import HELD, Verdict, absent, judge
from lab.judge.quantity import Comparison, Quantity
from lab.record.store import Record
from lab.report import evidence as report
from lab.report.compare import comparison_table
from lab.report.session import Session

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

    def chart(self, name: str, make: Callable[[], Any]) -> None:
        """Attach a chart of this experiment's own; ``make`` draws it."""
        self._charts[name] = make

    def report(self, name: str, figures: Figures) -> None:
        """Add figures to the experiment's table. They are shown and not judged; a quantity without a number is "n/a"."""
        self._figures[name] = _shown(figures)

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

        Every claim is judged, then one :class:`Breach` names each that did not hold. The evidence is attached also when the
        block raises.
        """
        named = _named(records)
        verdicts: list[Verdict] = []

        def claim(comparison: Comparison, sentence: str, *, kind: str = "claim", source: str = "") -> None:
            verdicts.append(judge(comparison, sentence, kind=kind, source=source))

        try:
            yield claim
        except NoData as missing:  # of what the block does beside its claims
            verdicts.append(absent(str(missing)))
        finally:
            self._close(named, verdicts)
        if failed := [str(verdict) for verdict in verdicts if verdict.verdict != HELD]:
            raise Breach("\n".join(failed))

    def _close(self, named: Mapping[str, Record], verdicts: Sequence[Verdict]) -> None:
        """Attach the evidence, and keep the verdicts for the session."""
        table = self._session.judged(verdicts, self._experiment, [record.name for record in named.values()])
        self._session.records.extend(named.values())
        shown: list[Mapping[str, Mapping[str, float | None]]] = [
            *([self._figures] if self._figures else []),
            report.side_by_side(named),
        ]
        title = f"{self._experiment}: {', '.join(named)}"
        self._session.tables[title] = "\n".join(comparison_table(one).markdown for one in shown)
        report.attach(named, table, self._note, self._charts, shown)


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
