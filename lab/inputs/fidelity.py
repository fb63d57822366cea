"""How faithfully a scale compresses a policy: Kubernetes and KEDA take whole seconds and whole messages.

A short time, or a small lag, that does not fit is refused. A lag that only this scale puts below what a pod has in flight is
noted: what is taken at a poll is work, which no scale compresses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

from lab.errors import InputError
from lab.inputs import scaledobject
from lab.inputs.policy import Policy
from lab.inputs.scale import Scale
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers.prometheus import Prometheus
from lab.inputs.workload import Workload

Wrong = tuple[str, str, str]  # a field, its value, and what is allowed
TOLERANCE = 0.1  # a field's rounding may change it by so much
REAL = Scale("real", 1, 1)
TIMES = {
    *("pollingInterval", "cooldownPeriod", "initialCooldownPeriod"),  # KEDA
    *("stabilizationWindowSeconds", "periodSeconds"),  # the HPA
    *("samplingInterval", "sustainSeconds", "lagSeconds", "activationLagSeconds"),  # the persistent-lag scaler
    *("scaleUpStabilization", "scaleDownStabilization"),
    "syncSeconds",  # the controller
}
THRESHOLDS = ("lagThreshold", "averageValue")  # of KEDA, and of an HPA on the lag
_RANGE = re.compile(r"\[\s*(?:\d+(?:ms|[smhdwy]))+[^\]]*\]")  # of a selector, or of a subquery
LAGS = {*THRESHOLDS, "activationLagThreshold"}


@dataclass(frozen=True)
class Compressed:
    """One time of a policy: the ``field``, the seconds that its file or the default has, and the seconds that are applied."""

    field: str
    written_s: float
    applied_s: float

    def faithful(self, scale: Scale) -> bool:
        """Whether the applied time stands for the written one within :data:`TOLERANCE`; 0 stands for 0."""
        return abs(self.applied_s * scale.time - self.written_s) <= TOLERANCE * self.written_s


@dataclass(frozen=True)
class CompressedLag:
    """One lag of a policy: the ``field``, the messages that its file or the default has, and those that are applied."""

    field: str
    written: int
    applied: int

    @property
    def rounded(self) -> bool:
        """Whether it is rounded to the nearest message: an activation is rounded down, which changes no decision."""
        return self.field.endswith(THRESHOLDS)

    def faithful(self, scale: Scale) -> bool:
        """Whether the applied lag stands for the written one within :data:`TOLERANCE`; an activation always does."""
        return not self.rounded or abs(self.applied / scale.lag - self.written) <= TOLERANCE * self.written


def times(policy: Policy, scale: Scale) -> tuple[Compressed, ...]:
    """Every time of ``policy`` as it is written, or as KEDA and the HPA default it, beside what ``scale`` makes of it."""
    return tuple(Compressed(field, float(one), float(other)) for field, one, other in _compared(policy, scale, TIMES))


def lags(policy: Policy, scale: Scale) -> tuple[CompressedLag, ...]:
    """Every lag of ``policy`` in messages as it is written, or as KEDA defaults it, beside what ``scale`` makes of it."""
    found = _compared(policy, scale, LAGS)
    return tuple(CompressedLag(field, int(one), int(other)) for field, one, other in found if one not in ("", None))


def in_flight(workload: Workload, scale: Scale) -> float:
    """The most messages that a pod has in flight at ``scale``, as messages at real time: a poll and a commit interval."""
    poll_s = max(workload.poll_ms, workload.batch_ms) / 1000
    commit_s = workload.commit_interval_ms / 1000 * (1 if workload.divides("commit_interval_ms") else scale.time)
    return workload.rate * (poll_s * scale.time + commit_s)


def drowned(policy: Policy, scale: Scale, workload: Workload) -> tuple[CompressedLag, ...]:
    """The thresholds of ``policy`` that a pod at work exceeds by what it has in flight, at ``scale`` and not at real time."""
    least, most = in_flight(workload, REAL), in_flight(workload, scale)
    return tuple(one for one in lags(policy, scale) if one.rounded and least < one.written <= most)


def check(policy: Policy, scale: Scale, where: object, others: Iterable[Scale] = ()) -> tuple[Compressed, ...]:
    """The times of ``policy`` at ``scale``. Raises :class:`InputError` for the first time or lag that it changes by too much.
    The error names those of the ``others`` at which the policy is faithful."""
    refuse(partial(_wrong, policy), scale, where, others)
    return times(policy, scale)


def refuse(wrong: Callable[[Scale], Iterator[Wrong]], scale: Scale, where: object, others: Iterable[Scale]) -> None:
    """Raise :class:`InputError` for the first thing that is ``wrong`` at ``scale``; it names the ``others`` without any."""
    for field, value, allowed in wrong(scale):
        names = [other.name for other in others if not any(True for _ in wrong(other))]
        raise InputError(where, field, value, allowed + (f"; or --scale {' or '.join(names)}" if names else ""))


def is_faithful(policy: Policy, scale: Scale) -> bool:
    """Whether ``scale`` keeps every time and every lag of ``policy`` within :data:`TOLERANCE`."""
    return not any(True for _ in _wrong(policy, scale))


def notes(policy: Policy, scale: Scale, workload: Workload) -> Iterator[str]:
    """What ``scale`` may change of ``policy``, and nobody can say: a sentence for each."""
    for one in drowned(policy, scale, workload):
        yield (
            f"{one.field}: a pod has up to {in_flight(workload, scale):,.0f} messages in flight at scale {scale.name} and "
            f"{in_flight(workload, REAL):,.0f} at real time: only at the scale they exceed {one.written:,}"
        )
    if scale.time != 1 and isinstance(policy, ScaledObject):
        for index, trigger in enumerate(policy.triggers):
            if isinstance(trigger, Prometheus):
                ranges = " and ".join(_RANGE.findall(trigger.query))
                yield (
                    f"spec.triggers[{index}].metadata.threshold: {trigger.threshold:g} is not divided, as the query may be of "
                    f"anything; a lag would be: at scale {scale.name} it is {1 / scale.lag:g} times smaller"
                ) + (f"; its range {ranges} spans {scale.time:g} times as much of the traffic" if ranges else "")


def _wrong(policy: Policy, scale: Scale) -> Iterator[Wrong]:
    """What ``scale`` changes by too much."""
    if isinstance(policy, ScaledObject) and policy.modifiers and (scale.time, scale.rate) != (1, 1):
        yield scaledobject.FORMULA, policy.modifiers.formula, f"none at scale {scale.name}: {scaledobject.UNDIVIDED}"
        return
    within = f"at scale {scale.name} (time / {scale.time:g}) within {TOLERANCE:.0%} of a multiple of"
    for time in times(policy, scale):
        if not time.faithful(scale):
            allowed = f"{within} {scale.time:g} s: whole seconds make this one {time.applied_s * scale.time:g} s"
            yield time.field, f"{time.written_s:g} s", allowed
    for lag in lags(policy, scale):
        if not lag.faithful(scale):
            allowed = f"{within} {1 / scale.lag:g} messages: whole messages make this one {lag.applied / scale.lag:g}"
            yield lag.field, f"{lag.written} messages", allowed


def _compared(policy: Policy, scale: Scale, names: Iterable[str]) -> Iterator[tuple[str, Any, Any]]:
    """The fields of ``policy`` with one of these ``names``: place, value at real time, value at ``scale``."""
    yield from _pairs(policy.compressed(REAL).content, policy.compressed(scale).content, "", set(names))


def _pairs(written: Any, applied: Any, path: str, wanted: Set[str]) -> Iterator[tuple[str, Any, Any]]:
    """The ``wanted`` fields in two contents of the same shape, each with its path."""
    if isinstance(written, dict):
        for name, value in written.items():
            place = f"{path}.{name}" if path else name
            if name in wanted:
                yield place, value, applied[name]
            yield from _pairs(value, applied[name], place, wanted)
    elif isinstance(written, list):
        for index, (one, other) in enumerate(zip(written, applied, strict=True)):
            yield from _pairs(one, other, f"{path}[{index}]", wanted)
