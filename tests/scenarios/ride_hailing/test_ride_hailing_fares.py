"""Ride-hailing: are fares reconciled from zero and back (docs/ride-hailing.md)?

Hypothesis. Fare reconciliation costs nothing while there is nothing to do. When a batch comes its first pod is at work within a
minute, and it gets a pod for each 500 events.

Method. The text's ScaledObject on a single event and on a batch of 5,000, and the same batch with a scaleDown policy of one pod
a minute.

Asserted. One event wakes nobody, though KEDA reads it again and again: activationLagThreshold 1 asks for more than one. The
batch gets ten pods, its first receipt within the text's minute, and no pod is left; KEDA's way to zero knows no scaleDown
policy. Nothing is lost or processed twice.

Refuted by a pod for one event, fewer than ten for the batch, or a later first receipt.
"""

import allure
import pytest

from lab.inputs import variant
from lab.inputs.inputs import REPLAYED
from lab.judge.bounds import compressed
from lab.judge.quantity import Bound, Quantity
from lab.measure import lateness
from lab.measure.delivery import delivery
from lab.measure.reaction.step import PARTS, reaction
from lab.measure.scaling import scale_events
from lab.measure.signal import intervals_showing
from tests.experiments.sources import ACTIVATION, DESIGN
from tests.scenarios.ride_hailing import claims
from tests.scenarios.ride_hailing.measure.evening import last_step_to_zero
from tests.scenarios.ride_hailing.trials import FARES, policy

pytestmark = [pytest.mark.scenario, allure.epic("Real systems"), allure.feature("Ride-hailing")]


@allure.story("Fare reconciliation")
def test_fares_are_reconciled_from_zero_and_back(trials, evidence, batch):
    """One event wakes nobody; 5,000 do, and the first waits for a pod; then all pods go at once."""
    plan = {"workload": FARES, "partitions": claims.PARTITIONS}
    single = trials.run(profile="fares-one", policy=policy("fare-reconciliation"), until=REPLAYED, **plan)
    slow = trials.run(
        profile="fares",
        policy=variant.policy(policy("fare-reconciliation"), scale_down_window=300, scale_down="1 pod/60s"),
        **plan,
    )
    one = delivery(single)
    sent = one.stored.named("events of the batch of one", "events")
    waiting = one.uncommitted.named("events of the batch of one without a commit at the end", "events")
    first_receipt = reaction(batch).divided_s.named("first event to the first receipt, all of it divided by the scale")
    acceptable = compressed(Bound(60, "text 4: 30 to 60 s from 0 to 1"), trials.scale.time)

    with evidence.of({"one event": single, "batch": batch, "batch, slow down": slow}) as claim:
        claim.control(sent == 1, "there was an event to wake for", DESIGN)
        claim(waiting == 1, "the event is there at the end, and nobody comes for it", ACTIVATION)
        shown = intervals_showing(single, 1)
        claim.control(shown >= 10, "KEDA has shown the lag of one for ten intervals", DESIGN)
        claim(scale_events(single).most_replicas == 0, "activationLagThreshold 1 asks for more than one event", ACTIVATION)
        claim(first_receipt < acceptable, "a batch can bear the start from zero")
        claim(scale_events(batch).most_replicas == 10, "5,000 events get ten pods", "text 4: ceil(5000 / 500)")
        left = scale_events(batch).above_floor_at_end.named("replicas at the end")
        claim(left == 0, "nothing to do costs nothing", "policy: minReplicaCount 0")
        last = last_step_to_zero(slow)
        claim(last > 1, "KEDA's way to zero knows no scaleDown policy", "KEDA's docs: to zero by cooldownPeriod")
        for name, record in {"as written": batch, "one pod a minute": slow}.items():
            found = reaction(record)
            figures: dict[str, Quantity | float] = {"first event to any receipt (s)": found.total_s}
            figures |= {part: found.part(part) for part in PARTS}
            figures |= {"first event to its own receipt (s)": lateness.first(record), "last step": last_step_to_zero(record)}
            evidence.report(name, figures)
