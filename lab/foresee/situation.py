"""The situation of a simulated group: traffic, pods and controllers, everything but the policy. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from lab.foresee.curve import Arrivals
from lab.foresee.group import Consumers, Floats
from lab.inputs.profile import Profile
from lab.inputs.scale import HPA_SYNC_S, Scale
from lab.model.hpa import DEFAULTS, Controller

METRICS_S = 15.0  # --metric-resolution in metrics-server's own manifest
START_S = 2.0  # from a decision until a pod on binary has joined, beside the start that its workload declares
POINTS = (0.0, 0.2, 0.4, 0.6, 0.8)  # of a sync period: when the first sync comes; the first of them is what is shown
SWING = (0.9, 0.1)  # of the swing of what is in flight: close to its ends, where no read stays at the very end


@dataclass(frozen=True)
class Situation:
    """Everything but the policy. Times in s. ``shares`` is each partition's share of the traffic; they sum to 1.

    ``sync_s`` is the HPA's sync period, and the first sync comes at ``phase_s``. Each starting pod that shares cores with the
    control plane makes it longer by ``sync_each_s``. ``metrics_s`` is the time between two samples of metrics-server.
    ``tail_s`` goes on after the profile at its last rate. The partitions are on so many ``topics``, which have
    ``sizes`` of them, () for as many on each. ``backlog`` messages wait at 0 s, spread as the traffic is. ``draw`` is the share
    of starts that take no longer than the first pod's (:mod:`lab.foresee.starts`).
    Between commits what is in flight swings from the first to the second of ``swing``, s; None where that is not known.
    The group begins with so many ``replicas``, None for the floor of its policy.
    ``read_s`` is in flight whenever lag is read, s; None for what is in flight on average, as the curve shows it.
    """

    profile: Profile
    shares: Floats
    consumers: Consumers
    sync_s: float = HPA_SYNC_S
    sync_each_s: float = 0.0
    phase_s: float = 0.0
    controller: Controller = DEFAULTS
    tail_s: float = 0.0
    topics: int = 1
    metrics_s: float = METRICS_S
    backlog: float = 0.0
    sizes: tuple[int, ...] = ()
    draw: float = 0.5
    replicas: int | None = None
    swing: tuple[float, float] | None = None
    read_s: float | None = None

    @property
    def end(self) -> float:
        """The end of the simulation, s."""
        return self.profile.duration + self.tail_s

    @cached_property
    def arrivals(self) -> Arrivals:
        """The events that arrive, over time."""
        return Arrivals(self.profile, self.tail_s, self.backlog)


def points(situation: Situation) -> Iterator[Situation]:
    """``situation`` at each of POINTS: traffic keeps to no point of a sync, nor to one of a commit.

    The first is ``situation`` itself. Where a swing is known, the others read lag in turn at each of SWING: a sync is often a
    multiple of the commit interval, so that the HPA reads one point of the swing for long.
    """
    yield situation
    least, most = situation.swing or (0.0, 0.0)
    reads: list[float | None] = [least + part * (most - least) for part in SWING] if situation.swing else [None]
    for part, read_s in zip(POINTS[1:], itertools.cycle(reads), strict=False):
        yield replace(situation, phase_s=situation.phase_s + part * situation.sync_s, read_s=read_s)


def controller_of(scale: Scale) -> Controller:
    """The HPA controller of a trial at ``scale``, whose flags are compressed like every other time."""
    return Controller(
        downscale_stabilization_s=scale.seconds(DEFAULTS.downscale_stabilization_s),
        cpu_initialization_s=scale.seconds(DEFAULTS.cpu_initialization_s),
        initial_readiness_s=scale.seconds(DEFAULTS.initial_readiness_s),
    )
