"""The variants that tune tries: a grid over threshold, bounds, windows and policies around the given ScaledObject."""

from __future__ import annotations

import itertools
import math
import random
from itertools import pairwise

from lab.foresee import fields
from lab.foresee.fields import Value, Variant
from lab.foresee.simulate import Situation
from lab.foresee.sources import only
from lab.spec.hpa_spec import Policy
from lab.spec.profile import Profile
from lab.spec.scaledobject import ScaledObject
from lab.spec.triggers.kafka import Kafka
from lab.spec.triggers.persistent_lag import SHORTEST_S

HEADROOM = 0.75  # the share of the objective for lagThreshold / rate, the time by which a group at rest is behind
AROUND = (0.25, 0.35, 0.5, 0.71, 1, 1.41, 2, 2.83, 4)
WINDOWS_DOWN, WINDOWS_UP = (120, 300, 600, 900), (0, 60)
SUSTAINED = (0, 30, 60, 120, 300)  # sustainSeconds of the persistent-lag scaler, s, as far as its window reaches
LEAST_OF, GREATEST_OF = (0, 60), (0, 300)  # its stabilizations
WINDOW_STEP_S = 60  # a computed window is a multiple of it, and longer by it than the time that it must outlast
LONGEST_WINDOW = 1800  # s: a simulation goes on for so long after its profile, so that the cost of a window is seen
UP = ((Policy("Pods", 4, 15), Policy("Percent", 100, 15)), (Policy("Percent", 900, 30),))
DOWN = ((Policy("Percent", 50, 60),), (Policy("Percent", 10, 60),), (Policy("Percent", 100, 15),))
ALWAYS = 2  # a variant with as few changes as this is never left out
CANDIDATES = 1000


def variants(scaled: ScaledObject, situation: Situation, objective_s: float, most: int = CANDIDATES) -> list[Variant]:
    """The given ScaledObject first, then its variants, at most ``most`` in all.

    Of a larger grid the variants with one or two changes stay, as far as there is room. Of the others as many as fit are drawn,
    the same in every run. Raises :class:`InputError` for a trigger that is not tuned.
    """
    given = fields.in_force(scaled)
    values = _values(scaled, situation, objective_s)
    every = []
    for combination in itertools.product(*values.values()):
        found = {field: value for field, value in zip(values, combination, strict=True) if value != given[field]}
        every.append(found)
    every.sort(key=len)
    if len(every) > most:
        few = [one for one in every if len(one) <= ALWAYS][:most]
        every = few + random.Random(0).sample(every[len(few) :], most - len(few))
    return [fields.changed(scaled, found) for found in every]


def computed_threshold(rate: float, objective_s: float) -> int:
    """lagThreshold = rate x objective x 0.75, in messages: the lag that a pod at rest may have, with a quarter spare."""
    return max(1, round(rate * objective_s * HEADROOM))


def _values(scaled: ScaledObject, situation: Situation, objective_s: float) -> dict[str, list[Value]]:
    """The values of each field, the current one first. A direction that is disabled has no other."""
    given = fields.in_force(scaled)
    up, down = fields.rules(scaled)
    rate, partitions = situation.consumers.rate, len(situation.shares)
    centre = rate * objective_s * HEADROOM
    needed = math.ceil(max(step.rate for step in situation.profile.steps) / rate)
    least = max(1, scaled.min_replicas)
    values: dict[str, list[Value]] = {
        fields.THRESHOLD: [max(1, round(centre * factor)) for factor in AROUND],
        fields.SECONDS: [max(SHORTEST_S, round(objective_s * HEADROOM * factor, 2)) for factor in AROUND],
        fields.MOST: [most for most in (partitions, min(needed, partitions)) if most >= least],
        fields.DOWN_WINDOW: [*WINDOWS_DOWN, *_outlasting(situation.profile)],
        fields.DOWN_POLICIES: list(DOWN),
        fields.UP_WINDOW: list(WINDOWS_UP),
        fields.UP_POLICIES: list(UP),
        fields.SUSTAIN: [sustain for sustain in SUSTAINED if sustain <= _reach(scaled)],
        fields.LEAST_OF: list(LEAST_OF),
        fields.GREATEST_OF: list(GREATEST_OF),
    }
    for direction, rules in (("scaleUp", up), ("scaleDown", down)):
        if rules.select == "Disabled":
            values |= {field: [] for field in given if field.startswith(f"{direction}.")}
    return {field: list(dict.fromkeys([value, *values[field]])) for field, value in given.items()}


def _reach(scaled: ScaledObject) -> float:
    """How far back the trigger's samples go, s."""
    trigger = only(scaled)
    if isinstance(trigger, Kafka):
        return 0
    return trigger.settings.rule.size * trigger.settings.rule.interval_s


def _outlasting(profile: Profile) -> list[int]:
    """A window that outlasts the profile's longest lull and the burst after it, s; none for a profile of one burst.

    A burst that the pods take without a backlog does not renew the window, so a window that outlasts only the lull ends in the
    burst.
    """
    falls = [later.at for earlier, later in pairwise(profile.steps) if later.rate < earlier.rate]
    longest = max((later - earlier for earlier, later in pairwise(falls)), default=0.0)
    window = math.ceil(longest / WINDOW_STEP_S + 1) * WINDOW_STEP_S
    return [window] if longest > 0 and window <= LONGEST_WINDOW else []
