"""``elastic-lab plane``: flips, lateness and price over windows, tolerances and lagThresholds of a scale-down, simulated."""

from __future__ import annotations

import itertools
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from lab.commands import situation
from lab.commands.situation import Question
from lab.commands.text import as_json, number, table
from lab.errors import InputError
from lab.flags import Flags, Kind
from lab.flags import number as number_of
from lab.foresee import variants
from lab.foresee.choice import Outcome, outcome
from lab.foresee.variants import DOWN_TOLERANCE, DOWN_WINDOW, THRESHOLD

FACTORS = (1 / 3, 2 / 3, 1.0, 2.0, 4.0)  # of the given lagThreshold
WINDOWS = "60,120,300,600,900"
TOLERANCES = "0.1,0.5,0.94"
FIGURES = ("flips", "late_s", "worst_age_s", "pod_minutes", "most_replicas")
MOST = 12  # values of one axis
COLUMNS = ("tolerance", "window (s)", "lagThreshold", "flips", "behind (s)", "oldest (s)", "pod-minutes", "most pods", "")


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    situation.add_flags(parser)
    parser.flag("windows", several(0, 3600, whole=True), WINDOWS, "scaleDown.stabilizationWindowSeconds to try, s")
    parser.flag("tolerances", several(0, 1000), TOLERANCES, "scaleDown.tolerance to try, as a ratio")
    text = "lagThreshold to try, messages; by default a third to four times the given one"
    parser.flag("lag-thresholds", several(1, 10**12, whole=True), None, text, optional=True)


def run(options: Namespace) -> int:
    """Simulate the grid and print it. Returns the exit code."""
    question = situation.read(options, "every figure is at real time")
    given = variants.in_force(question.scaled).get(THRESHOLD)
    if not isinstance(given, int):
        types = [trigger["type"] for trigger in question.scaled.content["spec"]["triggers"]]
        raise InputError(question.scaled.where, "spec.triggers", types, "one trigger with a lagThreshold, beside others")
    thresholds = options.lag_thresholds or [max(1, round(given * factor)) for factor in FACTORS]
    found = cells(question, options.windows, options.tolerances, thresholds)
    print(as_json(question.to_dict() | {"cells": _rows(question, found)}) if options.json else _text(question, found))
    if options.chart:
        situation.save(lambda: _chart(question, found), options.chart)
    return 0


def several(least: float, most: float, *, whole: bool = False) -> Kind:
    """A list of different numbers within [least, most], in order, as ``60,300``."""
    one = number_of(least, most)

    def convert(text: str) -> list[float] | list[int]:
        values = [int(part) if whole else one(part) for part in text.split(",")]
        if len(values) > MOST or values != sorted(set(values)) or not all(least <= value <= most for value in values):
            raise ValueError(text)
        return values

    kind = "whole numbers" if whole else "numbers"
    return Kind(convert, f"at most {MOST} {kind} that rise, such as 60,300; each {one.allowed}")


def cells(question: Question, windows: Sequence[int], tolerances: Sequence[float], thresholds: Sequence[int]) -> list[Outcome]:
    """The outcome of each combination, by tolerance, then window, then lagThreshold; each is simulated alone."""
    tried = [
        variants.with_changes(question.scaled, {DOWN_TOLERANCE: tolerance, DOWN_WINDOW: window, THRESHOLD: threshold})
        for tolerance, window, threshold in itertools.product(tolerances, windows, thresholds)
    ]
    return [outcome(question.situation, one, question.objective_s) for one in tried]


def _rows(question: Question, found: Sequence[Outcome]) -> list[dict[str, Any]]:
    """A row for each outcome; "given" marks the one of the values that are in force as the ScaledObject is given."""
    tolerance = variants.rules_of(question.scaled)[1].tolerance
    given = variants.in_force(question.scaled) | {
        DOWN_TOLERANCE: question.situation.controller.tolerance if tolerance is None else tolerance
    }
    return [
        {
            "tolerance": one.variant.changes[DOWN_TOLERANCE],
            "window_s": one.variant.changes[DOWN_WINDOW],
            "lag_threshold": one.variant.changes[THRESHOLD],
            **{name: getattr(one, name) for name in FIGURES},
            "given": one.variant.changes.items() <= given.items(),
        }
        for one in found
    ]


def _text(question: Question, found: Sequence[Outcome]) -> str:
    rows = [
        (*(number(round(row[name], 2)) for name in list(row)[:8]), "as given" if row["given"] else "")
        for row in _rows(question, found)
    ]
    head = [*question.lines(), f"behind: by more than {question.objective_s:g} s; each row is simulated alone"]
    return "\n".join(head) + "\n\n" + table([COLUMNS, *rows], numbers=range(8))


def _chart(question: Question, found: Sequence[Outcome]) -> Any:
    import pandas as pd

    from lab.charts import policies

    title = f"{question.scaled.name} on {question.profile_name}: {len(found)} policies, simulated"
    return policies.plane(pd.DataFrame(_rows(question, found)), title, question.objective_s)
