"""When the traffic of a trial starts: at a point of the HPA's sync period that is drawn, or at the time of day of its policy.

Without a drawn wait each spike would come at one point of the period (docs/decisions/08-when-a-trial-begins.md). A ScaledObject
with a time of day is applied last, once the group is up: only then it is known when the profile can begin.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from lab import clock
from lab.errors import LabFault
from lab.inputs import anchor as anchors
from lab.inputs.inputs import Inputs
from lab.inputs.scaledobject import ScaledObject
from lab.record.trial import Anchor
from lab.trial.addresses import asks_scaler
from lab.trial.stage import CONSUMER, Stage
from lab.wait import until

log = logging.getLogger("lab.trial")

SLACK_S = 5.0  # a busy machine may ask so much too late whether the wait is over
LATE_S = 15.0  # a phase is heard so much after it began, at most


def waits(inputs: Inputs, item: Mapping[str, Any]) -> bool:
    """Whether ``item`` is the trial's own ScaledObject with a time of day, which is applied when the group is up."""
    return bool(inputs.windows) and item is inputs.policy.content


def anchor(stages: Sequence[Stage]) -> None:
    """Choose the moment at which the profile begins, and apply the ScaledObjects with a time of day as they are for it.

    Without any it does nothing. The sides of a duet begin together. Raises :class:`LabFault` where a group does not come up.
    """
    timed = [stage for stage in stages if stage.inputs.windows]
    if not timed:
        return
    for stage in stages:
        stage.transitions.wait(
            partial(_up, stage), stage.deadlines.settle_s, "the consumers ready, before what has a time of day", stage.check
        )
    inputs, now = timed[0].inputs, clock.now()
    lead_s = anchors.lead_s(inputs.scale)
    start = anchors.start_after(now + lead_s, inputs.windows)
    for stage in stages:
        policy, begins_at = stage.inputs.policy, stage.inputs.profile.begins_at
        assert begins_at is not None, "a cron trigger needs it, and the sides of a duet have one profile"
        schedules: tuple[anchors.Schedule, ...] = ()
        if isinstance(policy, ScaledObject) and stage.inputs.windows:
            applied = anchors.with_schedules(policy, stage.inputs.windows, start)
            schedules = anchors.schedules(policy, applied)
            stage.apply([applied.content])
        anchor = Anchor(begins_at.isoformat(), start, start - now, lead_s + anchors.MINUTE_S, schedules)
        stage.journal.note(anchor=anchor)
    log.info(
        "%s: the profile begins in %.0f s, at %s UTC", inputs.id, start - now, f"{datetime.fromtimestamp(start, UTC):%H:%M:%S}"
    )


def _up(stage: Stage) -> bool:
    return stage.ready(CONSUMER) and (not asks_scaler(stage.inputs.policy.content) or stage.ready("lag-scaler"))


def settle_s(stage: Stage) -> float:
    """How long the baseline may take to settle, s: no longer than until the producer of an anchored profile must be started."""
    if stage.journal.trial.anchor is None:
        return stage.deadlines.settle_s
    return max(0.0, min(stage.deadlines.settle_s, stage.journal.trial.anchor.start - anchors.PRODUCER_S - clock.now()))


def await_start(stages: Sequence[Stage]) -> None:
    """Wait until an anchored profile has begun. Raises :class:`LabFault` where its producer came up after that moment."""
    starts = [stage.journal.trial.anchor.start for stage in stages if stage.journal.trial.anchor is not None]
    if not starts:
        return
    start = starts[0]  # the sides of a duet have one
    if (late := clock.now() - start) > 0:
        raise LabFault(f"the producer was up {late:.1f} s after the profile was to begin: the cron trigger was not waited for")
    for stage in stages:
        stage.journal.phase = f"driving, from {datetime.fromtimestamp(start, UTC):%H:%M:%S} UTC on,"
    for stage in stages:
        first = stage.inputs.profile.steps[0].phase
        left_s = max(0.0, start - clock.now())
        stage.transitions.wait(partial(stage.reports.begun, first), left_s + LATE_S, f"phase {first} began", stage.check)
        stage.journal.phase = "driving"


def drawn_s(sides: Sequence[Inputs]) -> float:
    """How long traffic waits for its point of the sync, s, by the sides' identity; 0 without an HPA or with a time of day."""
    if any(one.windows for one in sides) or not any(one.policy.hpa for one in sides):
        return 0.0
    drawn = random.Random(" ".join(sorted(one.id for one in sides)))
    return drawn.random() * sides[0].scale.hpa_sync_s


def await_sync_point(stages: Sequence[Stage]) -> None:
    """Wait until the drawn point of the sync period. Raises :class:`LabFault` where a component dies meanwhile."""
    wait_s = drawn_s([stage.inputs for stage in stages])
    over = clock.now() + wait_s

    def check() -> None:
        for stage in stages:
            stage.check()

    until(lambda: clock.now() >= over, wait_s + SLACK_S, "the drawn point of the HPA's sync period", check, every_s=0.05)
