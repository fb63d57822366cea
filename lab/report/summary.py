"""What a session says: one reading of its content, from which the terminal, summary.md and the session's page are made. Pure.

A broken test, a breach, no data and an invalid trial are in all of them, with the same counts and words.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from lab.judge.claim import BREACHED, HELD, INVALID, KINDS, NO_DATA
from lab.judge.gates import VALID
from lab.number_format import many, number
from lab.report import shipping
from lab.report.coverage import Coverage, Entry
from lab.report.session import (
    AS_EXPECTED,
    BROKEN,
    FAILED,
    HEADINGS,
    NOT_RUN,
    UNEXPECTED,
    Case,
    Row,
    Session,
    Validity,
)
from lab.report.tables import Table
from lab.report.verdict_text import (
    Experiment,
    anchor,
    experiment_of,
    in_words,
    measured,
    natural,
    runs,
    short,
    word_cell,
)

GATES = ("gate", "at most", "decides", "why", "source")
SETTINGS = ("setting", "value", "because", "experiment")
TITLE = "Elastic Lab: summary of the session"
NOTHING_JUDGED = "Nothing was judged."
NOTHING_CONCLUDED = "No experiment of this session concluded anything about a setting."
WELL_SO_FAR = "In what ran nothing broke and nothing was breached."
ALL_WELL = "Nothing broke and nothing was breached."
WITHOUT = "Figures without data"
MISSING_TEXT = "no verdict at all: it did not run, or ended before it was judged"
NOT_SELECTED = "of tests that were not selected"


@dataclass(frozen=True)
class Summary:
    """What a ``session`` comes to."""

    session: Session

    @cached_property
    def rows(self) -> list[Row]:
        """All verdicts, in the natural order of experiments."""
        return [row for experiment in self.experiments for answer in experiment.answers for row in answer.test.rows]

    @cached_property
    def experiments(self) -> list[Experiment]:
        """Every experiment of the session and every expected one, 1, 2, ... 10, and then those with a name."""
        tests: dict[str, list[Case]] = {name: [] for name in self.session.expected}
        for test in self.session.tests:
            tests.setdefault(test.experiment, []).append(test)
        shown = {name: several for name, several in tests.items() if not several or any(one.is_shown for one in several)}
        return [experiment_of(name, shown[name]) for name in sorted(shown, key=natural)]

    @cached_property
    def missing(self) -> list[str]:
        """The expected experiments without any verdict, in that order: none held, and none was breached either."""
        judged = {row.experiment for row in self.rows}
        return [name for name in dict.fromkeys(self.session.expected) if name not in judged]

    def count(self, kind: str) -> Counter[str]:
        """How many bounds of a kind have each word."""
        return Counter(row.verdict for row in self.rows if row.kind == kind)

    @cached_property
    def told(self) -> Counter[str]:
        """How many verdicts are told under each of HEADINGS."""
        return Counter(row.heading for row in self.rows)

    @property
    def is_well(self) -> bool:
        """Whether nothing needs attention but breaches that were expected."""
        headings = [heading for heading, _ in self.attention if heading != WITHOUT]
        return not self._sentences or headings == [AS_EXPECTED]

    @cached_property
    def outcomes(self) -> Counter[str]:
        """How many tests passed, failed, broke, were skipped or did not run."""
        return Counter(test.outcome for test in self.session.tests)

    @cached_property
    def decision(self) -> shipping.Decision | None:
        """Whether a user's file can be shipped; None for a session of other experiments."""
        return shipping.of(self.session)

    @cached_property
    def ended(self) -> list[Case]:
        """The tests that broke but for invalid trials, and those that failed although no verdict of theirs says so."""
        return [
            test
            for test in self.session.tests
            if (test.outcome == BROKEN and not test.is_invalid)
            or (test.outcome == FAILED and all(row.passes for row in test.rows))
        ]

    @cached_property
    def coverage(self) -> Coverage:
        """How much of the session ran, of what it was asked for."""
        return Coverage(self.session)

    @property
    def facts(self) -> dict[str, str]:
        """Facts of the session by their names; those that are not known are left out."""
        head = self.session.head
        others = f"{head.others} more trial{'s' * (head.others > 1)} in this folder, {NOT_SELECTED}" if head.others else ""
        found = {name: getattr(head, name) for name in ("date", "commit", "scale", "fidelity", "runtime", "machine")}
        found |= {"trials": str(head.trials or ""), "not judged": others, "seeds of the traffic": head.seeds}
        found |= {"seed of the order": head.order_seed, "runs": f"{head.runs} of each trial"}
        return {name: text for name, text in found.items() if text}

    @cached_property
    def figures(self) -> list[tuple[Entry, int]]:
        """An entry for each reason why figures of a test, or of a sheet to be signed, have no data, and how many they are."""
        shown = [(test.called, anchor(test.id), test.figures) for test in self.session.tests]
        shown += [("To be signed", anchor(f"sign-off {one.title}"), one.figures) for one in self.session.sign_offs]
        found = []
        for called, place, figures in shown:
            for why in filter(None, dict.fromkeys(figures.values())):
                names = [name for name, reason in figures.items() if reason == why]
                found.append((Entry(called, f"{why} ({'; '.join(names)})", place), len(names)))
        return found

    @property
    def headline(self) -> str:
        """The session in a few sentences: how much of it ran, what broke, was breached or is missing, and what has no data."""
        several = [one.figures for one in self.session.tests] + [one.figures for one in self.session.sign_offs]
        shown, absent = sum(map(len, several)), sum(count for _, count in self.figures)
        told = self._sentences or [ALL_WELL]
        if absent:
            told = [*told, f"{absent} of {many(shown, 'figure')} shown {'has' if absent == 1 else 'have'} no data."]
        return " ".join(told)

    @cached_property
    def _sentences(self) -> list[str]:
        """What there is to say of verdicts, tests and trials; nothing of a whole session in which all held."""
        by_invalid = sum(test.outcome == BROKEN and test.is_invalid for test in self.session.tests)
        failed = sum(test.outcome == FAILED for test in self.ended)
        claims, known = self.count("claim")[BREACHED], self.told[AS_EXPECTED]
        some = f", {'all' if known == claims else known} of them expected" if known else ""
        told = [
            (self.outcomes[BROKEN] - by_invalid, "test is broken", "tests are broken"),
            (by_invalid, "test is broken by an invalid trial", "tests are broken by invalid trials"),
            *((self.count(kind)[BREACHED], f"{kind} was breached", f"{kind}s were breached") for kind in KINDS[:-1]),
            (claims, "claim was breached, as expected" if known else "claim was breached", f"claims were breached{some}"),
            (self.told[UNEXPECTED], "claim held, not as expected", "claims held, not as expected"),
            (failed, "test failed beside its claims", "tests failed beside their claims"),
            (self.told["Invalid"], "verdict is invalid", "verdicts are invalid"),
            (self.told["No data"], "verdict has no data", "verdicts have no data"),
            (len(self.validity[NO_DATA]), "trial is not known to be valid", "trials are not known to be valid"),
            (len(self.missing), "experiment is missing", "experiments are missing"),
        ]
        said = [f"{count} {one if count == 1 else many}." for count, one, many in told if count]
        sentences = [*self.coverage.sentences, *said]
        if not self.rows:
            sentences.append(NOTHING_JUDGED)
        elif sentences == self.coverage.sentences and sentences:
            sentences.append(WELL_SO_FAR)
        return sentences

    @property
    def tally(self) -> str:
        """How many bounds of each kind held, were breached or had no data, and what broke or is missing.

        Kinds are counted apart: a control that shows an effect is no claim that holds. That all held is said of invariants.
        """
        counts = []
        for kind in KINDS:
            words = self.count(kind)
            shown = [f"{words[word]} {word}" for word in (HELD, BREACHED, NO_DATA)]
            shown[1] += f" ({known} as expected)" if (known := self.told[AS_EXPECTED]) and kind == "claim" else ""
            shown += [f"{words[INVALID]} {INVALID}"] if words[INVALID] else []
            unstated = sum(row.kind == kind and not row.source for row in self.rows)
            counts.append(f"{kind}s: {', '.join(shown)}" + (f" ({unstated} without a source)" if unstated else ""))
        trouble = self.missing or self.outcomes[BROKEN] or self.ended or self.coverage.left
        if set(self.count(KINDS[0])) == {HELD} and not trouble:
            counts[0] += ", all held"
        counts += [f"tests: {self.outcomes[word]} {word}" for word in (BROKEN, NOT_RUN) if self.outcomes[word]]
        counts += [f"{len(self.missing)} of {len(set(self.session.expected))} experiments missing"] if self.missing else []
        return "; ".join(counts)

    @cached_property
    def attention(self) -> list[tuple[str, list[Entry]]]:
        """(heading, its entries) for what broke, each kind of verdict that is no pass, and what was not judged."""
        found = [("Not run", self.coverage.entries)]
        for outcome, heading in ((BROKEN, "Broken"), (FAILED, "Failed beside its claims")):
            tests = [test for test in self.ended if test.outcome == outcome]
            entries = [Entry(f"{test.called}, {test.name}", short(test.remark), anchor(test.id)) for test in tests]
            found.append((heading, entries))
        for heading in HEADINGS:
            rows = [(test, row) for test in self.session.tests for row in test.rows if row.heading == heading]
            found.append((heading, [Entry(test.called, in_words(row), anchor(test.id)) for test, row in rows]))
        found.append(("Missing", [Entry(name.replace("_", " "), MISSING_TEXT, anchor(name)) for name in self.missing]))
        found.append((WITHOUT, [entry for entry, _ in self.figures]))
        return [(heading, entries) for heading, entries in found if entries]

    @cached_property
    def validity(self) -> dict[str, list[Validity]]:
        """The trials that are invalid, not known to be valid, and valid."""
        return {word: [one for one in self.session.validity if one.word == word] for word in (INVALID, NO_DATA, VALID)}

    @property
    def validity_counts(self) -> str:
        """How many trials are valid, invalid, or have no data; "" where none was judged."""
        counts = ", ".join(f"{len(self.validity[word])} {word}" for word in (VALID, INVALID, NO_DATA))
        trials = len(self.session.validity)
        return f"{trials} trial{'s' if trials > 1 else ''}: {counts}" if trials else ""

    @property
    def validity_table(self) -> Table:
        """A row for each trial, those that are not valid first."""
        several = [one for trials in self.validity.values() for one in trials]
        return Table(("trial", "validity", "reason"), [[one.trial, word_cell(one.word), one.remark] for one in several])

    @property
    def gates(self) -> Table:
        """What a trial must show to be valid: a row for each gate."""
        rows = []
        for one in self.session.gates:
            decides = "yes" if one.kind == "control" else "no, it is shown"
            rows.append([one.objective, f"{number(one.bound)} {one.unit}", decides, one.why, one.source])
        return Table(GATES, rows, frozenset({GATES.index("at most")}))

    @property
    def settings(self) -> Table:
        """What experiments concluded about settings, and why."""
        rows = sorted(self.session.conclusions, key=lambda row: natural(row.experiment))
        return Table(SETTINGS, [[getattr(row, name) for name in SETTINGS] for row in rows])

    @property
    def lines(self) -> list[str]:
        """Each verdict in a line with its kind, number, bound and unit, and the tally; none where nothing was judged."""
        told = []
        for row in self.rows:
            more = f"; {runs(row)}" if row.repeats or row.pairs else ""
            shown = "no data" if row.measured is None else measured(row, "{:,.4g}".format)
            said = "" if row.as_expected is None else "; as expected" if row.as_expected else "; not as expected"
            worth = f"; {row.real_time}" if row.real_time else ""
            told.append(f"{row.verdict:>8}  {row.kind:<9}  {row.objective}: {shown} (wanted {row.target}){more}{said}{worth}")
        return [*told, self.tally] if told else []

    @property
    def terminal(self) -> list[tuple[str, list[str]]]:
        """(title, its lines) of each part of what a terminal shows at the session's end; the headline comes last."""
        not_valid = [*self.validity[INVALID], *self.validity[NO_DATA]]
        validity = [f"{one.word:>8}  {one.trial}: {one.remark}" for one in not_valid]
        parts = [
            ("objectives", self.lines),
            ("validity of the trials", [self.validity_counts, *validity] if self.validity_counts else []),
            ("faults of the lab", self.session.faults),
            ("bad input", self.session.refused),
            ("not run", [f"{one.name}: {one.text}" for one in self.coverage.entries]),
            ("the session", [self.headline]),
            (str(self.decision), self.decision.lines if self.decision else []),
        ]
        return [(title, lines) for title, lines in parts if lines]

    def folder(self, trial: str) -> str:
        """The address of a trial's record, relative to the folder of results."""
        parts = Path(self.session.folders.get(trial, "")).parts or ("records", trial)
        return "/".join(quote(part, safe="") for part in parts) + "/"
