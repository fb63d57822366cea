"""Scenario zero loss, retries at real time: what do retries after 1, 2 and 4 s cost a group?

Hypothesis. A retry stops its partition, so a partition gives no more than 1 / (processing + share x delays) messages/s, however
many pods there are. With delays that are not compressed 24 partitions give 447/s.

Method. The scenario's ScaledObject and workload, with delays that are 1, 2 and 4 s after the scale's compression, and 1,500
messages/s (profile ``retries``). The profile ends before the backlog: the trial ends with it.

Asserted. Each wait is at least its delay. The rate on the plateau is no more than a quarter above what the formula gives: some
hundred failing messages decide it, whose number varies by a tenth.

Refuted by a shorter wait, or a higher rate.
"""

from dataclasses import replace

import allure
import pytest

from lab.inputs.inputs import REPLAYED
from lab.inputs.workload import PARTITIONS
from lab.judge.measure import quantity
from lab.measure.throughput import Throughput
from tests.scenarios.zero_loss.measure.retries import partition_rate, retry_waits
from tests.scenarios.zero_loss.test_zero_loss import POLICY, SHARES, WORKLOAD

pytestmark = [pytest.mark.scenario, pytest.mark.extended, allure.epic("Real systems"), allure.feature("Zero loss")]

DELAYS_S = (1, 2, 4)
CEILING = PARTITIONS * partition_rate(0.01, *SHARES, DELAYS_S)


@allure.story("Retries that wait 1, 2 and 4 s")
def test_retries_of_seconds_bound_the_group(trials, scale, evidence):
    """No pod brings the group past what its retries leave."""
    retry_ms = ",".join(f"{1000 * delay * scale.time:g}" for delay in DELAYS_S)
    work = replace(WORKLOAD, retry_ms=retry_ms)
    record = trials.run(profile="retries", policy=POLICY, workload=work, until=REPLAYED)
    waits, over = retry_waits(record), (plateau_rate(record) / CEILING).named("messages/s over what the formula gives")
    figures = {"waits": waits.waits, "shortest over its delay": waits.shortest, "median over its delay": waits.middle}
    evidence.report("1, 2 and 4 s", figures | {"messages/s": plateau_rate(record), "by the formula": CEILING})

    with evidence.of(record) as claim:
        claim.invariant(waits.shortest >= 0.99, "no retry comes before its delay", "text 5: 1 s, 2 s, 4 s")
        claim(over <= 1.25, "no replica brings the group past what its retries leave", "formula: docs/zero-loss.md")


@quantity("messages/s", "messages/s on the plateau")
def plateau_rate(record):
    """The rate of receipts while the traffic is more than the group does."""
    return Throughput(record.receipts).rate(*record.span("plateau"))
