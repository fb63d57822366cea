"""How faithfully a scale compresses a policy: Kubernetes and KEDA take whole seconds, so a short time may not fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lab.errors import InputError
from lab.spec.policy import Policy
from lab.spec.scale import Scale

TOLERANCE = 0.1  # a field's rounding may change it by so much
REAL = Scale("real", 1, 1)
TIMES = {
    *("pollingInterval", "cooldownPeriod", "initialCooldownPeriod"),  # KEDA
    *("stabilizationWindowSeconds", "periodSeconds"),  # the HPA
    *("samplingInterval", "sustainSeconds", "lagSeconds", "activationLagSeconds"),  # the persistent-lag scaler
    *("scaleUpStabilization", "scaleDownStabilization"),
    "syncSeconds",  # the controller
}


@dataclass(frozen=True)
class Compressed:
    """One time of a policy: the ``field``, the seconds that its file or the default has, and the seconds that are applied."""

    field: str
    written_s: float
    applied_s: float

    def faithful(self, scale: Scale) -> bool:
        """Whether the applied time stands for the written one within :data:`TOLERANCE`; 0 stands for 0."""
        return abs(self.applied_s * scale.time - self.written_s) <= TOLERANCE * self.written_s


def times(policy: Policy, scale: Scale) -> tuple[Compressed, ...]:
    """Every time of ``policy`` as it is written, or as KEDA and the HPA default it, beside what ``scale`` makes of it."""
    pairs = _pairs(policy.compressed(REAL).content, policy.compressed(scale).content, "")
    return tuple(Compressed(field, float(written), float(applied)) for field, written, applied in pairs)


def check(policy: Policy, scale: Scale, where: object, others: Iterable[Scale] = ()) -> tuple[Compressed, ...]:
    """The times of ``policy`` at ``scale``. Raises :class:`InputError` for the first that ``scale`` changes by too much.

    The error names those of the ``others`` at which the policy is faithful.
    """
    compressed = times(policy, scale)
    for one in compressed:
        if not one.faithful(scale):
            names = [other.name for other in others if is_faithful(policy, other)]
            allowed = (
                f"at scale {scale.name} (time / {scale.time:g}) within {TOLERANCE:.0%} of a multiple of {scale.time:g} s: "
                f"whole seconds make this one {one.applied_s * scale.time:g} s"
            )
            instead = f"; or --scale {' or '.join(names)}" if names else ""
            raise InputError(where, one.field, f"{one.written_s:g} s", allowed + instead)
    return compressed


def is_faithful(policy: Policy, scale: Scale) -> bool:
    """Whether ``scale`` keeps every time of ``policy`` within :data:`TOLERANCE`."""
    return all(one.faithful(scale) for one in times(policy, scale))


def _pairs(written: Any, applied: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """The times in two contents of the same shape, each with its path."""
    if isinstance(written, dict):
        for name, value in written.items():
            place = f"{path}.{name}" if path else name
            if name in TIMES:
                yield place, value, applied[name]
            else:
                yield from _pairs(value, applied[name], place)
    elif isinstance(written, list):
        for index, (one, other) in enumerate(zip(written, applied, strict=True)):
            yield from _pairs(one, other, f"{path}[{index}]")
