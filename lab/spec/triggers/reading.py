"""What one query of a trigger's source answers, in the words KEDA and the HPA use for it."""

from __future__ import annotations

import math
from dataclasses import dataclass


class ScalerError(Exception):
    """The query failed. KEDA counts it for fallback and builds the scaler anew, which forgets what the old one remembered."""


@dataclass(frozen=True)
class Reading:
    """One answered query: the metric the HPA is given, whether the trigger is active, and why, in sentences."""

    metric: float
    active: bool
    reasons: tuple[str, ...]


def exposed(value: float) -> float:
    """The metric as it leaves KEDA: thousandths, and 0 for what is negative or no number.

    Source: ``quantityFromFloat64`` in ``pkg/scalers/scaler.go``.
    """
    if math.isnan(value) or math.isinf(value) or value < 0:
        return 0.0
    return float(f"{value:.3f}")
