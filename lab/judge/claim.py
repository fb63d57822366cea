"""A claim: a comparison and the sentence it stands for; its verdict carries the number, the bound, the unit and the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from lab.judge.aggregate import interval
from lab.judge.pairs import Difference, Pairs
from lab.judge.quantity import SIGNS, Bound, Comparison, Quantity
from lab.number_format import beside, number

HELD, BREACHED, NO_DATA, INVALID = "held", "breached", "no data", "invalid"
KINDS = ("invariant", "control", "claim")  # in the order in which reports count them


@dataclass(frozen=True)
class Repeats:
    """Of a claim on ``n`` runs: in how many the bound was ``held``, and the ``worst`` number of any run.

    ``low`` to ``high`` holds the true median with ``confidence`` (0 to 1). They are None where a run has no number.
    """

    n: int
    held: int
    worst: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None

    @classmethod
    def of(cls, comparison: Comparison) -> Self:
        """The repeats of ``comparison``, whose quantity was repeated."""
        runs, held = comparison.quantity.runs, comparison.each.count(True)
        low, high, confidence = interval(runs)
        worst = None if low is None else _worst(comparison, [one.number for one in runs])
        return cls(len(runs), held, worst, low, high, confidence)

    def __str__(self) -> str:
        counted = f"held in {self.held} of {self.n}"
        if self.low is None or self.high is None or self.worst is None or self.confidence is None:
            return counted
        interval = f"median within {self.low:.4g} to {self.high:.4g} ({self.confidence:.0%})".replace("%", " %")
        return f"{counted}, worst {self.worst:.4g}, {interval}"


@dataclass(frozen=True)
class Verdict:
    """What the record says of one claim; ``measured`` is None when there was no number, and ``note`` then says why.

    The ``note`` of a number says what it leaves out, where the record holds too little for a part of it.

    ``objective`` names the quantity, ``why`` is the claim's sentence, ``kind`` its class, ``source`` that of its bound. Of a
    repeated trial ``measured`` is the median of its runs, and ``repeats`` says how often the claim was held: it is breached
    by one run that breaches it. Of a difference that duets tell, ``pairs`` says how sure it is. Of an invalid trial the
    ``verdict`` is "invalid", whatever was measured, and ``note`` says why. ``real_time`` says what a claim on a compressed
    trial is worth at real time; it is empty where that is the same. ``as_expected`` is None unless the session
    knows more of the claim than that it should hold (:mod:`lab.judge.expectation`).
    """

    objective: str
    measured: float | None
    operator: str
    bound: float
    unit: str
    verdict: str
    why: str
    note: str = ""
    kind: str = "claim"
    source: str = ""
    repeats: Repeats | None = None
    real_time: str = ""
    pairs: Pairs | None = None
    as_expected: bool | None = None

    @property
    def passes(self) -> bool:
        """Whether it fails no test: it held, or, where that is said of it, it is as expected."""
        return self.verdict == HELD if self.as_expected is None else self.as_expected

    @property
    def target(self) -> str:
        """The bound with its operator and its unit."""
        return f"{SIGNS.get(self.operator, self.operator)} {number(self.bound)} {self.unit}".rstrip()

    def __str__(self) -> str:
        wanted, shows = f"wanted {self.target}", f": {self.why}" if self.why else ""
        if self.repeats is not None:
            wanted += f" ({self.repeats})"
        if self.pairs is not None:
            wanted += f" ({self.pairs})"
        if self.measured is None:
            return f"{self.objective}: {self.verdict} ({self.note}); {wanted}{shows}"
        but = "".join(f" ({one})" for one in (self.note, self.real_time) if one)
        return f"{self.objective}: {beside(self.measured, self.bound)} {self.unit}, {wanted}: {self.verdict}{but}{shows}"


def judge(comparison: Comparison, sentence: str, *, kind: str = "claim", source: str = "") -> Verdict:
    """The verdict on ``comparison``, for which ``sentence`` says what it shows.

    ``kind`` is "invariant" (it must hold in every run), "control" (it shows that the method sees the effect) or "claim" (it is
    said of the world). ``source`` says where the bound is from: an objective of a text, a user's SLO, or a pilot that it names.
    A :class:`Bound` has its own. Raises ``TypeError`` for anything but a comparison, ``ValueError`` for another kind.
    """
    if not isinstance(comparison, Comparison):
        raise TypeError(f"claim() takes a quantity compared with a bound, as in flips(record) == 0; not {comparison!r}")
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r}; allowed: {', '.join(KINDS)}")
    quantity, bound = comparison.quantity, comparison.bound
    holds = comparison.holds
    return Verdict(
        objective=quantity.name,
        measured=quantity.value,
        operator=comparison.operator,
        bound=float(bound),
        unit=quantity.unit,
        verdict=NO_DATA if holds is None else HELD if holds else BREACHED,
        why=sentence,
        note=quantity.why,
        kind=kind,
        source=source or (bound.source if isinstance(bound, Bound) else ""),
        repeats=Repeats.of(comparison) if len(quantity.runs) > 1 else None,
        pairs=quantity.pairs if isinstance(quantity, Difference) else None,
    )


def _worst(comparison: Comparison, values: list[float]) -> float:
    """The number that is furthest on the wrong side of the bound, or least far on the right one."""
    if comparison.operator in ("<", "<="):
        return max(values)
    if comparison.operator in (">", ">="):
        return min(values)
    return max(values, key=lambda value: abs(value - comparison.bound))


def absent(why: str) -> Verdict:
    """The verdict on a figure outside of any claim that the records do not hold."""
    lacking = Quantity("figures that the records do not hold", "figures", None, why)
    return judge(lacking == 0, "a figure that is missing is no pass", kind="control")
