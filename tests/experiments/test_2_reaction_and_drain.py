"""Experiment 2: scale-out reaction and drain.

Hypothesis. KEDA on lag scales group ``enrich`` out within 90 s of a 10x step, the backlog drains without a plateau once
every partition has a pod, and the group returns to its floor without flapping and without losing or repeating a message.

Method. Profile ``step-10x`` (R, then 10R, then R) on policy ``lag``: 4 to 24 cooperative-sticky consumers of 1,000
messages/s each and P = 24, so that 10R is more than all of them can take. The reaction is that of the first new pod to be
Ready, assigned and at work, in stamped parts that sum to the total. The drain is from the spike's end to total lag at or
below one lagThreshold; its best possible time is that of the hottest partition, which one pod alone can serve. After the
last message Spark reconciles what was produced with the receipts, range by range.
"""

import allure
import pytest

from lab import objective
from lab.measure.drain import drain
from lab.measure.flips import stability
from lab.measure.integrity import integrity
from lab.measure.reaction import reaction

pytestmark = [pytest.mark.spike, allure.epic("Scaling on lag"), allure.feature("2 Reaction and drain")]


@allure.story("A 10x spike scales the group out, drains, and lets it back to the floor")
def test_a_10x_spike_is_absorbed(trials, evidence):
    """A 10x step is answered, drained and given back, and every message is processed exactly once."""
    record = trials.run(profile="step-10x", policy="lag")

    with evidence.of(record) as judge:
        judge(objective.BASELINE, lambda: stability(record).above_floor_at_baseline)
        judge(objective.REACTION, lambda: reaction(record).total_s)
        judge(objective.REACTION_REAL, lambda: reaction(record).real_s)
        judge(objective.BACKLOG, lambda: drain(record).peak_lag)
        judge(objective.DRAINED, lambda: drain(record).seconds / drain(record).ideal_s)
        judge(objective.MONOTONE, lambda: drain(record).rise_in_thresholds)
        judge(objective.FLIPS, lambda: stability(record).flips)
        judge(objective.FLOOR, lambda: stability(record).above_floor_at_end)
        judge(objective.UNKNOWN, lambda: integrity(record).unknown_or_failed)
        judge(objective.UNPROCESSED, lambda: integrity(record).produced - integrity(record).processed)
        judge(objective.DOUBLED, lambda: integrity(record).doubled)
        judge(objective.MISMATCHED, lambda: integrity(record).mismatched)
