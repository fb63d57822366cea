"""A claim: a comparison and the sentence it stands for; its verdict carries the number, the bound, the unit and the source."""

from __future__ import annotations

from dataclasses import dataclass

from lab.judge.quantity import Bound, Comparison, Quantity

HELD, BREACHED, NO_DATA, INVALID = "held", "breached", "no data", "invalid"
KINDS = ("invariant", "control", "claim")  # in the order in which reports count them


@dataclass(frozen=True)
class Verdict:
    """What the record says of one claim; ``measured`` is None when there was no number, and ``note`` then says why.

    ``objective`` names the quantity, ``why`` is the claim's sentence, ``kind`` its class, ``source`` that of its bound. Of an
    invalid trial the ``verdict`` is "invalid", whatever was measured, and ``note`` says why.
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

    def __str__(self) -> str:
        wanted, shows = f"wanted {self.operator} {self.bound:g} {self.unit}", f": {self.why}" if self.why else ""
        if self.measured is None:
            return f"{self.objective}: {self.verdict} ({self.note}); {wanted}{shows}"
        return f"{self.objective}: {self.measured:g} {self.unit}, {wanted}: {self.verdict}{shows}"


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
    )


def absent(why: str) -> Verdict:
    """The verdict on a figure outside of any claim that the records do not hold."""
    lacking = Quantity("figures that the records do not hold", "figures", None, why)
    return judge(lacking == 0, "a figure that is missing is no pass", kind="control")
