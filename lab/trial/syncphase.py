"""Lets the traffic begin at any point of the HPA's sync period, drawn for each trial.

A baseline has settled when the HPA's first sync says so, and most profiles begin with whole sync periods of baseline. So
without a wait each spike at real time would come at one point of the period: some 2 s after a sync, of 15 s
(docs/decisions/08-when-a-trial-begins.md).
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from lab import clock
from lab.inputs.inputs import Inputs
from lab.trial.stage import Stage
from lab.wait import until

SLACK_S = 5.0  # a busy machine may ask so much too late whether the wait is over


def drawn_s(sides: Sequence[Inputs]) -> float:
    """How long the traffic of these sides waits once they have settled, s: from 0 to one sync period, by their identity.

    Sides that no HPA decides don't wait. Those with a time of day begin at theirs.
    """
    if any(one.windows for one in sides) or not any(one.policy.hpa for one in sides):
        return 0.0
    drawn = random.Random(" ".join(sorted(one.id for one in sides)))
    return drawn.random() * sides[0].scale.hpa_sync_s


def await_phase(stages: Sequence[Stage]) -> None:
    """Wait as long as was drawn. Raises :class:`LabFault` where a component dies meanwhile."""
    wait_s = drawn_s([stage.inputs for stage in stages])
    over = clock.now() + wait_s

    def check() -> None:
        for stage in stages:
            stage.check()

    until(lambda: clock.now() >= over, wait_s + SLACK_S, "the drawn point of the HPA's sync period", check, every_s=0.05)
