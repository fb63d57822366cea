"""Ride-hailing: is the dashboard fresh, and are its multipliers true (docs/ride-hailing.md)?

Hypothesis. At the peak the dashboard is less than 3 s old, and more than 95 % of its surge multipliers are true.

Method. A tenth of the evening's traffic comes from Locust through the HTTP ingestion service and Kafka; Spark Structured
Streaming keeps the dashboard's table. The generator's truth is computed again from its seed.

Asserted. Both claims at the peak, that the table takes every event once, that the tasks have the text's weights, and that each
request has a certain answer. Not asserted are the text's figures of normal hours (staleness < 1 s, accuracy > 95 %): they are
reported. Accuracy takes more updates of a zone than normal hours have.

Refuted by a staler table, a falser one at the peak, or one event missing or doubled.
"""

import allure
import pytest

from lab.inputs import variant
from lab.inputs.inputs import REPLAYED
from lab.judge.measure import measure
from lab.judge.quantity import Quantity
from lab.measure import lateness
from lab.measure.delivery import delivery
from tests.experiments.sources import ANSWER_202, DELIVERY
from tests.scenarios.ride_hailing.measure.dashboard import accuracy, staleness, uncounted
from tests.scenarios.ride_hailing.measure.load import load, off_weight, share_of
from tests.scenarios.ride_hailing.programs import message
from tests.scenarios.ride_hailing.programs.city import SURGE, WEIGHTS, City
from tests.scenarios.ride_hailing.trials import EVENING, TENTH_OF_TRIPS, policy

pytestmark = [pytest.mark.scenario, allure.epic("Real systems"), allure.feature("Ride-hailing")]

ZONES, DRIVERS = 20, 500  # of manifests/ridehailing/locust.yaml
PEAK, NORMAL = "spike", "drain"  # phases of the profile
TARGET = "text 4, target state at the Friday peak"


@allure.story("The dashboard")
def test_the_dashboard_is_fresh_and_its_multipliers_are_true(trials, evidence):
    """Locust, ingestion, Kafka, Spark: event time to table, and the table's multipliers beside the generator's."""
    tenth = {"policy": variant.policy(policy("trip-analytics"), lag_threshold=15_000), "workload": TENTH_OF_TRIPS}
    http = {"beside": ("ridehailing/ingestion", "ridehailing/analytics"), "driver": "ridehailing/locust"}
    record = trials.run(**EVENING | tenth | http | {"profile": "trips-http", "until": REPLAYED})
    stale = {phase: staleness(record, phase) for phase in (PEAK, NORMAL)}
    accurate = {phase: multipliers(record, phase) for phase in (PEAK, NORMAL)}
    for name, phase in {"at the peak": PEAK, "in normal hours": NORMAL}.items():
        delay, true = stale[phase], accurate[phase]
        figures = {"staleness, median (s)": delay.median, "staleness, p99 (s)": delay.p99, "staleness, worst (s)": delay.worst}
        figures |= {"micro-batch (s)": delay.batch_s, "multipliers true (%)": true.table}
        evidence.report(name, figures | {"at best, with these updates (%)": true.at_best})
    evidence.report("consumer group", {"oldest event (s)": lateness.oldest(record)})
    unanswered = delivery(record).unknown_or_failed.named("requests without a certain answer", "requests")
    weights = {f"/api/events/{kind}": weight for kind, weight in WEIGHTS.items()}

    with evidence.of(record) as claim:
        claim(stale[PEAK].p99 < 3, "at the peak the dashboard is less than 3 s old", TARGET)
        claim(accurate[PEAK].table > 95, "at the peak the surge multipliers are true", TARGET)
        claim.invariant(staleness(record).left_out == 0, "the dashboard has read every event", DELIVERY)
        claim.invariant(uncounted(record) == 0, "the table counts every event that was read: none is late", DELIVERY)
        source = "text 4: weights 5 : 3 : 1"
        claim.control(off_weight(record, weights) < 3, "Locust's tasks have the text's weights, 5 : 3 : 1", source)
        claim.invariant(unanswered == 0, "an answer 202 means that the broker has the event", ANSWER_202)
        claim(load(record).failures == 0, "every request succeeds", "text 4: every request")
        report_load(evidence, record)


@measure
def multipliers(record, phase):
    """How many of the table's surge multipliers are the generator's in ``phase``."""
    city = City(record.inputs.seed, ZONES, DRIVERS)
    return accuracy(record, city.zones, city.multiplier, updated_zone, phase)


def updated_zone(entity_id):
    """The zone that an event is an update of, None for an event of another kind."""
    kind, number = message.named(entity_id)
    return number if kind == SURGE else None


def report_load(evidence, record):
    """Add what Locust made and saw to the evidence, beside the text's weights."""
    made, whole = load(record), sum(WEIGHTS.values())
    figures: dict[str, Quantity | float] = {"users, most": made.users, "requests/s": made.rate}
    figures |= {"median (ms)": made.median_ms, "p99 (ms)": made.p99_ms}
    figures |= {f"share of {kind} (%)": share_of(record, f"/api/events/{kind}") for kind in WEIGHTS}
    evidence.report("Locust", figures)
    evidence.report("weights of the text", {f"share of {kind} (%)": 100 * one / whole for kind, one in WEIGHTS.items()})
