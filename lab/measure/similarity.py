"""Similarity of scales: each measure of the same trials at several scales, stretched to real time, against real time itself.

A trial that is compressed without fault is similar to the real one: a time is a thirtieth of it, a count of messages too, and a
share or a number of pods is the same. Each measure declares its dimension (:mod:`lab.judge.origin`). What remains after the
stretching is the error of the scale.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.inputs.scale import Scale
from lab.judge import samples
from lab.judge.quantity import Quantity
from lab.measure.overview import COMPARED
from lab.record.store import Record

FAITHFUL, UNFAITHFUL, UNDECIDED, NO_DATA = "faithful", "not faithful", "undecided", "no data"
TOLERANCE = 0.1  # as much as rounding may change a time
WORTH = 0.9  # the least confidence of an interval by which anything is said: two one-sided tests at 5 %


@dataclass(frozen=True)
class Figure:
    """A number of a record at real time; ``measure`` is the full name of what returned it, ``value`` None without data."""

    measure: str
    name: str
    unit: str
    value: float | None


def figures(record: Record) -> list[Figure]:
    """Every number of COMPARED, stretched to real time by its dimension and the record's scale."""
    found = [compute(record) for compute in COMPARED]
    quantities = [[one] if isinstance(one, Quantity) else one.quantities() for one in found]
    return [at_real_time(one, record.scale) for several in quantities for one in several]


def at_real_time(quantity: Quantity, scale: Scale) -> Figure:
    """``quantity`` of a trial at ``scale`` as it would be at real time."""
    (measure,) = quantity.origin.measures
    value = None
    if quantity.value is not None and math.isfinite(quantity.value):
        value = quantity.origin.dimension.at_real_time(float(quantity.value), scale.time, scale.rate)
    return Figure(measure, quantity.name, quantity.unit, value)


@dataclass(frozen=True)
class Block:
    """One number in the sides of one block: one side, or the two of an A/A duet."""

    sides: tuple[float, ...]

    @property
    def value(self) -> float:
        """The mean of the sides. They share a machine and a moment, so that they are one run and not two."""
        return statistics.fmean(self.sides)


@dataclass(frozen=True)
class Row:
    """The error of one number at one ``scale`` of one ``profile`` against real time.

    ``n`` and ``reference_n`` blocks are compared, ``reference`` is the median at real time in ``unit``. The error is
    ``relative`` (0.1 for 10 %) where all values are above 0, else in ``unit``. ``low`` to ``high`` holds it with
    ``confidence``. ``tolerance`` is what a faithful one may be, in the error's unit, ``verdict`` a word of this module. Without
    data there are no errors.
    """

    profile: str
    scale: str
    measure: str
    name: str
    unit: str
    n: int
    reference_n: int
    reference: float | None
    relative: bool
    estimate: float | None
    low: float | None
    high: float | None
    confidence: float
    tolerance: float | None
    verdict: str


def error(sample: Sequence[Block], reference: Sequence[Block]) -> tuple[bool, samples.Offset, float]:
    """(whether it is relative, the error of ``sample`` against ``reference``, the tolerance).

    The tolerance is 10 % of the reference, however much its runs differ: noise makes the interval wider, and not the tolerance.
    """
    values, others = [one.value for one in sample], [one.value for one in reference]
    if min(*values, *others) > 0:
        return True, samples.relative_errors(values, others), TOLERANCE
    return False, samples.differences(values, others), TOLERANCE * abs(statistics.median(others))


def judge(offset: samples.Offset, tolerance: float) -> str:
    """Faithful where the whole interval is within the ``tolerance``, not faithful where it is wholly outside, else undecided.

    This is a test of equivalence with the tolerance as its margin: two one-sided tests at 5 % reject where an interval of 90 %
    is within it (Schuirmann 1987, Journal of Pharmacokinetics and Biopharmaceutics 15, 657). An interval of less confidence
    decides nothing.
    """
    if offset.confidence < WORTH - 1e-9:
        return UNDECIDED
    slack = 1e-9 * max(1.0, tolerance)
    if -tolerance - slack <= offset.low and offset.high <= tolerance + slack:
        return FAITHFUL
    return UNFAITHFUL if offset.low > tolerance or offset.high < -tolerance else UNDECIDED


Found = Mapping[str, Sequence[Sequence[Sequence[Figure]]]]  # of one profile: scale, block, side, figure


def compare(profile: str, found: Found, reference: str) -> list[Row]:
    """A row for each number at each scale of ``found`` but the ``reference``, the scale that the others are held to."""
    rows = []
    for place, figure in enumerate(found[reference][0][0]):
        blocks = {scale: _blocks(several, place) for scale, several in found.items()}
        rows += [_row(profile, one, figure, blocks[one], blocks[reference]) for one in found if one != reference]
    return rows


def _blocks(several: Sequence[Sequence[Sequence[Figure]]], place: int) -> list[Block] | None:
    """The number at ``place`` in each block; None where a run has none."""
    values = [[side[place].value for side in sides] for sides in several]
    known = [Block(tuple(value for value in sides if value is not None)) for sides in values]
    return known if known and not any(None in sides for sides in values) else None


def _row(profile: str, scale: str, figure: Figure, sample: list[Block] | None, reference: list[Block] | None) -> Row:
    named = (profile, scale, figure.measure, figure.name, figure.unit)
    sizes = len(sample or ()), len(reference or ())
    if not sample or not reference:
        middle = statistics.median(one.value for one in reference) if reference else None
        return Row(*named, *sizes, middle, False, None, None, None, 0.0, None, NO_DATA)
    relative, offset, tolerance = error(sample, reference)
    middle = statistics.median(one.value for one in reference)
    errors = offset.estimate, offset.low, offset.high, offset.confidence
    return Row(*named, *sizes, middle, relative, *errors, tolerance, judge(offset, tolerance))
