"""Ride-hailing: what does the text's own Locust command come to (docs/ride-hailing.md)?

Hypothesis. ``--users 5000 --spawn-rate 100 --run-time 600s`` is no Friday evening of 1,400 events/s. By Little's law the users
would make 40,000 events/s. They wait for their answers, so they make what ingestion can take and no more.

Method. For ``--scale=real``. The command's users against two pods of ingestion, on the text's ScaledObject. All of Locust, two
pods, the broker, the group and the control plane share the machine's cores, so the rate is the machine's and is no claim.

Asserted, and what would refute it. Each user is there a minute after the start. Ingestion refuses none of them, and every event
that it took is processed exactly once. Foretold for two cores: 600 to 1,500 events/s, and answers that take 3 to 8 s in the
median, since 5,000 users share that rate.
"""

import allure
import pytest

from lab.judge.quantity import Quantity
from lab.measure import age
from lab.measure.delivery import CONTRACT, DELIVERED, unaccounted
from lab.measure.integrity import integrity
from lab.measure.lag import peak_lag
from lab.measure.scaling import scale_events
from tests.scenarios.ride_hailing import claims
from tests.scenarios.ride_hailing.measure.load import load
from tests.scenarios.ride_hailing.trials import TRIPS, policy

pytestmark = [pytest.mark.real_time, allure.epic("Real systems"), allure.feature("Ride-hailing")]

COMMAND = "text 4: --users 5000 --spawn-rate 100"


@allure.story("5,000 users of Locust")
def test_the_texts_own_locust_command(trials, evidence):
    """What 5,000 users make on this machine, how long their answers take, and what became of each request."""
    record = trials.run(
        profile="locust-5000",
        policy=policy("trip-analytics"),
        workload=TRIPS,
        partitions=claims.PARTITIONS,
        beside=("ridehailing/ingestion",),
        driver="ridehailing/locust",
    )
    made = load(record)
    figures: dict[str, Quantity | float] = {"users, most": made.users, "requests": made.requests, "requests/s": made.rate}
    figures |= {"median (ms)": made.median_ms, "p99 (ms)": made.p99_ms}
    evidence.report("Locust", figures)
    figures = {"most replicas": scale_events(record).most_replicas, "peak lag": peak_lag(record)}
    evidence.report("the group", figures | {"oldest event (s)": age.oldest(record)})
    unanswered = integrity(record).unknown_or_failed.named("requests without a certain answer", "requests")

    with evidence.of(record) as claim:
        claim(made.users >= claims.USERS, "all users are there", kind="control", source=COMMAND)
        claim(made.failures == 0, "ingestion refuses no request", source="text 4: every request")
        claim(unanswered == 0, "each request has a certain answer", source="contract of the answer 202")
        claim(unaccounted(record) == 0, DELIVERED, kind="invariant", source=CONTRACT)
