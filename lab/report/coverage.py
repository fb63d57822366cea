"""How much of a session ran, of what it was asked for: what did not run neither held nor was breached. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from lab.report.session import INTERRUPTED, NOT_RUN, Case, Session
from lab.report.verdict_text import anchor, natural


@dataclass(frozen=True)
class Entry:
    """One thing that needs attention: ``name`` says where, ``text`` what, ``anchor`` is its place on the page."""

    name: str
    text: str
    anchor: str


@dataclass(frozen=True)
class Coverage:
    """What of ``session`` ran and what did not."""

    session: Session

    @cached_property
    def experiments(self) -> dict[str, list[Case]]:
        """The tests that were asked for, by experiment, in the natural order."""
        found: dict[str, list[Case]] = {}
        for test in self.session.tests:
            found.setdefault(test.experiment, []).append(test)
        return {name: found[name] for name in sorted(found, key=natural)}

    @cached_property
    def left(self) -> dict[str, list[Case]]:
        """The tests that did not run, by experiment."""
        found = {name: [one for one in tests if _is_left(one)] for name, tests in self.experiments.items()}
        return {name: tests for name, tests in found.items() if tests}

    @property
    def sentences(self) -> list[str]:
        """That the session is not whole, how much of it ran, and what did not; none for a whole session."""
        if not self.left:
            return []
        tests = sum(map(len, self.experiments.values()))
        ran = tests - sum(map(len, self.left.values()))
        counts = [_share(len(self.experiments) - len(self.left), len(self.experiments), "experiment")]
        counts.append(_share(ran, tests, "test"))
        if self.session.asked:
            counts.append(_share(self.session.done, self.session.asked, "trial") + " that they asked for")
        elif self.session.head.trials:
            counts.append(f"{self.session.head.trials} trials")
        none = [_number(name) for name, each in self.left.items() if len(each) == len(self.experiments[name])]
        part = [_number(name) for name in self.left if _number(name) not in none]
        absent = [f"all of {', '.join(none)}" if none else "", f"a part of {', '.join(part)}" if part else ""]
        why = f"The session was stopped ({self.session.stopped})" if self.session.stopped else "The session is incomplete"
        if self.session.stopped == INTERRUPTED:
            why = "The session was interrupted"
        said = f"{why}: {', '.join(counts[:-1])} and {counts[-1]} ran."
        return [said, f"Not run: {'; '.join(filter(None, absent))}."]

    @property
    def entries(self) -> list[Entry]:
        """One for each experiment that did not run, or not as a whole, with its tests in words."""
        found = []
        for name, tests in self.left.items():
            said = "; ".join(one.name + (f" ({one.remark})" if one.remark else "") for one in tests)
            text = f"{_share(len(tests), len(self.experiments[name]), 'test')} did not run: {said}"
            found.append(Entry(name.replace("_", " "), text, anchor(name)))
        return found


def _is_left(test: Case) -> bool:
    """Whether a test did not come to its end; what judged without a test of pytest's has no end to come to."""
    return test.outcome == NOT_RUN and (not test.rows or bool(test.remark))


def _share(count: int, of: int, noun: str) -> str:
    return f"{count} of {of} {noun}{'s' if of != 1 else ''}"


def _number(name: str) -> str:
    """The number of an experiment, or its name where it has none."""
    return name.partition("_")[0] if name[:1].isdigit() else name.replace("_", " ")
