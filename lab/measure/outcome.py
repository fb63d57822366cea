"""The outcome of the runs at several scales: which measures are faithful at which scale, and what that makes of a claim.

``similarity.yaml`` beside this module has the outcome. ``python -m tests.scale`` writes it and shows
it as tables. A measure that has no row at a scale is not shown to be faithful there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml

from lab import validation, wholefile, yamlfile
from lab.errors import InputError
from lab.inputs.scale import REAL, Scale
from lab.judge.origin import Origin
from lab.measure.similarity import FAITHFUL, NO_DATA, UNDECIDED, UNFAITHFUL, Row

FILE = Path(__file__).with_name("similarity.yaml")
HEAD = "# `python -m tests.scale` writes this and shows it as tables; lab/measure/outcome.py reads it.\n"
REFUTED = "refuted at real time"
WORDS = (FAITHFUL, UNFAITHFUL, UNDECIDED, NO_DATA)


@dataclass(frozen=True)
class Runs:
    """The runs of one ``profile`` at one ``scale``: how many ``blocks`` count, how many records are ``left_out`` as invalid.

    ``dates``, ``machine``, ``commit`` and ``policy`` say which session it was, ``rate`` that of the duets' traffic.
    """

    profile: str
    scale: str
    blocks: int
    left_out: int
    dates: str
    machine: str
    commit: str
    policy: str
    rate: float


_Of = TypeVar("_Of", Runs, Row)


@dataclass(frozen=True)
class Outcome:
    """The outcome against the scale ``reference``: the ``runs`` that it stands on, and a row for each number and scale."""

    reference: str
    runs: tuple[Runs, ...]
    rows: tuple[Row, ...]

    def faithful(self, measure: str, scale: str) -> bool:
        """Whether ``measure`` is shown to be faithful at ``scale``: on each profile that ran at the reference.

        No data on one of them shows nothing, and so does an interval that is too wide, and a scale at which one of them has not
        run: the mildest profile may come first.
        """
        at_reference, at_scale = ({one.profile for one in self.runs if one.scale == name} for name in (self.reference, scale))
        if at_reference - at_scale:
            return False
        return {row.verdict for row in self.rows if (row.measure, row.scale) == (measure, scale)} == {FAITHFUL}

    def beside(self, earlier: Outcome) -> Outcome:
        """This one's profiles that have rows, and those of ``earlier`` that have none here, in order of their names.

        A profile's own rows are never mixed: an error is of the runs of one profile at two scales.
        """
        new = {one.profile for one in self.rows}

        def chosen(ours: Sequence[_Of], others: Sequence[_Of]) -> tuple[_Of, ...]:
            kept = [one for one in ours if one.profile in new] + [one for one in others if one.profile not in new]
            return tuple(sorted(kept, key=lambda one: one.profile))

        return Outcome(self.reference, chosen(self.runs, earlier.runs), chosen(self.rows, earlier.rows))

    def write(self, file: Path) -> None:
        """Write it as YAML, one line a row."""
        content = {"reference": self.reference, "runs": _lines(self.runs), "rows": _lines(self.rows)}
        wholefile.write(file, HEAD + yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=10_000))


NOTHING = Outcome(REAL, (), ())


def read(file: Path) -> Outcome:
    """The outcome in ``file``. Raises :class:`InputError` for one that can't be used."""
    found = validation.read(Outcome, yamlfile.read(file), file)
    for n, row in enumerate(found.rows):
        if row.verdict not in WORDS:
            raise InputError(file, f"rows[{n}].verdict", row.verdict, f"one of {', '.join(WORDS)}")
    return found


def _lines(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Plain rows; six digits are more than any of them is known to."""
    plain = (asdict(row).items() for row in rows)
    return [{name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in row} for row in plain]


@cache
def committed() -> Outcome:
    """The outcome that comes with the lab."""
    return read(FILE)


def remark(kind: str, origin: Origin, scale: Scale, outcome: Outcome, refuted: str = "") -> str:
    """What a claim of ``kind`` on a quantity of ``origin``, judged at ``scale``, is worth at real time; "" if it is the same.

    An invariant is said of the run that it was measured in, and a control of the method. Neither is said of real time.
    ``refuted`` is what real time showed of the claim, where that breached it.
    """
    if kind != "claim" or scale.time == 1:
        return ""
    if refuted:
        return f"{scale.name} only; {REFUTED}: {refuted}"
    if not origin.measures or not all(outcome.faithful(one, scale.name) for one in origin.measures):
        what = "size not validated" if origin.compared else "not validated"
        return f"{scale.name} only; {what} at real time"
    factor = origin.dimension.at_real_time(1.0, scale.time, scale.rate)
    return "" if factor == 1 else f"{scale.name}; stands for {factor:g} times as much at real time"
