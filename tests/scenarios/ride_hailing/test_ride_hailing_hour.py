"""Ride-hailing: does what the pipeline keeps stay bounded for an hour (docs/decisions/16)?

Hypothesis. After its first retention and its first watermarks the pipeline keeps no more files and no more state, however many
batches go by, and its table is as fresh as before.

Method. For ``--scale=real``. The chain of group, Spark and reader on an hour of traffic in six equal phases of ten minutes. In
each the group, which KEDA scales by the text's ScaledObject, is short of pods for five minutes. A file stays in the table for
a quarter of an hour. The driver reports what it keeps with each batch.

Asserted. What is kept at most in the sixth phase is what was kept at most in the third, the first in which files expired
throughout, and a tenth more at most for batches that come sooner.

Refuted by more.
"""

import allure
import pytest

from lab.charts.breakdown import memory_chart
from lab.judge.bounds import MEMORY_AN_HOUR
from lab.measure.scaling import scale_events
from tests.experiments.measure.memory import memory_growth
from tests.scenarios.ride_hailing.measure.pipeline import (
    BY_WATERMARK,
    ONCE,
    THE_LEDGERS,
    freshness,
    kept,
    over_watermark,
    pipeline,
    unequal,
)
from tests.scenarios.ride_hailing.programs.pipeline import WATERMARK_S
from tests.scenarios.ride_hailing.trials import PIPELINE

pytestmark = [pytest.mark.real_time, allure.epic("Real systems"), allure.feature("Ride-hailing")]

PHASES = ("first", "second", "third", "fourth", "fifth", "sixth")
EARLY, LATE = PHASES[2], PHASES[5]
BOUNDED = "decision 16: what is kept does not depend on how long it runs; a tenth for batches that come sooner"


@allure.story("An hour of the pipeline")
def test_an_hour_adds_nothing_that_stays(trials, evidence):
    """Files, state, memory and the table's age in the last ten minutes of an hour, beside those of its third ten minutes."""
    record = trials.run(**PIPELINE | {"profile": "trips-hour"})
    for phase in PHASES:
        seen, most = freshness(record, phase), kept(record, phase)
        figures = {"newest event, age (s)": seen.newest, "oldest that lacks, p99 (s)": seen.p99, "files": most.files}
        evidence.report(phase, figures | {"state (rows)": most.state_rows, "state (bytes)": most.state_bytes})
    whole = pipeline(record)
    figures = {"batches": whole.batches, "batch, median (s)": whole.batch_s, "rows": whole.rows, "late": whole.late}
    evidence.report("the hour", figures | {"repeated, dropped": whole.repeated, "beyond the watermark": whole.beyond})
    evidence.chart_of("memory of the lab's processes", memory_chart, record)

    with evidence.of(record) as claim:
        early, late = kept(record, EARLY), kept(record, LATE)
        claim.control(scale_events(record).scale_ups > 0, "the group is scaled meanwhile", "the design")
        claim(late.files / early.files <= 1.1, "files do not become more", BOUNDED)
        claim(late.state_rows / early.state_rows <= 1.1, "rows of the state do not become more", BOUNDED)
        claim(late.state_bytes / early.state_bytes <= 1.1, "the state's memory does not grow", BOUNDED)
        claim.control(memory_growth(record).share_an_hour <= MEMORY_AN_HOUR, "no process grows without end")
        claim(
            freshness(record, LATE).newest / freshness(record, EARLY).newest <= 1.5,
            "the table is as fresh at the hour's end",
            "the lab's own: half as much again is less than a second",
        )
        kept_longer = over_watermark(record, WATERMARK_S)
        claim.invariant(kept_longer <= 0, "the state is bounded by the watermark", BY_WATERMARK)
        claim.invariant(unequal(record) == 0, THE_LEDGERS, ONCE)
