"""Scenario payments: how does a member leave the group, and who is let in?

Hypothesis. A pod that a scale-down takes goes in order: it ends what is in flight, commits, leaves and exits within its grace.
Of two members without an assignor in common the coordinator refuses the second; the text says that the group falls back.

Method. Three bursts on the author's ScaledObject without inertia; each pod's reports, its exit code and the ledger. Beside it
groups of one or two members with different assignors on the same broker.

Asserted. Every pod that had joined left in order, in time, with exit code 0; nothing is lost or doubled. The second member is
told INCONSISTENT_GROUP_PROTOCOL and the first keeps all partitions; an assignor that both list is taken; KIP-848 takes over
from cooperative-sticky.

Refuted by one pod out of order, or a second member that owns a partition.
"""

import json

import allure
import pytest

from lab.record.store import write_json
from tests.experiments.sources import DESIGN, SHUTDOWN
from tests.scenarios.payments import mixed_assignors
from tests.scenarios.payments.measure.shutdown import STEPS, departures, longest_shutdown, shutdowns
from tests.scenarios.payments.trials import run

pytestmark = [pytest.mark.scenario, allure.epic("Real systems"), allure.feature("Payments")]

MIXTURES = {
    "range, then cooperative-sticky": (mixed_assignors.RANGE, mixed_assignors.COOPERATIVE),
    "cooperative-sticky, then range": (mixed_assignors.COOPERATIVE, mixed_assignors.RANGE),
    "range and roundrobin, then roundrobin": (mixed_assignors.BOTH_EAGER, mixed_assignors.ROUND_ROBIN),
    "cooperative-sticky or range": (mixed_assignors.EITHER,),
    "cooperative-sticky, then KIP-848": (mixed_assignors.COOPERATIVE, mixed_assignors.KIP_848),
}


@pytest.fixture
def mixtures(request, results):
    """What members of one group with different assignors were told by a real broker; kept beside the records."""
    stored = request.config.getoption("lab_from_records")
    file = (stored or results) / "payments-assignors.json"
    if stored is None:
        bootstrap = request.getfixturevalue("bootstrap")
        write_json(file, {name: mixed_assignors.observe(bootstrap, members) for name, members in MIXTURES.items()})
    return json.loads(file.read_text())


@allure.story("Graceful shutdown, step by step")
def test_a_pod_that_is_taken_leaves_in_order(trials, evidence):
    """Every pod that a scale-down took from its work: signal, in-flight work, commit, leave, exit 0, within its grace."""
    record = run(trials, "bursty", "no-inertia")
    left = departures(record)

    with evidence.of(record) as claim:
        claim.control(left.pods > 0, "a scale-down took pods from their work", DESIGN)
        claim(left.out_of_order == 0, "each pod ends its work, commits, leaves and exits, in this order", SHUTDOWN)
        claim(left.failed == 0, "an orderly exit has code 0", SHUTDOWN)
        claim(longest_shutdown(record) <= 60, "no pod needs more than its grace period", "text 2: 60 s of grace")
        taken = [one for each in record for one in shutdowns(each)]
        joined = [one for one in taken if one.joined]
        # A pod that never reported that it left took the longest.
        slowest = sorted(joined, key=lambda one: one.steps.get("left the group", float("inf")), reverse=True)[:5]
        for number, one in enumerate(slowest):
            evidence.report(f"pod {number + 1} (s after its deletion)", {step: one.steps.get(step) for step in STEPS})
        evidence.report("taken while they started", {"pods": len(taken) - len(joined)})


@allure.story("Two assignors in one group")
def test_a_member_with_another_assignor_is_refused(mixtures):
    """range and cooperative-sticky have nothing in common: the coordinator refuses the second member, and nobody falls back."""
    allure.attach(json.dumps(mixtures, indent=1), "what each member was told", allure.attachment_type.JSON)
    for order in ("range, then cooperative-sticky", "cooperative-sticky, then range"):
        found = mixtures[order]
        first, second = found["members"]["member-1"], found["members"]["member-2"]
        assert "INCONSISTENT_GROUP_PROTOCOL" in second["errors"], order
        assert (second["owned"], first["owned"]) == ([], [*range(mixed_assignors.PARTITIONS)]), order
        assert found["assignor"] == first["strategy"]["partition.assignment.strategy"], "the group did not fall back"
    common = mixtures["range and roundrobin, then roundrobin"]
    assert common["assignor"] == "roundrobin"
    assert all(one["owned"] for one in common["members"].values())
    assert "member-1" in mixtures["cooperative-sticky or range"]["refused"]
    upgraded = mixtures["cooperative-sticky, then KIP-848"]
    assert upgraded["protocol"] == "CONSUMER"
    assert all(one["owned"] for one in upgraded["members"].values())
