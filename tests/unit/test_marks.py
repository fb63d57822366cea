"""The marks in the table of verdicts: those of today, and what a quantity's name alone tells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab import paths
from lab.archive import table
from lab.archive.lock import FOLDER
from lab.measure.outcome import committed
from tests import marks

ROWS = table.read(paths.PROJECT / FOLDER)
FLIPS = next(row for row in ROWS if row.claim == "to tell busy pods from idle ones ends the flapping")
ALONE, SIZE = "quick only; not validated at real time", "quick only; size not validated at real time"


def test_the_tables_marks_are_those_of_today() -> None:
    """``python -m tests.marks`` writes them: after an outcome of scales, or a claim that real time refuted."""
    assert [row for row in ROWS if row.real_time != marks.mark(row)] == []
    assert {FLIPS.scale, FLIPS.real_time} == {"quick", "quick only; refuted at real time: 4 flips (2026-11-24-slow-start)"}


def test_every_name_in_the_outcome_of_scales_is_known() -> None:
    """A quantity that scales are compared by has the measures of all rows of that name."""
    for row in committed().rows:
        assert row.measure in marks.origins()[row.name].measures


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"quantity": "drain time"}, ALONE),
        ({"quantity": "one over another"}, ALONE),
        ({"quantity": "one over another", "real_time": SIZE}, SIZE),
        ({"quantity": "drain time", "real_time": SIZE}, ALONE),
        ({"quantity": "replicas above the floor at baseline", "real_time": ALONE}, ""),
        ({"quantity": "one over another", "kind": "control", "real_time": SIZE}, ""),
        ({"quantity": "one over another", "scale": "real", "real_time": SIZE}, ""),
        ({"quantity": "one over another", "value": "", "real_time": SIZE}, ""),
    ],
)
def test_a_mark_is_of_class_quantity_and_scale(changed: dict[str, str], words: str) -> None:
    """The session's own word stays where the name is no measure's; what is shown to be faithful loses its mark."""
    assert marks.mark(replace(FLIPS, claim="another", **changed)) == words
