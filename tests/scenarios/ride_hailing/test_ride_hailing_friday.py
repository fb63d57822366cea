"""Ride-hailing: what is the text's Friday evening at real time, row by row (docs/ride-hailing.md)?

Hypothesis. At uncompressed settings the text's ScaledObject brings lag below 1,000 messages by T+180, while 1,400 events/s
come. Without it two pods fall behind by 1,000 messages a second.

Method. For ``--scale=real``. The evening is the text's timeline on its own ScaledObject; each run of ``--repeat=3`` begins at
a drawn point of the HPA's sync. A pod does 200 events/s, commits every 0.75 s, and takes 30 s to start, the least of the
text's 30 to 60 s. The other trial is 32 minutes of 1,400 events/s on two fixed pods, as from 6:15 to 6:47 PM.

Asserted. Each bound of the evening is a row or a sentence of the text. The two pods' lag, its age and a pod's memory are
judged by the text's figures.

Refuted by a number beyond its row.
"""

import allure
import pytest

from lab.measure import lateness
from lab.measure.cost import cost
from lab.measure.lag import growth, moment, peak_lag
from lab.measure.scaling import scale_events
from tests.experiments.measure.memory import pod_memory
from tests.scenarios.ride_hailing import claims
from tests.scenarios.ride_hailing.evening import SLOW, TABLE, foretold, report_timeline
from tests.scenarios.ride_hailing.measure.evening import first_step, lag_over_floor, off_rows
from tests.scenarios.ride_hailing.trials import BEFORE, EVENING

pytestmark = [pytest.mark.real_time, allure.epic("Real systems"), allure.feature("Ride-hailing")]

SYMPTOM = "text 4, The Symptom"


@allure.story("Friday evening at real time")
def test_friday_evening_row_by_row(trials, evidence):
    """The text's timeline at uncompressed settings: lag, replicas and the way back, each beside the text's own."""
    record = trials.run(**EVENING | {"workload": SLOW})
    model = foretold()
    report_timeline(evidence, record, model)
    figures = {"oldest event (s)": lateness.oldest(record), "idle ratio": cost(record).idle_ratio}
    evidence.report("the evening", figures | {"pod-minutes": cost(record).pod_minutes, "peak lag": peak_lag(record)})

    with evidence.of(record) as claim:
        claim(first_step(record) < 45, "KEDA takes the first step by the text's T+45", TABLE)
        claim(peak_lag(record) < 35_000, "lag stays below the highest of the text's table", TABLE)
        claim(moment(record, 120).real_lag <= 8_000, "the group catches up by T+120 as in the text's table", TABLE)
        claim(moment(record, 180).real_lag < 1_000, "lag is below 1,000 at T+180", "text 4: By T+180")
        off_text = off_rows(record, [(row.at, row.replicas) for row in claims.TIMELINE])
        claim(off_text == 0, "the replicas at each row are the text's", TABLE)
        off_model = off_rows(record, [(row.at, one.wanted.number) for row, one in zip(claims.TIMELINE, model, strict=True)])
        source = "the policy: one step is 5 pods, and a point of the sync moves it by up to 15 s"
        claim(off_model <= 5, "the replicas at each row are the model's, but for one step", source)
        claim(scale_events(record).flips == 0, "no pod is taken too early", "text 4: prevents premature scale-down")
        claim(lag_over_floor(record, claims.TIMELINE[-1].at) <= 1, "the group has caught up by T+600", TABLE)
        claim(scale_events(record).above_floor_at_end == 0, "the group gives back what it took", "policy: the floor")


@pytest.fixture
def before_keda(trials):
    """The 32 minutes before KEDA."""
    return trials.run(**BEFORE | {"profile": "trips-before"})


@allure.story("From 6:15 to 6:47 PM on two pods")
def test_two_pods_for_32_minutes(before_keda, evidence):
    """What the text says of the time before KEDA: how far behind, how old, and that it grows by 1,000 a second."""
    behind, oldest = peak_lag(before_keda), lateness.oldest(before_keda)
    evidence.report("two pods", {"peak lag": behind, "oldest event (s)": oldest, "idle ratio": cost(before_keda).idle_ratio})

    with evidence.of(before_keda) as claim:
        source = f"{SYMPTOM}: 1,000 per second of deficit"
        claim.control(growth(before_keda, "spike") > 950, "two fixed pods fall behind by 1,400 events/s less their 400", source)
        claim(behind <= 1.1 * 847_000, "after 32 minutes 847,000 messages wait", f"{SYMPTOM}: 847,000 messages")
        claim(oldest >= 0.9 * 32 * 60, "some events are 32 minutes old", f"{SYMPTOM}: data from 32 minutes ago")


@allure.story("From 6:15 to 6:47 PM on two pods: memory")
def test_memory_of_two_pods_is_flat(before_keda, evidence):
    """A pod's memory follows the backlog until its client's queue is full, and then it stands still."""
    held = pod_memory(before_keda)
    evidence.report("memory of a pod", {"before (MB)": held.baseline_mb, "late (MB)": held.late_mb, "growth (x)": held.growth})

    with evidence.of(before_keda, delivery=None) as claim:
        source = "its own rates: 1,280,000 after two thirds of the time, 1,920,000 at its end"
        claim.control(held.lag_over_middle >= 1.3, "lag grows while memory is compared", source)
        source = f"Kubernetes' docs: tolerance 10 %; {SYMPTOM}: memory is at 28 %"
        claim(held.late_growth < 1.1, "memory does not see a backlog that is larger than the client's queue", source)
