"""Scales: the declared compression of a profile and a policy, printed on every report."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lab import paths, yamlfile
from lab.errors import InputError, closest

QUICK = "quick"  # the scale of a session that names none
REAL = "real"
HPA_SYNC_S = 15.0  # kube-controller-manager's default; the factor divides it like every other time
SYNCS_S = (1.0, 60.0)  # what a session may choose
METRIC_RESOLUTION_S = 10  # of a trial's metrics-server at every scale: the least that it accepts


@dataclass(frozen=True)
class Scale:
    """Every time is divided by ``time``, every rate is multiplied by ``rate``, and a lag, which is rate x time, by both.
    ``sync_s`` is the HPA's sync period at real time, s."""

    name: str
    time: float
    rate: float
    sync_s: float = HPA_SYNC_S

    @property
    def hpa_sync_s(self) -> float:
        """The HPA's sync period as applied, s."""
        return self.sync_s / self.time

    def seconds(self, real: float, least: int = 1) -> int:
        """``real`` seconds compressed to the whole seconds that Kubernetes fields take; 0 stays 0."""
        return 0 if real == 0 else max(least, round(real / self.time))

    @property
    def lag(self) -> float:
        """What a lag in messages is multiplied by: messages come at ``rate`` times their rate for a ``time``-th of the time."""
        return self.rate / self.time

    def messages(self, real: int) -> int:
        """A threshold of ``real`` messages of lag, compressed to whole messages, at least 1; 0 stays 0."""
        return 0 if real == 0 else max(1, round(real * self.lag))

    def most_messages(self, real: int) -> int:
        """A bound that lag must exceed, ``real`` messages, compressed: rounded down, for a lag above both is the same lag."""
        return math.floor(round(real * self.lag, 9))

    def __str__(self) -> str:
        return f"{self.name}: time / {self.time:g}, rates x {self.rate:g}, HPA sync {self.hpa_sync_s:g} s"


def load(name: str) -> Scale:
    """The scale called ``name`` in ``profiles/scales.yaml``. Raises :class:`InputError` when there is none."""
    known = {scale.name: scale for scale in declared()}
    if name not in known:
        raise InputError("command line", "--scale", name, f"one of {', '.join(known)}", closest(name, known))
    return known[name]


def declared() -> tuple[Scale, ...]:
    """Every scale of ``profiles/scales.yaml``, the most compressed first."""
    file = paths.PROFILES / "scales.yaml"
    given = yamlfile.Fields(yamlfile.read(file), file)
    for name in given.content:
        if not isinstance(name, str):
            raise InputError(file, "scale", name, "a name")
    read = {name: given.under(name, "time", "rate") for name in given.content}
    scales = (Scale(name, one.number("time", 1, 100), one.number("rate", 0.01, 100)) for name, one in read.items())
    return tuple(sorted(scales, key=lambda one: (-one.time, one.rate)))
