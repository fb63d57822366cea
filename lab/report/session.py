"""A session of experiments: its verdicts, its faults, its exit code, and its summary as Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.errors import BAD_INPUT, FAULT, InputError
from lab.judge.claim import Repeats, Verdict

if TYPE_CHECKING:  # a session without experiments, of a project that has the plugin installed, reads no tables
    from lab.record.store import Record
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from lab.judge.claim import BREACHED, HELD, INVALID, KINDS, NO_DATA
from lab.report import tables, validity
from lab.report.tables import MARKS, Cell, Table, claim, number, render, verdict_cell


@dataclass
class Session:
    """``rows`` are those of verdicts.json; ``tables`` the before and after of each experiment, Markdown by title.

    ``validity`` has the verdicts on the gates of each trial, by the name of its record. ``faults`` and ``refused`` name the
    tests that broke: by a fault of the lab, or by bad input that only a test could see, as a record that is not there.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    conclusions: list[dict[str, Any]] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    validity: dict[str, Sequence[Verdict]] = field(default_factory=dict)
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
        """Each verdict with its kind, number, bound and unit, and how many of each kind held; none where nothing was judged."""
        lines = []
        for row in self.rows:
            number = "no data" if row["measured"] is None else f"{row['measured']:,.4g} {row['unit']}"
            wanted = f"{row['operator']} {row['bound']:,g} {row['unit']}"
            runs = f"; {Repeats(**row['repeats'])}" if row.get("repeats") else ""
            lines.append(f"{row['verdict']:>8}  {tables.kind(row):<9}  {row['objective']}: {number} (wanted {wanted}){runs}")
        return [*lines, tally(self.rows)] if lines else []

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
        text = [summary_markdown(session.rows, session.conclusions, self._head(), **content), "## Before and after"]
        text += [f"### {name}\n\n{table}" for name, table in session.tables.items()]
        if session.validity:
            table = validity.session_table(session.validity)
            text += ["## Validity", table.markdown]
            allure.attach(table.html, "validity", allure.attachment_type.HTML)
        if (tried := attempts.table(self.results)).rows:
            text += ["## Attempts", "Each of these trials was begun more than once; no record was run over.", tried.markdown]
            allure.attach(tried.html, "attempts", allure.attachment_type.HTML)
        (self.results / "summary.md").write_text("\n".join(text))
        page = summary_html(session.rows, session.conclusions, self._head(), **content)
        allure.dynamic.description_html(page)
        allure.attach(page, "summary", allure.attachment_type.HTML)
        return missing(session.rows, expected)

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


CLAIMS = ("experiment", "kind", "claim", "quantity", "target", "source", "measured", "verdict", "records")
SETTINGS = ("setting", "value", "because", "experiment")
ATTENTION = {BREACHED: "Breached", INVALID: "Invalid", NO_DATA: "No data"}
TITLE = "Elastic Lab: summary of the session"
NOTHING_JUDGED = "Nothing was judged."
NOTHING_CONCLUDED = "No experiment of this session concluded anything about a setting."
NOT_RUN = "no verdict at all: it did not run, or ended before it was judged"


def summary_markdown(
    verdicts: Sequence[Mapping[str, Any]],
    conclusions: Sequence[Mapping[str, str]],
    head: Mapping[str, Any],
    *,
    policy_yaml: str | None = None,
    expected: Sequence[str] = (),
) -> str:
    """The session's summary as GitHub's Markdown; every text in it is escaped.

    ``verdicts`` are the rows of ``verdicts.json``; ``conclusions`` [{experiment, setting, value, because}] say what an
    experiment concluded about one setting of the recommended policy, whose YAML is ``policy_yaml``; ``head`` is printed as one
    line; an experiment that is ``expected`` and has no verdict is named. ``ValueError`` on an unknown verdict.
    """
    return render("summary.md", **_content(verdicts, conclusions, head, policy_yaml, expected))


def summary_html(
    verdicts: Sequence[Mapping[str, Any]],
    conclusions: Sequence[Mapping[str, str]],
    head: Mapping[str, Any],
    *,
    policy_yaml: str | None = None,
    expected: Sequence[str] = (),
) -> str:
    """The same summary as one HTML page that fetches nothing; its links to records are relative."""
    return render("summary.html", **_content(verdicts, conclusions, head, policy_yaml, expected))


def _content(
    verdicts: Sequence[Mapping[str, Any]],
    conclusions: Sequence[Mapping[str, str]],
    head: Mapping[str, Any],
    policy_yaml: str | None,
    expected: Sequence[str],
) -> dict[str, Any]:
    """What both templates show."""
    longest = max(map(len, re.findall("`+", policy_yaml or "")), default=0)
    return {
        "title": TITLE,
        "head": head,
        "tally": tally(verdicts, expected),
        "attention": _attention(verdicts, expected),
        "claims": Table(CLAIMS, [_claim(row) for row in verdicts], frozenset({CLAIMS.index("measured")})),
        "settings": Table(SETTINGS, [[str(row[name]) for name in SETTINGS] for row in conclusions]),
        "policy_yaml": policy_yaml,
        "fence": "`" * max(3, 1 + longest),
        "nothing_judged": NOTHING_JUDGED,
        "nothing_concluded": NOTHING_CONCLUDED,
    }


def missing(verdicts: Iterable[Mapping[str, Any]], expected: Sequence[str]) -> list[str]:
    """The ``expected`` experiments that have no verdict at all, in that order: none held, and none breached either."""
    judged = {row["experiment"] for row in verdicts}
    return [name for name in dict.fromkeys(expected) if name not in judged]


def tally(verdicts: Sequence[Mapping[str, Any]], expected: Sequence[str] = ()) -> str:
    """How many bounds of each kind held, were breached or had no data, and how many experiments were not judged at all.

    Kinds are never counted together: a control that shows an effect says nothing of whether a claim holds. That all held is
    said of invariants alone, which must hold in every run.
    """
    counts = [f"{kind}s: {_counts([row for row in verdicts if tables.kind(row) == kind])}" for kind in KINDS]
    invariants = [_word(row) for row in verdicts if tables.kind(row) == KINDS[0]]
    absent = len(missing(verdicts, expected))
    if set(invariants) == {HELD} and not absent:
        counts[0] += ", all held"
    return "; ".join(counts) + (f"; {absent} of {len(set(expected))} experiments missing" if absent else "")


def _counts(verdicts: Iterable[Mapping[str, Any]]) -> str:
    """How many of ``verdicts`` have each word; "invalid" and bounds without a source are named where there are any."""
    rows = list(verdicts)
    words = [_word(row) for row in rows]
    counts = [f"{words.count(word)} {word}" for word in (HELD, BREACHED, NO_DATA)]
    counts += [f"{words.count(INVALID)} {INVALID}"] if INVALID in words else []
    unstated = sum(not row.get("source") for row in rows)
    return ", ".join(counts) + (f" ({unstated} without a source)" if unstated else "")


def _word(row: Mapping[str, Any]) -> str:
    word = str(row["verdict"])
    if word not in MARKS:
        raise ValueError(f"verdict: {word!r} is not one of {', '.join(MARKS)}")
    return word


def _attention(verdicts: Sequence[Mapping[str, Any]], expected: Sequence[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """(heading, its (name, text) entries) for each kind of verdict that needs attention and for what was not judged."""
    found = []
    for word, heading in ATTENTION.items():
        entries = [(f"{row['experiment']}, {row['objective']}", _in_words(row)) for row in verdicts if _word(row) == word]
        found.append((heading, entries))
    found.append(("Missing", [(name, NOT_RUN) for name in missing(verdicts, expected)]))
    return [(heading, entries) for heading, entries in found if entries]


def _in_words(row: Mapping[str, Any]) -> str:
    """A verdict in words: the number, the target, and the claim's sentence with its remarks."""
    return f"{_measured(row)}, wanted {_target(row)}; {claim(row)}"


def _target(row: Mapping[str, Any]) -> str:
    return _with_unit(f"{row['operator']} {number(row['bound'])}", row)


def _measured(row: Mapping[str, Any]) -> str:
    return number(None) if row["measured"] is None else _with_unit(number(row["measured"]), row)


def _with_unit(text: str, row: Mapping[str, Any]) -> str:
    return f"{text} {row['unit']}".rstrip()


def _claim(row: Mapping[str, Any]) -> list[str | Cell]:
    """A claim's cells, with links to its records."""
    links = tuple((str(trial), f"records/{quote(str(trial), safe='')}/") for trial in row["trials"])
    texts = [str(row["experiment"]), tables.kind(row), claim(row), str(row["objective"]), _target(row), tables.source(row)]
    return [*texts, _measured(row), verdict_cell(row), Cell(links=links)]
