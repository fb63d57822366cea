"""What is expected of a session's claims: a file lists those that are known to be breached in some runs or in all.

A claim that it doesn't list is expected to hold in every run. So is every invariant and every control, listed or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import comb
from pathlib import Path

from lab import validation, yamlfile
from lab.errors import InputError
from lab.judge.claim import BREACHED, HELD, Verdict

LEVEL = 0.05  # of a claim: a session and the known runs differ where chance alone brings such counts more rarely


@dataclass(frozen=True)
class Known(validation.Strict):
    """What ``sessions`` found of a claim: it ``held`` in some ``of`` its runs; ``seen`` is a number with a unit."""

    held: int
    of: int
    seen: str
    sessions: list[str]

    def __str__(self) -> str:
        word = {0: BREACHED, self.of: HELD}.get(self.held, "held in some runs")
        return f"{word} ({self.seen}, {self.held} of {self.of} held)"


@dataclass(frozen=True)
class Expectations:
    """What is known of claims, by the id of the test and the claim's sentence."""

    known: Mapping[str, Mapping[str, Known]]

    def judge(self, test: str, verdict: Verdict) -> Verdict:
        """``verdict`` of ``test`` with a note on what was expected of it, and :attr:`Verdict.as_expected`.

        It is left as it is where the claim is not listed and held, where a run has no number, and where it is no claim.
        """
        if verdict.kind != "claim" or verdict.measured is None or verdict.verdict not in (HELD, BREACHED):
            return verdict
        one, holds = verdict.repeats, verdict.verdict == HELD
        held, runs = (one.held, one.n) if one else (int(holds), 1)
        known = self.known.get(test, {}).get(verdict.why)
        if known is None and holds:
            return verdict
        now = f"now held {held} of {runs} ({verdict.measured:.4g} {verdict.unit})"
        if known is None:
            return _noted(verdict, f"expected held in every run, {now}", as_expected=False)
        if chance(held, runs, known.held, known.of) < LEVEL:
            return _noted(verdict, f"expected {known}, {now}", as_expected=False)
        return _noted(verdict, f"as expected: {known}", as_expected=True)


def _noted(verdict: Verdict, note: str, as_expected: bool) -> Verdict:
    return replace(verdict, note="; ".join(filter(None, (verdict.note, note))), as_expected=as_expected)


def chance(held: int, runs: int, known_held: int, known_runs: int) -> float:
    """How often counts at least as far apart come by chance, 0 to 1, where both samples have one rate.

    It is Fisher's exact test of two samples, two-sided (R. A. Fisher, Statistical Methods for Research Workers, 1934, section
    21.02): of all ways to share out the runs that held, those that are no likelier than this one. The known rate comes from a
    few runs itself. A binomial test at that rate would take the first run that held, after none did, for a difference.
    """
    both = held + known_held
    ways = [comb(runs, count) * comb(known_runs, both - count) for count in range(both + 1)]  # 0 for more than there are
    seen = comb(runs, held) * comb(known_runs, known_held)
    return sum(way for way in ways if way <= seen) / sum(ways)


def read(file: Path, suite: str) -> Expectations:
    """What ``file`` expects of ``suite``: a mapping of suite, test id and sentence. Raises :class:`InputError`."""
    suites = validation.read(dict[str, dict[str, dict[str, Known]]], yamlfile.read(file), file)
    for name, tests in suites.items():
        for test, claims in tests.items():
            for sentence, known in claims.items():
                if not 0 <= known.held <= known.of or not known.of:
                    allowed = f"0 to {known.of}, the runs, of which there is 1 at least"
                    raise InputError(file, f"{name}.{test}.{sentence}.held", known.held, allowed)
    if suite not in suites:
        raise InputError(file, "suite", suite, f"one of {', '.join(suites)}")
    return Expectations(suites[suite])
