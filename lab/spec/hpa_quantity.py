"""Kubernetes quantities as the HPA reads them: in whole milli-units, or as the nearest float.

The source is ``k8s.io/apimachinery/pkg/api/resource/quantity.go``.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

MAX_INT64 = 2**63 - 1
_NUMBER = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,3})?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def parse(text: object) -> Fraction:
    """The number that ``text`` ("1500m", "2Ki", 0.1) writes, rounded up to nano like ``ParseQuantity``.

    Raises :class:`ValueError` when it is not a quantity.
    """
    found = None if isinstance(text, bool) or not isinstance(text, str | int | float) else _NUMBER.fullmatch(str(text))
    if found is None:
        raise ValueError(f"{text!r} is not a quantity")
    sign, digits, suffix = found[1], Fraction(found[2].rstrip(".")), found[3] or ""
    if suffix in _BINARY:
        digits *= 2 ** _BINARY[suffix]
    elif suffix in _DECIMAL:
        digits *= Fraction(10) ** _DECIMAL[suffix]
    elif suffix:
        digits *= Fraction(10) ** int(suffix[1:])
    rounded = Fraction(math.ceil(digits * 10**9), 10**9)
    return -rounded if sign == "-" else rounded


def milli(value: Fraction) -> int:
    """``value`` in milli-units, rounded up (``Quantity.MilliValue``)."""
    return math.ceil(value * 1000)


def approximate(value: Fraction) -> float:
    """``value`` as the controller computes it from the canonical form ("300m" is 300 x 1e-3; ``AsApproximateFloat64``)."""
    for exponent in (0, -3, -6, -9):
        scaled = value / Fraction(10) ** exponent
        if scaled.denominator == 1:
            break
    return float(scaled.numerator) * float(f"1e{exponent}")
