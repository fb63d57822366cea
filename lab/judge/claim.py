"""A claim: a comparison and the sentence it stands for; its verdict carries the number, the bound, the unit and the source."""

from __future__ import annotations

from dataclasses import dataclass

from lab.judge.quantity import Bound, Comparison, Quantity

HELD, BREACHED, NO_DATA = "held", "breached", "no data"
KINDS = ("claim", "control", "invariant")


@dataclass(frozen=True)
class Verdict:
    """What the record says of one claim; ``measured`` is None when there was no number, and ``note`` then says why.

    The ``note`` of a number says what it leaves out, where the record holds too little for a part of it.

    ``objective`` names the quantity, ``why`` is the claim's sentence, ``kind`` its class, ``source`` that of its bound.
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
            return f"{self.objective}: no data ({self.note}); {wanted}{shows}"
        but = f" ({self.note})" if self.note else ""
        return f"{self.objective}: {self.measured:g} {self.unit}, {wanted}: {self.verdict}{but}{shows}"


def judge(comparison: Comparison, sentence: str, *, kind: str = "claim", source: str = "") -> Verdict:
    """The verdict on ``comparison``, for which ``sentence`` says what it shows.

    ``kind`` is "claim" (the text or the lab says so), "control" (without it the experiment has shown nothing) or "invariant"
    (it holds in every trial). Raises ``TypeError`` for anything but a comparison, ``ValueError`` for another kind.
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
