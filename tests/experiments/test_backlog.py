"""Backlog: more than 20 million events wait at real time; are they drained, and is every one accounted for?

Hypothesis. At uncompressed settings KEDA and the HPA answer a 10x spike of a quarter of an hour within 90 s, drain more than 20
million events without a rise of the backlog, and give every pod back. Nothing is lost or doubled.

Method. Profile ``backlog`` (6,000 events/s, ten times that for 15 minutes, and again) on policy ``backlog`` and the workload
of ``docs/examples/backlog-pods.yaml``. Some 92 million events are written in two and a quarter hours, and Spark's ledger
reconciles each (`tox -e backlog`).

Asserted. The hypothesis. The 20 million are a control.

Refuted by a reaction beyond 90 s, a dip of a fifth, lag that rises in the drain by more than arrives between two commits, a
flip, a pod that stays, or one event not processed exactly once.
"""

from pathlib import Path

import allure
import pytest

from lab.charts.breakdown import memory_chart, reaction_breakdown
from lab.inputs import workload
from lab.judge.bounds import DIP, DRAIN_OVER_BEST, MEMORY_AN_HOUR, REACTION_S, RECOVERY_S
from lab.measure.dip import worst_dip
from lab.measure.drain import best_drain, drain
from lab.measure.reaction.step import reaction
from lab.measure.scaling import policy_excess, scale_events
from lab.measure.scaling_cost import scaling_cost
from lab.measure.validity import punctuality
from tests.experiments.measure.memory import memory_growth
from tests.experiments.sources import GIVES_BACK, TEXT

PODS = Path(__file__).parents[2] / "docs" / "examples" / "backlog-pods.yaml"
pytestmark = [pytest.mark.backlog, allure.epic("Scaling on lag"), allure.feature("Backlog of 20 million")]


@allure.story("More than 20 million events wait, are drained, and every one is accounted for")
def test_a_backlog_of_20_million_is_drained(trials, evidence):
    """The first acceptance criterion of text 1, section 12, at real time."""
    pods, partitions = workload.load(PODS)
    record = trials.run(profile="backlog", policy="backlog", workload=pods, partitions=partitions)
    evidence.chart_of("reaction, by part", lambda run: reaction_breakdown(reaction(run)), record)
    evidence.chart_of("memory of the lab's processes", memory_chart, record)
    dip = worst_dip(record)

    with evidence.of(record) as claim:
        claim.control(
            drain(record).peak_lag >= 20_000_000,
            "the backlog is as large as the text asks for",
            "text 1, section 12: a backlog of >= 20M events",
        )
        claim.control(
            punctuality(record).p99_ms <= 100,
            "the producer offered the profile's rate",
            "the lab's own: a tenth of a second is noise beside a reaction of tens of seconds",
        )
        claim.control(memory_growth(record).share_an_hour <= MEMORY_AN_HOUR, "no process of the lab grows without end")
        claim(reaction(record).total_s < REACTION_S, "the first new pod is at work in time")
        claim(
            drain(record).rise_over_commits <= 1,
            "lag falls until it is at one lagThreshold, but for what arrives between two commits",
            TEXT,
        )
        claim(
            best_drain(record).over_best <= DRAIN_OVER_BEST, "the backlog is drained about as fast as the policy's bounds allow"
        )
        claim(scale_events(record).flips == 0, "the group scales up once and down once", TEXT)
        claim(policy_excess(record).above_floor_at_end == 0, "the group gives back the pods that it took", GIVES_BACK)
        claim(dip.depth < DIP, "no step that was taken while every partition had work costs a fifth of the throughput")
        claim(
            dip.recovery_s < RECOVERY_S,
            "after each step that was taken while every partition had work the group soon has its throughput back",
        )
        claim(scaling_cost(record).share < 1, "scaling costs less than the backlog it clears", "text 1, section 1")
