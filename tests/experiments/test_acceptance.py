"""Acceptance: can the lab's own ScaledObject be shipped?

Hypothesis. A policy answers a tenfold spike: new pods are at work within 90 s, the backlog is drained, replicas do not flap,
stay within the policy's bounds and the partitions, and come back; and every message is processed once.

Method. One trial, from the floor until lag is gone and replicas are back there, at standard. A
short one: profile ``spike`` on ``lag-4500``, pods that take 30 s to start. A whole one: profile ``acceptance``, six bursts, the
spike and the way back, on ``recommended``, pods that take 45 s (`tox -e acceptance`), in turns with one on range.

Asserted. Each line of text 1, section 5, and what acceptance/test_acceptance.py holds a user's files to. On range the
throughput is soon back after each step, too; its dip is shown beside.

Refuted by one figure beyond its bound.
"""

import allure
import pytest

from acceptance.test_acceptance import claim_acceptance
from lab.charts.breakdown import reaction_breakdown
from lab.judge.bounds import DIP, REACTION_S, RECOVERY_S, compressed
from lab.judge.pairs import paired
from lab.measure.cost import cost
from lab.measure.dip import worst_dip
from lab.measure.drain import drain
from lab.measure.lateness import oldest
from lab.measure.reaction.step import PARTS, reaction
from lab.measure.scaling import scale_events
from lab.measure.scaling_cost import ScalingCost, scaling_cost
from tests.experiments.sources import DESIGN, NO_NOISE, TEXT
from tests.experiments.workloads import slim

pytestmark = [allure.epic("Scaling on lag"), allure.feature("Acceptance")]

SHORT = {"profile": "spike", "policy": "lag-4500", "workload": slim(start_s=30), "scale": "standard"}
WHOLE = {"profile": "acceptance", "policy": "recommended", "workload": slim(start_s=45), "scale": "standard"}
# events/s of lab.host.speed, by the lab's own trials. Where two cores did 184,000 the spike held all, in two of two. The whole
# trial's policy starts 20 pods at once: where they did 166,000 that cost 42 % of the rate, for pods that start take the cores.
SPEED, WHOLE_SPEED = 180_000, 230_000


def report_dips(evidence, name, worst):
    """Show all that is known of the ``worst`` step."""
    evidence.report(f"dips {name}", {field: getattr(worst, field) for field in worst.declared()})


def judge_section_5(record, evidence, backlog):
    """Every line of text 1, section 5, in the runs of one policy; the control is a ``backlog`` of so many lagThresholds."""
    evidence.sign_off(record)
    reacted, drained, scaling, dip = reaction(record), drain(record), scaling_cost(record), worst_dip(record)
    evidence.chart_of("reaction, by part", lambda run: reaction_breakdown(reaction(run)), record)
    evidence.report("reaction, s", {part: reacted.part(part) for part in PARTS})
    evidence.report("scaling", {name: getattr(scaling, name) for name in ScalingCost.declared() if name != "each"})
    for kind in ("up", "down"):
        report_dips(evidence, kind, worst_dip(record, kind))
    events = scale_events(record)
    evidence.report("replicas", {name: getattr(events, name) for name in events.declared()})

    with evidence.of(record) as claim:
        claim(events.above_floor_at_baseline == 0, "no pod is scaled on the noise of a small lag", NO_NOISE)
        claim(
            reacted.total_s < compressed(REACTION_S, record[0].scale.time),
            "the first new pod is at work in time, though a scale does not divide all of its start",
        )
        claim.control(drained.peak_lag >= backlog * record[0].lag_threshold, "a backlog worth draining was built", DESIGN)
        claim(
            drained.rise_over_commits <= 1,
            "lag falls until it is at one lagThreshold, but for what arrives between two commits",
            TEXT,
        )
        claim(dip.depth < DIP, "no step that was taken while every partition had work costs a fifth of the throughput")
        claim(
            dip.recovery_s < RECOVERY_S,
            "after each step that was taken while every partition had work the group soon has its throughput back",
        )
        claim(scaling.share < 1, "scaling costs less than the backlog it clears", "text 1, section 1")
        claim_acceptance(claim, record)


@pytest.mark.spike
@pytest.mark.duration(300, scale="standard")
@pytest.mark.speed(SPEED)
@allure.story("A 10x spike is answered, drained and given back, and nothing is lost")
def test_a_10x_spike_is_answered_drained_and_given_back(trials, evidence):
    """A spike, on the policy of the experiments."""
    judge_section_5(trials.run(**SHORT), evidence, backlog=20)


@pytest.mark.acceptance
@pytest.mark.duration(1700, scale="standard")
@pytest.mark.speed(WHOLE_SPEED)
@pytest.mark.usefixtures("board_picture")
@allure.story("A group on range beside it")
def test_a_group_on_range_soon_has_its_throughput_back(trials, evidence):
    """What the recommended policy's steps cost a group that stops as a whole at each rebalance."""
    found = trials.blocks({"cooperative-sticky": WHOLE, "range": WHOLE | {"workload": slim(start_s=45, balancer="range")}})
    dips = {name: worst_dip(runs) for name, runs in found.items()}
    ranged = dips["range"]
    for name, worst in dips.items():
        report_dips(evidence, name, worst)
    evidence.report("dip, range less cooperative-sticky", paired(ranged.depth, dips["cooperative-sticky"].depth).figures())

    with evidence.of(found["range"]) as claim:
        claim.control(
            scale_events(found["range"]).most_replicas == found["range"][0].inputs.partitions,
            "the group on range scales as far",
            DESIGN,
        )
        claim(ranged.recovery_s < RECOVERY_S, "after each step on range the group soon has its throughput back")


@pytest.mark.acceptance
@pytest.mark.duration(850, scale="standard")
@pytest.mark.speed(WHOLE_SPEED)
@pytest.mark.usefixtures("board_picture")
@allure.story("One policy holds bursts, a 10x spike and the way back to the floor")
def test_one_policy_holds_bursts_a_spike_and_the_way_back(trials, evidence):
    """The recommended policy, at the full rate and by itself; the oldest event and the price are shown."""
    record = trials.run(**WHOLE)
    paid = cost(record)
    price = {"oldest event, s": oldest(record), "pod-minutes": paid.pod_minutes, "idle ratio": paid.idle_ratio}
    evidence.report("price", price)
    judge_section_5(record, evidence, backlog=13)  # the spike leaves 60,000 events, whatever the policy
