"""What a session of experiments has judged so far, what broke in it, its summary and its exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.errors import BAD_INPUT, FAULT, InputError
from lab.judge.claim import Repeats, Verdict
from lab.report import summary

if TYPE_CHECKING:  # a session without experiments, of a project that has the plugin installed, reads no tables
    from lab.record.store import Record


@dataclass
class Session:
    """``rows`` are those of verdicts.json; ``tables`` the before and after of each experiment, Markdown by title.

    ``faults`` and ``refused`` name the tests that broke: by a fault of the lab, or by bad input that only a test could see, as
    a record that is not there.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    conclusions: list[dict[str, Any]] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def judged(self, verdicts: Sequence[Verdict], experiment: str, trials: Sequence[str]) -> list[dict[str, Any]]:
        """Keep the ``verdicts`` of an experiment on ``trials``; returns their rows of verdicts.json."""
        rows = [{"experiment": experiment, **asdict(verdict), "trials": list(trials)} for verdict in verdicts]
        self.rows.extend(rows)
        return rows

    def broke(self, test: str, error: BaseException, line: str) -> None:
        """Keep that ``test`` broke by ``error``, which ``line`` describes."""
        (self.refused if isinstance(error, InputError) else self.faults).append(f"{test}: {line}")

    @property
    def exit_code(self) -> int | None:
        """The exit code of a session in which a test broke, None when none did."""
        if self.faults:
            return FAULT
        return BAD_INPUT if self.refused else None

    def lines(self) -> list[str]:
        """Each verdict with its number, bound and unit."""
        lines = []
        for row in self.rows:
            number = "no data" if row["measured"] is None else f"{row['measured']:,.4g} {row['unit']}"
            wanted = f"{row['operator']} {row['bound']:,g} {row['unit']}"
            runs = f"; {Repeats(**row['repeats'])}" if row.get("repeats") else ""
            lines.append(f"{row['verdict']:>8}  {row['objective']}: {number} (wanted {wanted}){runs}")
        return lines

    def environment(self) -> str:
        """The content of Allure's environment.properties; "" without a record."""
        if not self.records:
            return ""
        last = self.records[-1].trial
        return "".join(f"{key}={value}\n" for key, value in {**last.versions, "cpu": last.machine.cpu}.items())


@dataclass
class SessionSummary:
    """Writes the summary of what ``session`` has judged so far into the folder ``results``."""

    session: Session
    results: Path

    def write(self, expected: Sequence[str], recommended: Path) -> list[str]:
        """Write summary.md and attach it to the running test; returns the ``expected`` experiments that were not judged."""
        import allure

        from lab.report import attempts

        session = self.session
        content: dict[str, Any] = {"policy_yaml": recommended.read_text(), "expected": expected}
        text = [summary.summary_markdown(session.rows, session.conclusions, self._head(), **content), "## Before and after"]
        text += [f"### {name}\n\n{table}" for name, table in session.tables.items()]
        if (tried := attempts.table(self.results)).rows:
            text += ["## Attempts", "Each of these trials was begun more than once; no record was run over.", tried.markdown]
            allure.attach(tried.html, "attempts", allure.attachment_type.HTML)
        (self.results / "summary.md").write_text("\n".join(text))
        page = summary.summary_html(session.rows, session.conclusions, self._head(), **content)
        allure.dynamic.description_html(page)
        allure.attach(page, "summary", allure.attachment_type.HTML)
        return summary.missing(session.rows, expected)

    def _head(self) -> dict[str, Any]:
        """Scale, runtime, commit, machine and date of the last record; nothing without one."""
        if not self.session.records:
            return {}
        trial = self.session.records[-1].trial
        return {
            "scale": trial.scale,
            "runtime": trial.inputs.runtime,
            "commit": trial.versions["commit"],
            "machine": f"{trial.machine.cores} cores, {trial.machine.cpu}",
            "date": datetime.fromtimestamp(trial.begun, UTC).date().isoformat(),
        }
