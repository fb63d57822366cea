"""What a session says: one model of its content, from which the terminal, summary.md and the session's page are made. Pure.

A broken test, a breach, a figure without data and an invalid trial are in all of them, with the same counts and the same words.
Invariants, controls and claims are counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lab.judge.claim import BREACHED, HELD, INVALID, KINDS, NO_DATA
from lab.judge.gates import VALID
from lab.number_format import beside, number
from lab.report.answers import (
    Entry,
    Experiment,
    Row,
    anchor,
    called,
    experiment_of,
    in_words,
    is_invalid,
    is_shown,
    measured,
    natural,
    runs_of,
    short,
    target,
    title,
    verdict,
)
from lab.report.extent import Extent
from lab.report.session import BROKEN, FAILED, NOT_RUN
from lab.report.tables import Cell, Table, claim, interval_of, source, verdict_cell
from lab.report.tables import kind as kind_of

CLAIMS = ("experiment", "kind", "claim", "quantity", "target", "source", "measured", "runs", "verdict", "records")
GATES = ("gate", "at most", "decides", "why", "source")
NOT_VALID = (INVALID, NO_DATA)
SETTINGS = ("setting", "value", "because", "experiment")
TITLE = "Elastic Lab: summary of the session"
NOTHING_JUDGED = "Nothing was judged."
NOTHING_CONCLUDED = "No experiment of this session concluded anything about a setting."
WELL_SO_FAR = "In what ran nothing broke, nothing was breached, and every figure is there."
ALL_WELL = "Nothing broke, nothing was breached, and every figure is there."
MISSING_TEXT = "no verdict at all: it did not run, or ended before it was judged"


@dataclass(frozen=True)
class Summary:
    """What the ``content`` of a session.json comes to."""

    content: Mapping[str, Any]

    @cached_property
    def rows(self) -> list[Row]:
        """All verdicts, in the natural order of experiments. Raises ``ValueError`` for one with an unknown word."""
        found = [row for experiment in self.experiments for answer in experiment.answers for row in answer.test["rows"]]
        for row in found:
            verdict(row)
        return found

    @cached_property
    def experiments(self) -> list[Experiment]:
        """Every experiment of the session and every expected one, 1, 2, ... 10, and then those with a name."""
        tests: dict[str, list[Mapping[str, Any]]] = {name: [] for name in self.content["expected"]}
        for test in self.content["tests"]:
            tests.setdefault(test["experiment"], []).append(test)
        shown = {name: several for name, several in tests.items() if not several or any(map(is_shown, several))}
        return [experiment_of(name, shown[name]) for name in sorted(shown, key=natural)]

    @cached_property
    def missing(self) -> list[str]:
        """The expected experiments without any verdict, in that order: none held, and none was breached either."""
        judged = {row["experiment"] for row in self.rows}
        return [name for name in dict.fromkeys(self.content["expected"]) if name not in judged]

    def count(self, kind: str) -> Counter[str]:
        """How many bounds of a kind have each word."""
        return Counter(verdict(row) for row in self.rows if kind_of(row) == kind)

    @cached_property
    def outcomes(self) -> Counter[str]:
        """How many tests passed, failed, broke, were skipped or did not run."""
        return Counter(test["outcome"] for test in self.content["tests"])

    @cached_property
    def ended(self) -> list[Mapping[str, Any]]:
        """The tests that broke but for invalid trials, and those that failed although no verdict of theirs says so."""
        return [
            test
            for test in self.content["tests"]
            if (test["outcome"] == BROKEN and not is_invalid(test))
            or (test["outcome"] == FAILED and all(verdict(row) == HELD for row in test["rows"]))
        ]

    @cached_property
    def extent(self) -> Extent:
        """How much of the session ran, of what it was asked for."""
        return Extent(self.content)

    @property
    def headline(self) -> str:
        """The session in a few sentences: how much of it ran, what broke, was breached, is invalid, without data or missing."""
        by_invalid = sum(test["outcome"] == BROKEN and is_invalid(test) for test in self.content["tests"])
        cause = f", {by_invalid} of them by invalid trials" if by_invalid else ""
        said = [_say(self.outcomes[BROKEN], f"test is broken{cause}", f"tests are broken{cause}")]
        said += [_say(self.count(kind)[BREACHED], f"{kind} was breached", f"{kind}s were breached") for kind in KINDS]
        failed = sum(test["outcome"] == FAILED for test in self.ended)
        said.append(_say(failed, "test failed beside its claims", "tests failed beside their claims"))
        words = Counter(map(verdict, self.rows))
        said.append(_say(words[INVALID], "verdict is invalid", "verdicts are invalid"))
        said.append(_say(words[NO_DATA], "verdict has no data", "verdicts have no data"))
        unknown = len(self.validity[NO_DATA])
        said.append(_say(unknown, "trial is not known to be valid", "trials are not known to be valid"))
        said.append(_say(len(self.missing), "experiment is missing", "experiments are missing"))
        sentences = [*self.extent.sentences, *filter(None, said)]
        if not self.rows:
            sentences.append(NOTHING_JUDGED)
        elif not self.extent.whole and len(sentences) == len(self.extent.sentences):
            sentences.append(WELL_SO_FAR)
        return " ".join(sentences or [ALL_WELL])

    @property
    def well(self) -> bool:
        """Whether nothing needs attention."""
        return self.headline == ALL_WELL

    @property
    def tally(self) -> str:
        """How many bounds of each kind held, were breached or had no data, and what broke or is missing.

        Kinds are never counted together: a control that shows an effect says nothing of whether a claim holds. That all held is
        said of invariants alone, which must hold in every run, and never beside a broken test.
        """
        counts = []
        for kind in KINDS:
            words = self.count(kind)
            rows = [row for row in self.rows if kind_of(row) == kind]
            shown = [f"{words[word]} {word}" for word in (HELD, BREACHED, NO_DATA)]
            shown += [f"{words[INVALID]} {INVALID}"] if words[INVALID] else []
            unstated = sum(not row.get("source") for row in rows)
            counts.append(f"{kind}s: {', '.join(shown)}" + (f" ({unstated} without a source)" if unstated else ""))
        trouble = self.missing or self.outcomes[BROKEN] or self.ended or not self.extent.whole
        if set(self.count(KINDS[0])) == {HELD} and not trouble:
            counts[0] += ", all held"
        counts += [f"tests: {self.outcomes[word]} {word}" for word in (BROKEN, NOT_RUN) if self.outcomes[word]]
        expected = set(self.content["expected"])
        counts += [f"{len(self.missing)} of {len(expected)} experiments missing"] if self.missing else []
        return "; ".join(counts)

    @cached_property
    def attention(self) -> list[tuple[str, list[Entry]]]:
        """(heading, its entries) for what broke, each kind of verdict that is no pass, and what was not judged."""
        found = [("Not run", self.extent.entries)]
        for outcome, heading in ((BROKEN, "Broken"), (FAILED, "Failed beside its claims")):
            tests = [test for test in self.ended if test["outcome"] == outcome]
            entries = [Entry(f"{called(test)}, {title(test)}", short(test["remark"]), anchor(test["id"])) for test in tests]
            found.append((heading, entries))
        for word, heading in ((BREACHED, "Breached"), (INVALID, "Invalid"), (NO_DATA, "No data")):
            entries = []
            for test in self.content["tests"]:
                for row in test["rows"]:
                    if verdict(row) == word:
                        entries.append(Entry(f"{called(test)}, {row['objective']}", in_words(row), anchor(test["id"])))
            found.append((heading, entries))
        found.append(("Missing", [Entry(name.replace("_", " "), MISSING_TEXT, anchor(name)) for name in self.missing]))
        return [(heading, entries) for heading, entries in found if entries]

    @cached_property
    def validity(self) -> dict[str, list[Mapping[str, str]]]:
        """The trials that are valid, invalid, and not known to be either: {trial, word, remark} of each."""
        return {word: [one for one in self.content["validity"] if one["word"] == word] for word in (VALID, INVALID, NO_DATA)}

    @property
    def validity_counts(self) -> str:
        """How many trials are valid, invalid, or have no data; "" where none was judged."""
        counts = ", ".join(f"{len(several)} {word}" for word, several in self.validity.items())
        trials = len(self.content["validity"])
        return f"{trials} trial{'s' if trials > 1 else ''}: {counts}" if trials else ""

    @property
    def validity_table(self) -> Table:
        """A row for each trial, those that are not valid first."""
        several = [*self.validity[INVALID], *self.validity[NO_DATA], *self.validity[VALID]]
        rows: list[list[str | Cell]] = [
            [one["trial"], Cell(one["word"], style=f"verdict {one['word'].replace(' ', '-')}"), one["remark"]]
            for one in several
        ]
        return Table(("trial", "validity", "reason"), rows)

    @property
    def gates(self) -> Table:
        """What a trial must show to be valid: a row for each gate."""
        rows = [
            [
                str(one["objective"]),
                f"{number(one['bound'])} {one['unit']}",
                "yes" if one["kind"] == "control" else "no, it is shown",
                str(one["why"]),
                str(one["source"]),
            ]
            for one in self.content.get("gates", [])
        ]
        return Table(GATES, rows, frozenset({GATES.index("at most")}))

    @property
    def claims(self) -> Table:
        """Every verdict with its number, its target, its runs and links to its records."""
        return Table(CLAIMS, [self._claim(row) for row in self.rows], frozenset({CLAIMS.index("measured")}))

    @property
    def settings(self) -> Table:
        """What experiments concluded about settings, and why."""
        rows = sorted(self.content["conclusions"], key=lambda row: natural(row["experiment"]))
        return Table(SETTINGS, [[str(row[name]) for name in SETTINGS] for row in rows])

    @property
    def sections(self) -> list[tuple[str, str, Table]]:
        """(title, note, table) of each further section."""
        return [(one["title"], one["note"], Table.of(one["table"])) for one in self.content["sections"]]

    @property
    def lines(self) -> list[str]:
        """Each verdict in a line with its kind, number, bound and unit, and the tally; none where nothing was judged."""
        told = []
        for row in self.rows:
            runs = f"; {found}" if (found := interval_of(row)) else ""
            value = beside(row["measured"], row["bound"], "{:,.4g}".format)
            shown = "no data" if row["measured"] is None else f"{value} {row['unit']}"
            wanted = f"{row['operator']} {row['bound']:,g} {row['unit']}"
            told.append(f"{verdict(row):>8}  {kind_of(row):<9}  {row['objective']}: {shown} (wanted {wanted}){runs}")
        return [*told, self.tally] if told else []

    @property
    def terminal(self) -> list[tuple[str, list[str]]]:
        """(title, its lines) of each part of what a terminal shows at the session's end; the headline comes last."""
        validity = [f"{one['word']:>8}  {one['trial']}: {one['remark']}" for word in NOT_VALID for one in self.validity[word]]
        parts = [
            ("objectives", self.lines),
            ("validity of the trials", [self.validity_counts, *validity] if self.validity_counts else []),
            ("faults of the lab", self.content["faults"]),
            ("bad input", self.content["refused"]),
            ("not run", [f"{one.name}: {one.text}" for one in self.extent.entries]),
            ("the session", [self.headline]),
        ]
        return [(title, lines) for title, lines in parts if lines]

    def folder(self, trial: str) -> str:
        """The address of a trial's record, relative to the folder of results."""
        parts = Path(self.content["folders"].get(trial, "")).parts or ("records", trial)
        return "/".join(quote(part, safe="") for part in parts) + "/"

    def _claim(self, row: Row) -> list[str | Cell]:
        links = Cell(links=tuple((str(trial), self.folder(str(trial))) for trial in row["trials"]))
        texts = [str(row["experiment"]), kind_of(row), claim(row), str(row["objective"]), target(row), source(row)]
        return [*texts, measured(row), runs_of(row), verdict_cell(row), links]


def _say(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}." if count else ""
