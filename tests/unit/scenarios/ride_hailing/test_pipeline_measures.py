"""The measures of the pipeline on records written by hand, where every number is known."""

import math
from datetime import UTC, datetime

import pytest

from lab import paths
from lab.inputs import profile
from tests.scenarios.ride_hailing.measure import pipeline
from tests.scenarios.ride_hailing.programs.surge import ZONES, Demand
from tests.unit.measure.conftest import report
from tests.unit.scenarios.ride_hailing.test_measures import ledger, phased


def seen(t, offsets, events=0, seqs=0, zones=None):
    """The reader's report of a batch that was available at ``t``."""
    told = {"batch": t, "available": t, "rows": 1, "offsets": offsets, "zones": zones or {}}
    return report(t, "pipeline", "table", events=events, seqs=seqs, late=3, **told)


def done(t, watermark=0, **more):
    """The driver's report of a batch."""
    told = {"batch": t, "input": 1, "batch_s": 0.5, "state_rows": 2, "state_bytes": 100, "beyond_watermark": 0, "repeated": 1}
    told |= {"watermark": datetime.fromtimestamp(watermark, UTC).isoformat(), "files": {"rows": 2, "log": 3}}
    return report(t, "pipeline", "batch", **told | more)


EVENTS = ((0, 0, 1, 105), (0, 1, 1, 110), (0, 2, 1, 119), (1, 0, 1, 125))  # their seqs are 0 to 3


def record(folder, *reports, events=EVENTS):
    """Traffic from 110 to 130 with ``events``; the profile has one a second."""
    ledger(folder, *events)
    return phased(folder, (10, "spike"), group_events=reports)


def test_freshness_is_of_what_the_table_lacks(tmp_path):
    """110 lacks until 114, 119 until 121 and 125 until the end; what is newest in the table is 105, 110 and then 119."""
    made = record(tmp_path, seen(108, {"0": 1}), seen(114, {"0": 2}), seen(121, {"0": 3}))
    found = pipeline.freshness(made, "spike")
    assert (found.median.value, found.worst.value) == (0.25, 4.75)
    assert found.newest.value == pytest.approx(6.875)
    assert "no phase drain" in pipeline.freshness(made, "drain").p99.why
    assert "empty" in pipeline.freshness(record(tmp_path / "empty", seen(111, {"0": 1})), "spike").newest.why


def test_surge_is_held_against_the_demand(tmp_path):
    """A board that shows each second's true multipliers, and one that shows none."""
    demand = Demand(1)
    zones = [{f"zone-{zone}": demand.multiplier(zone, t) for zone in range(ZONES)} for t in range(30)]
    events = [(0, seq, 1, 100 + seq) for seq in range(30)]
    true = pipeline.surge(record(tmp_path, *(seen(100 + t, {}, zones=zones[t]) for t in range(30)), events=events), "spike")
    assert true.table.value > 95
    assert 0 < true.at_best.value < 100  # an event a second is too few for six zones
    assert pipeline.surge(record(tmp_path / "wrong", seen(100, {}, zones={"zone-0": 9.0})), "spike").table.value == 0


@pytest.mark.parametrize(
    ("offsets", "events", "seqs", "unequal"),
    [
        ({"0": 3, "1": 1}, 4, 6, 0),
        ({"0": 2, "1": 1}, 3, 4, 0),
        ({"0": 2}, 2, 1, 1),  # a partition lacks
        ({"0": 3, "1": 1}, 3, 4, 1),  # one lacks
        ({"0": 2, "1": 1}, 4, 5, 1),  # one is there twice
        ({"0": 3, "1": 1}, 4, 5, 1),  # one lacks and another is there twice
    ],
)
def test_the_table_is_held_against_the_ledger(tmp_path, offsets, events, seqs, unequal):
    """As far as it has come in each partition."""
    made = record(tmp_path, seen(108, {"0": 1}, 1, 0), seen(121, offsets, events, seqs))
    assert pipeline.unequal(made).value == unequal


def test_a_table_says_what_it_has_not_come_to(tmp_path):
    """The third event of one partition, and the only one of another."""
    assert pipeline.ahead(record(tmp_path, seen(121, {"0": 3, "1": 1}))).value == 0
    assert pipeline.ahead(record(tmp_path / "less", seen(121, {"0": 2}))).value == 2


def test_the_state_is_held_against_the_watermark(tmp_path):
    """At a watermark of 115 with a delay of 5 s rows from 110 on may be there, but for 110 itself: two.

    Until the watermark has passed an event by the delay the state may keep all, and nothing is said.
    """
    assert "may keep all" in pipeline.over_watermark(record(tmp_path / "short", done(126, 109, state_rows=9)), 5).why
    assert pipeline.over_watermark(record(tmp_path, done(126, 115, state_rows=2)), 5).value == 0
    assert pipeline.over_watermark(record(tmp_path / "more", done(120), done(126, 115, state_rows=4)), 5).value == 2


def test_a_pipelines_batches_are_summed_up(tmp_path):
    """The counts of what was dropped are those of all batches. What is kept is the most at a batch of a phase.

    No data where the driver reported no batch.
    """
    made = record(tmp_path, done(111), done(112, state_rows=9, beyond_watermark=4, batch_s=1.5), seen(112, {"0": 1}, 7))
    found = pipeline.pipeline(made)
    assert (found.batches.value, found.batch_s.value, found.rows.value, found.late.value) == (2, 1.0, 7, 3)
    assert (found.repeated.value, found.beyond.value) == (2, 4)
    assert "no batch" in pipeline.over_watermark(record(tmp_path / "empty"), 5).why
    made = record(tmp_path / "phases", done(105, state_rows=9, files={"rows": 9}), done(111), done(112, state_bytes=800))
    whole, spike = pipeline.kept(made), pipeline.kept(made, "spike")
    assert (whole.state_rows.value, whole.state_bytes.value, whole.files.value) == (9, 800, 9)
    assert (spike.state_rows.value, spike.state_bytes.value, spike.files.value) == (2, 800, 5)
    assert "no phase drain" in pipeline.kept(made, "drain").files.why
    assert "no batch in phase spike" in pipeline.kept(record(tmp_path / "none", done(105)), "spike").files.why


def test_a_micro_batch_is_fitted(tmp_path):
    """0.5 s and 2 ms a row: 500 events/s at most. The baseline does not count. No data for two sizes, or a negative row."""
    sizes = {111: 50, 112: 100, 113: 300}
    told = [done(t, input=rows, batch_s=0.5 + 0.002 * rows) for t, rows in sizes.items()]
    made = record(tmp_path, done(105, input=9, batch_s=9.0), *told)
    found = pipeline.batch(made)
    assert (found.fixed_s.value, found.row_ms.value) == (pytest.approx(0.5), pytest.approx(2))
    assert found.most.value == pytest.approx(500)
    assert pipeline.least(made, 100, 0.25).value == pytest.approx(0.25 + 1 + 0.7)
    assert pipeline.least(made, 600).value == math.inf
    assert "2 sizes" in pipeline.batch(record(tmp_path / "few", *told[:2])).most.why
    shorter = [done(t, input=rows, batch_s=0.5 - 0.001 * rows) for t, rows in sizes.items()]
    assert "ms a row" in pipeline.least(record(tmp_path / "shorter", *shorter), 100).why


def test_the_least_staleness_is_that_of_the_page():
    """docs/ride-hailing.md: 1.8 s at a tenth of the traffic, 588 events/s at most, and no batch is done at 1,400."""
    fixed_s, row_s = 0.52, 0.0017
    assert round(pipeline.least_staleness(140, fixed_s, row_s), 1) == 1.8
    assert pipeline.least_staleness(140, fixed_s, row_s, 1.2) < 3 < pipeline.least_staleness(140, fixed_s, row_s, 1.3)
    # Beyond the trigger a batch has the rows that came in the one before.
    length = pipeline.batch_length(400, fixed_s, row_s)
    assert length == pytest.approx(fixed_s + row_s * 400 * length)
    assert pipeline.least_staleness(400, fixed_s, row_s) == 2 * length
    assert math.isfinite(pipeline.batch_length(1 / row_s - 1, fixed_s, row_s))
    assert pipeline.least_staleness(1400, fixed_s, row_s) == math.inf


@pytest.mark.parametrize(("capacity", "react_s", "age"), [(400, 30, 15), (400, 45, 22.5), (800, 30, 7.5), (1400, 45, 0)])
def test_the_least_wait_of_a_policy_that_reacts(capacity, react_s, age):
    """docs/ride-hailing.md, on the text's timeline: 12,000 of 24,000 events are done after 30 s, the last of T+15."""
    friday = profile.load(paths.PROFILES / "trips.yaml")
    assert pipeline.least_wait(friday, capacity, react_s) == pytest.approx(age, abs=0.01)
