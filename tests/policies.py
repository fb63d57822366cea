"""``python -m tests.policies FILE ...``: which requirements of a policy each ScaledObject holds, by the model.

The requirements, written before any policy was looked for. Pods do 100 events/s, start in 45 s and commit every 5 s, on 24
partitions. Bounds are those of text 1, section 5, where it has one.

- Profile ``acceptance``, and ``spike``, which meets the floor with 10x: no flip, and the first new pod is at work within 90 s.
- Before the first burst, and at the end, there are the floor's pods and no more.
- Ten bursts at any distance, with lulls of 2 to 20 minutes: no pod goes that the traffic of the window before it needed. A
  flip after a lull that outlasts the window is right.
- An hour at any rate that 24 pods can do: no flip, and at rest no event older than 60 s.
- All that wherever in its period a sync comes, and wherever lag is read between two commits: pods that started together commit
  together. PLACES are five such pairs, EVERY has each with each.

The oldest event and the pod-minutes are the price.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from pathlib import Path

import numpy as np

from lab import paths
from lab.commands.text import number, table
from lab.foresee.curve import Curve, ages, worst_age
from lab.foresee.group import Consumers
from lab.foresee.in_flight import InFlight
from lab.foresee.simulate import simulate
from lab.foresee.situation import POINTS, START_S, Situation
from lab.foresee.variants import LONGEST_WINDOW, rules_of
from lab.inputs import policy, profile
from lab.inputs.keys import shares
from lab.inputs.profile import BASELINE, RELIEF, Profile
from lab.inputs.scale import HPA_SYNC_S
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.workload import PARTITIONS
from lab.judge.bounds import REACTION_S
from lab.model.hpa import DEFAULTS
from tests.experiments.workloads import slim

WORKLOAD = slim(start_s=45)
FLYING = InFlight.of(WORKLOAD)
ACCEPTANCE, SPIKE, TRANSIENT = (profile.load(paths.PROFILES / f"{name}.yaml") for name in ("acceptance", "spike", "transient"))
LULLS_S, RATES = range(120, 1201, 60), range(300, 2301, 50)
# What is in flight where lag is read, s, and the point of its period at which a sync comes. As in ``simulate`` the reads take
# turns at these points: on average, then just before and just after a commit.
PLACES = tuple(zip((FLYING.mean_s, *(FLYING.most_s, FLYING.least_s) * 2), POINTS, strict=True))
EVERY = tuple(product((FLYING.least_s, FLYING.mean_s, FLYING.most_s), POINTS))
SLACK_S = 2 * HPA_SYNC_S  # a sync comes at most a period after a change of the traffic, and acts on what it read
OBJECTIVE_S = 60.0

FLIPS, REACTION, FLOOR = (
    "acceptance and spike: flips",
    "acceptance and spike: reaction (s)",
    "pods above the floor at baseline or at the end",
)
DISTANCE = "ten bursts at any distance: flips within the window"
RATE, REST = "an hour at any rate: flips", "an hour at any rate: oldest event at rest (s)"
OLDEST, PRICE = "price: oldest event in the acceptance (s)", "price: pod-minutes of the acceptance"
FROM_FLOOR = "price: oldest event in a spike from the floor (s)"
PRICES = (OLDEST, PRICE, FROM_FLOOR)
BOUNDS = {FLIPS: 0.0, REACTION: REACTION_S, FLOOR: 0.0, DISTANCE: 0.0, RATE: 0.0, REST: OBJECTIVE_S}


def bursts(lull_s: float) -> Profile:
    """Ten bursts of ``ten-bursts``, with lulls of ``lull_s``."""
    every = 120 + lull_s
    shape = {"rate": 200, "spike_mult": 10, "baseline": 120, "spike_hold": 120, "every": every, "bursts": 10}
    return profile.build({"kind": "bursty", "duration": 120 + 10 * every, **shape}, "bursts")


def hour(rate: float) -> Profile:
    """An hour at ``rate`` events/s."""
    shape = {"rate": 180, "spike_mult": rate / 180, "baseline": 150, "spike_hold": 3600}
    return profile.build({"kind": "step", "duration": 3900, **shape}, "hour")


@dataclass(frozen=True)
class Run:
    """A policy on a profile, simulated; ``in_flight_s`` is in flight, and a sync comes at ``point`` of its period."""

    scaled: ScaledObject
    profile: Profile
    in_flight_s: float = FLYING.mean_s
    start_s: float = WORKLOAD.start_s
    point: float = 0.0

    @cached_property
    def situation(self) -> Situation:
        """The group, until the longest window is over."""
        pods = Consumers(WORKLOAD.rate, START_S + self.start_s, in_flight_s=self.in_flight_s)
        same = shares(ACCEPTANCE, 1, PARTITIONS)  # of every profile here: the same keys
        return Situation(self.profile, same, pods, phase_s=self.point * HPA_SYNC_S, tail_s=LONGEST_WINDOW)

    @cached_property
    def curve(self) -> Curve:
        """What the group does."""
        return simulate(self.situation, self.scaled)

    @cached_property
    def busy(self) -> list[tuple[float, float]]:
        """(start, end) of each burst or spike, s."""
        return [(start, end) for start, end, phase in self.profile.phases() if phase not in (BASELINE, *RELIEF)]

    @property
    def reaction_s(self) -> float:
        """From the first burst's start until one more pod is at work; infinity for never."""
        start, curve = self.busy[0][0], self.curve
        at = curve.working_from(int(curve.working[curve.t <= start][-1]) + 1, start)
        return math.inf if at is None else at - start

    @property
    def above_floor(self) -> int:
        """The most pods above the floor before the first burst, and at the end."""
        counts = self.curve.replicas
        return int(max(counts[self.curve.t < self.busy[0][0]].max(), counts[-1])) - self.scaled.min_replicas

    @property
    def early_flips(self) -> int:
        """The flips whose scale-down took pods although traffic of the window before it needed more."""
        window = rules_of(self.scaled)[1].window_s
        since = (DEFAULTS.downscale_stabilization_s if window is None else window) - SLACK_S
        return sum(
            after < before and then > was and any(max(start, t - since) < min(end, t - SLACK_S) for start, end in self.busy)
            for (t, before, after), (_, was, then) in pairwise(self.curve.changes)
        )

    @property
    def at_rest_s(self) -> float:
        """The greatest age in the last third of the last burst or spike."""
        start, end = self.busy[-1]
        t, age = ages(self.curve, self.situation.arrivals)
        return float(age[(t >= end - (end - start) / 3) & (t <= end)].max())


def oldest(runs: Iterable[Run]) -> float:
    """The greatest age of an event in any of ``runs``, s."""
    return max(worst_age(run.curve, run.situation.arrivals) for run in runs)


def figures(
    scaled: ScaledObject,
    lulls_s: Iterable[int] = LULLS_S,
    rates: Iterable[int] = RATES,
    places: Sequence[tuple[float, float]] = PLACES,
) -> dict[str, float]:
    """What ``scaled`` does, at the worst of ``places``, by requirement and price; pod-minutes are their mean."""

    def runs(*profiles: Profile) -> list[Run]:
        return [Run(scaled, one, in_flight_s, point=point) for one in profiles for in_flight_s, point in places]

    whole, spike = runs(ACCEPTANCE), runs(SPIKE)
    apart, held = runs(*map(bursts, lulls_s)), runs(*map(hour, rates))
    return {
        FLIPS: max(one.curve.flips for one in (*whole, *spike)),
        REACTION: max(one.reaction_s for one in (*whole, *spike)),
        FLOOR: max(one.above_floor for one in (*whole, *spike, *apart, *held)),
        DISTANCE: max(one.early_flips for one in apart),
        RATE: max(one.curve.flips for one in held),
        REST: max(one.at_rest_s for one in held),
        OLDEST: oldest(whole),
        PRICE: float(np.mean([one.curve.pod_minutes for one in whole])),
        FROM_FLOOR: oldest(spike),
    }


def refuted(found: Mapping[str, float]) -> list[str]:
    """The requirements that ``found`` is beyond."""
    return [name for name, bound in BOUNDS.items() if found[name] > bound]


def rows(by_name: Mapping[str, Mapping[str, float]]) -> list[list[str]]:
    """A table of policies: a row for each, a column for each figure, ✘ at those that refute it."""
    names = (*BOUNDS, *PRICES)
    head = ["", *(f"{name} <= {BOUNDS[name]:g}" if name in BOUNDS else name for name in names)]
    marked = {policy: refuted(found) for policy, found in by_name.items()}
    cells = [
        [f"{'✘ ' if name in marked[one] else ''}{number(round(found[name], 1))}" for name in names]
        for one, found in by_name.items()
    ]
    return [
        list(column) for column in zip(head, *([name, *row] for name, row in zip(by_name, cells, strict=True)), strict=True)
    ]


def main(arguments: Sequence[str]) -> int:
    """Print the table of the ScaledObjects in the files ``arguments``."""
    found = {Path(file).stem: figures(read(Path(file))) for file in arguments}
    print(table(rows(found), numbers=range(1, len(found) + 1)))
    return 0


def read(file: Path) -> ScaledObject:
    """The ScaledObject in ``file``. Raises ValueError for another policy."""
    found = policy.load(file)
    if not isinstance(found, ScaledObject):
        raise ValueError(f"{file} is no ScaledObject")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
