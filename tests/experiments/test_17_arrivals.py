"""Experiment 17: does a trigger on arrivals end the flapping?

Hypothesis. Pods that keep up have little lag, so a trigger on lag takes a busy group for a surplus. The payments text asks for
a scale-down window that is longer than the interval between two bursts. With a trigger on lag that rule fails, because a burst
that builds no lag does not renew the window (experiment 5). The rate of arrivals is as high in a burst that builds no lag as
in one that does, and it has no point between two commits at which it is low. So with a second trigger, on arrivals, a window
that is longer than a lull is enough.

Method. Profile ``ten-bursts``: ten 10x bursts, one every 300 s, with lulls of 180 s. The pods of 100 events/s take 45 s to
start, as an image that is pulled and a JVM that warms up. Two groups run beside each other on the same events, until they are
drained and back at their floor: policy ``lag-4500``, whose scale-down window is 300 s, and ``lag-4500-arrivals``, which
differs by the second trigger alone. It gives each 85 events/s a pod, which leaves a pod 15 % to spare.

Asserted, and what would refute it. Lag alone flips: the control. With the trigger on arrivals nothing flips; one flip refutes
it. The group gives back the pods that it took. Nothing is lost or doubled. ``elastic-lab simulate`` foretells for real time,
with 1 and 2.5 s of traffic in flight and a start of 5, 45 and 60 s: 0 flips in each case, where lag alone has 4. The price is
reported. It is foretold as 1,357 pod-minutes at full rate, where lag alone has 1,026 and the tolerance of experiment 5 has
1,093 for its 4 flips. The age of the oldest event is foretold as 62 s and 70 s.

The traffic has its limits. A lull that is longer than the window ends in a flip with each of the policies, and a rate that
wanders by more than the HPA's tolerance of 10 % for longer than the window moves the group up and down. Neither is in this
profile.

Since then it has been run once at real time and six times at quick: 0 flips where lag alone had 4, each time.

Ten bursts take an hour at real time, too long for several runs. So profile ``bursty``, the first three of them, runs in a
third of that. It ends with the last burst, so what follows the bursts is left to the longer run. Lag alone has flipped once
there, and it is foretold to flip once again, at 1 and at 2.5 s of traffic in flight. With the trigger on arrivals 0 flips are
foretold, in every run. One flip refutes it.

Each burst that finds a group at its floor is to have a new pod at work within 90 s, as text 1 asks. Lag asks for pods 12.4 s
after a burst begins: 4 pods may hold 18,000 events and a tenth more, and 1,600 events/s are too many for them. Arrivals ask
within 2 s. Then a sync comes within 15 s, and a pod takes 46 s. So 58 to 74 s are foretold for lag alone, and 46 to 64 s with
arrivals. Runs differ in the point of the HPA's sync at which a burst comes.

Since then it has been run five times at real time: 0 flips where lag alone had 1, each time. Reactions were 58.8 to 73.3 s
with lag alone, and 47.6 to 61.4 s with arrivals.
"""

import itertools

import allure
import pytest

from lab.inputs.inputs import REPLAYED
from lab.judge.bounds import REACTION_S
from lab.measure.delivery import CONTRACT, DELIVERED, unaccounted
from lab.measure.reactions import reactions
from lab.measure.scaling import scale_events
from tests.experiments.flapping import SLOW_START, report_price

pytestmark = [pytest.mark.stretch, allure.epic("Scaling on lag"), allure.feature("17 Arrivals beside lag")]


@allure.story("A trigger on arrivals beside the one on lag, on ten bursts")
def test_arrivals_beside_lag_end_the_flapping(trials, evidence):
    """Lag alone, and lag with arrivals, on the same events, until both groups are drained and back at their floor."""
    alone, beside = trials.duet(SLOW_START | {"policy": "lag-4500"}, SLOW_START | {"policy": "lag-4500-arrivals"})
    found = {"lag": alone, "lag and arrivals": beside}
    report_price(evidence, found)

    with evidence.of(found) as claim:
        claim(
            scale_events(alone).flips > 0,
            "a trigger on lag alone flaps, with a window that is longer than a lull",
            kind="control",
            source="experiment 5",
        )
        claim(
            scale_events(beside).flips == 0,
            "with a trigger on arrivals a window that is longer than a lull ends the flapping",
            source="the lab's model of the controller (python -m lab simulate): 0 flips",
        )
        claim(
            scale_events(beside).above_floor_at_end == 0,
            "the group gives back the pods that it took",
            source="text 1, section 5: gives back",
        )
        claim(unaccounted(*itertools.chain(*found.values())) == 0, DELIVERED, kind="invariant", source=CONTRACT)


@allure.story("A trigger on arrivals beside the one on lag, on three bursts")
def test_arrivals_beside_lag_on_three_bursts(trials, evidence):
    """The same two policies on the first three bursts, short enough to be run several times at real time."""
    plan = SLOW_START | {"profile": "bursty", "until": REPLAYED}
    alone, beside = trials.duet(plan | {"policy": "lag-4500"}, plan | {"policy": "lag-4500-arrivals"})
    found = {"lag": alone, "lag and arrivals": beside}
    report_price(evidence, found)

    with evidence.of(found) as claim:
        claim(
            scale_events(alone).flips > 0,
            "a trigger on lag alone flaps on three bursts, with a window that is longer than a lull",
            kind="control",
            source="experiment 5",
        )
        claim(
            scale_events(beside).flips == 0,
            "with a trigger on arrivals a window that is longer than a lull ends the flapping on three bursts",
            source="the lab's model of the controller (python -m lab simulate): 0 flips",
        )
        claim(reactions(alone).slowest_s < REACTION_S, "each burst that finds the group on lag at its floor gets a pod in time")
        claim(reactions(beside).slowest_s < REACTION_S, "so does each that finds the group on lag and arrivals there")
        claim(unaccounted(*itertools.chain(*found.values())) == 0, DELIVERED, kind="invariant", source=CONTRACT)
