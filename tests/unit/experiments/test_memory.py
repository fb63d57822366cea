"""The growth of the lab's processes, on readings in which it is known."""

import pandas as pd
import pytest

from tests.experiments.measure.memory import memory_growth
from tests.unit.measure.built import record
from tests.unit.measure.whole import MACHINE

MIB = 2**20


def built(folder, growth_mib_an_hour, *, pods=1, every_s=10.0, lasts_s=1200.0, late=0.0):
    """A record with a broker that grows by this much, pods that do not, and a process that appears after ``late`` s."""
    rows = []
    for n in range(int(lasts_s / every_s) + 1):
        t = n * every_s
        rows.append((t, "broker", 1, int((300 + growth_mib_an_hour * t / 3600) * MIB)))
        rows.append((t, "consumer", pods, pods * 60 * MIB))
        if late and t >= late:
            rows.append((t, "late", 1, int(t * MIB)))
    pd.DataFrame(rows, columns=["t", "process", "count", "rss_bytes"]).to_parquet(folder / "memory.parquet")
    return record(folder, times={"settling": 0, "driving": 0, "ended": lasts_s})


def test_the_process_that_grows_fastest_counts(tmp_path):
    """Its growth is that of one process, per hour and as a share of the machine's memory. A few minutes say nothing.

    The first minutes of a process that came late would look like growth for ever.
    """
    found = memory_growth(built(tmp_path, 120, pods=24, late=900.0))
    assert found.process == "broker"
    assert found.share_an_hour.number == pytest.approx(120 / 1024 / MACHINE.memory_gib, rel=0.01)
    assert "fewer than 20" in memory_growth(built(tmp_path, 10, lasts_s=120.0)).share_an_hour.why


def test_pods_that_are_added_are_no_growth(tmp_path):
    """One process' memory is what is followed, and not the sum of a kind."""
    rows = [(n * 10.0, "consumer", 4 + n // 10, (4 + n // 10) * 60 * MIB) for n in range(121)]
    pd.DataFrame(rows, columns=["t", "process", "count", "rss_bytes"]).to_parquet(tmp_path / "memory.parquet")
    found = memory_growth(record(tmp_path, times={"settling": 0, "driving": 0, "ended": 1200}))
    assert found.share_an_hour.number == pytest.approx(0, abs=1e-6)
