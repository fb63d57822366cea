"""Ride-hailing: what do Locust's users come to, the timeline's 350 and the command's 5,000 (docs/ride-hailing.md)?

Hypothesis. 350 users on a schedule make 1,400 events/s, and the group keeps the text's timeline as under the lab's producer.
``--users 5000`` is no Friday evening: by Little's law 40,000 events/s, but users wait for their answers, so they make what
ingestion takes.

Method. For ``--scale=real``. Locust drives two pods of ingestion, on the text's ScaledObject: along the text's timeline, each
request at its time, and with the command's users and waits. The rate of 5,000 users is the machine's.

Asserted. Along the timeline users make nine tenths of its rate: the control. Lag is below 1,000 at T+180, and caught up by
T+600. All 5,000 users are there. Ingestion refuses no request, and every event is processed exactly once.

Refuted by a refused request, an event lost, or a later catch-up.
"""

import allure
import pytest

from lab.judge.quantity import Quantity
from lab.measure import lateness
from lab.measure.delivery import delivery
from lab.measure.lag import moment, peak_lag
from lab.measure.scaling import scale_events
from tests.scenarios.ride_hailing import claims
from tests.scenarios.ride_hailing.evening import SLOW, TABLE, foretold, report_timeline
from tests.scenarios.ride_hailing.measure.evening import lag_over_floor
from tests.scenarios.ride_hailing.measure.load import load, offered
from tests.scenarios.ride_hailing.trials import EVENING

pytestmark = [pytest.mark.real_time, allure.epic("Real systems"), allure.feature("Ride-hailing")]

COMMAND = "text 4: --users 5000 --spawn-rate 100"
HTTP = EVENING | {"workload": SLOW, "beside": ("ridehailing/ingestion",), "driver": "ridehailing/locust-paced"}


@allure.story("Locust drives Friday evening")
def test_locust_drives_friday_evening(trials, evidence):
    """The text's timeline row by row, with events that users send to ingestion and not the lab's producer to the broker."""
    record = trials.run(**HTTP)
    report_timeline(evidence, record, foretold())
    made = load(record)
    figures = {"users, most": made.users, "median (ms)": made.median_ms, "p99 (ms)": made.p99_ms}
    evidence.report("Locust", figures | {"of the spike's events": offered(record, "spike"), "peak lag": peak_lag(record)})

    with evidence.of(record) as claim:
        law = "Little's law: an answer may take the whole cycle of 0.25 s"
        claim.control(offered(record, "spike") >= 0.9, "350 users make 1,400 events/s", law)
        claim(moment(record, 180).real_lag < 1_000, "lag is below 1,000 at T+180", "text 4: By T+180")
        claim(lag_over_floor(record, claims.TIMELINE[-1].at) <= 1, "the group has caught up by T+600", TABLE)
        claim(made.failures == 0, "ingestion refuses no request", "text 4: every request")


@allure.story("5,000 users of Locust")
def test_the_texts_own_locust_command(trials, evidence):
    """What 5,000 users make on this machine, how long their answers take, and what became of each request."""
    record = trials.run(**HTTP | {"profile": "locust-5000", "driver": "ridehailing/locust"})
    made = load(record)
    figures: dict[str, Quantity | float] = {"users, most": made.users, "requests": made.requests, "requests/s": made.rate}
    figures |= {"median (ms)": made.median_ms, "p99 (ms)": made.p99_ms}
    evidence.report("Locust", figures)
    figures = {"most replicas": scale_events(record).most_replicas, "peak lag": peak_lag(record)}
    evidence.report("the group", figures | {"oldest event (s)": lateness.oldest(record)})
    unanswered = delivery(record).unknown_or_failed.named("requests without a certain answer", "requests")

    with evidence.of(record) as claim:
        claim.control(made.users >= claims.USERS, "all users are there", COMMAND)
        claim(made.failures == 0, "ingestion refuses no request", "text 4: every request")
        claim(unanswered == 0, "each request has a certain answer", "contract of the answer 202")
