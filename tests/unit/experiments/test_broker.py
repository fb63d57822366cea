"""The broker's CPU, on readings in which it is known."""

import pandas as pd
import pytest

from tests.experiments.measure.broker import broker_cores
from tests.unit.measure import built

COLUMNS = ["t", "process", "count", "rss_bytes", "cpu_s"]


def record(folder, rows, columns=COLUMNS):
    """A profile of 30 s from 100 on, with these readings."""
    profile, told = built.profile(100.0, 30, (0, "baseline"))
    pd.DataFrame(rows, columns=columns).to_parquet(folder / "memory.parquet")
    return built.record(folder, inputs=profile, group_events=told)


def test_the_brokers_cpu_is_that_of_the_profile(tmp_path):
    """8 s of CPU in 20 s; what it took before and after, and what others took, is none of it."""
    rows = [(t, "kafka", 1, 9, cpu) for t, cpu in ((95, 50.0), (105, 60.0), (115, 65.0), (125, 68.0), (135, 90.0))]
    rows += [(t, "etcd", 1, 9, 10.0 * t) for t in (105, 125)]
    assert broker_cores(record(tmp_path, rows)).value == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("rows", "columns", "why"),
    [
        ([(105, "kafka", 1, 9, 1.0)], COLUMNS, "1 readings of the broker's CPU time"),
        ([(105, "kafka", 1, 9)], COLUMNS[:-1], "no CPU time by process"),
    ],
)
def test_without_two_readings_there_is_no_data(tmp_path, rows, columns, why):
    """A record of before 2026-11-23 has memory alone."""
    assert why in broker_cores(record(tmp_path, rows, columns)).why
