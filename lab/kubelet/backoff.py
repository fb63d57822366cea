"""When a container that ended is started again: the kubelet's CrashLoopBackOff. Pure."""

from __future__ import annotations

CAP_S = 300.0
FORGET_S = 600.0


def following(delay_s: float | None, ran_s: float, base_s: float) -> float:
    """The seconds before the next start: 0, then ``base_s`` doubling to 300 s; a run of over 10 minutes clears the record."""
    if delay_s is None or ran_s > FORGET_S:
        return 0.0
    return min(CAP_S, max(base_s, delay_s * 2))


def config_retry(attempt: int) -> float:
    """The seconds before the node looks again for a missing ConfigMap or Secret, by attempt from 0: 0.5 doubling to 10."""
    return float(min(10.0, 0.5 * 2 ** min(attempt, 10)))


def api_retry(attempt: int) -> float:
    """The seconds before a failed API request is sent again, by attempt from 0: 0.1 doubling to 2."""
    return float(min(2.0, 0.1 * 2 ** min(attempt, 10)))


def refusal_delay(count: int) -> float:
    """The seconds that a refused pod stays Pending after ``count`` of its owner: 0, 1, 2 … 60, or it would be hundreds."""
    return 0.0 if count == 0 else float(min(60, 2 ** min(count - 1, 10)))
