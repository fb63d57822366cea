"""How much of a session ran, of what it was asked for: its tests, its experiments and its trials. Pure.

A session that was interrupted says so before anything else: what did not run neither held nor was breached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lab.report.answers import Entry, anchor, natural, title
from lab.report.session import INTERRUPTED, NOT_RUN

INCOMPLETE = "The session is incomplete"


@dataclass(frozen=True)
class Extent:
    """What the ``content`` of a session.json says of its own extent; one of before plans has only the tests that began."""

    content: Mapping[str, Any]

    @cached_property
    def experiments(self) -> dict[str, list[Mapping[str, Any]]]:
        """The tests that were asked for, by experiment, in the natural order."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        for test in self.content["tests"]:
            found.setdefault(test["experiment"], []).append(test)
        return {name: found[name] for name in sorted(found, key=natural)}

    @cached_property
    def left(self) -> dict[str, list[Mapping[str, Any]]]:
        """The tests that did not run, by experiment."""
        found = {name: [one for one in tests if _is_left(one)] for name, tests in self.experiments.items()}
        return {name: tests for name, tests in found.items() if tests}

    @property
    def whole(self) -> bool:
        """Whether all that was asked for ran."""
        return not self.left

    @property
    def sentences(self) -> list[str]:
        """That the session is not whole, how much of it ran, and what did not; none for a whole session."""
        if self.whole:
            return []
        tests = sum(map(len, self.experiments.values()))
        ran = tests - sum(map(len, self.left.values()))
        counts = [_share(len(self.experiments) - len(self.left), len(self.experiments), "experiment")]
        counts.append(_share(ran, tests, "test"))
        asked = self.content.get("asked", {}).get("trials", 0)
        trials = _share(self.content["asked"]["done"], asked, "trial") + " that they asked for" if asked else ""
        if not trials and (trials_judged := self.content["head"].get("trials")):
            trials = f"{trials_judged} trials"
        counts += [trials] if trials else []
        none = [_number(name) for name, each in self.left.items() if len(each) == len(self.experiments[name])]
        part = [_number(name) for name in self.left if _number(name) not in none]
        absent = [f"all of {', '.join(none)}" if none else "", f"a part of {', '.join(part)}" if part else ""]
        return [f"{self._why}: {_joined(counts)} ran.", f"Not run: {'; '.join(filter(None, absent))}."]

    @property
    def entries(self) -> list[Entry]:
        """One for each experiment that did not run, or not as a whole, with its tests in words."""
        found = []
        for name, tests in self.left.items():
            asked = len(self.experiments[name])
            said = "; ".join(title(one) + (f" ({one['remark']})" if one["remark"] else "") for one in tests)
            found.append(
                Entry(name.replace("_", " "), f"{_share(len(tests), asked, 'test')} did not run: {said}", anchor(name))
            )
        return found

    @property
    def _why(self) -> str:
        stopped = str(self.content.get("stopped", ""))
        if not stopped:
            return INCOMPLETE
        return "The session was interrupted" if stopped == INTERRUPTED else f"The session was stopped ({stopped})"


def _is_left(test: Mapping[str, Any]) -> bool:
    """Whether a test did not come to its end; what judged without a test of pytest's has no end to come to."""
    return test["outcome"] == NOT_RUN and (not test["rows"] or bool(test["remark"]))


def _share(count: int, of: int, noun: str) -> str:
    return f"{count} of {of} {noun}{'s' if of != 1 else ''}"


def _joined(parts: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def _number(name: str) -> str:
    """The number of an experiment, or its name where it has none."""
    return name.partition("_")[0] if name[:1].isdigit() else name.replace("_", " ")
