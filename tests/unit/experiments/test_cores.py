"""CPU of the control plane, on records in which it is known."""

import pandas as pd
import pytest

from tests.experiments.measure.cores import CONTROL_PLANE, control_plane_cpu
from tests.unit.measure.built import record

TIMES = {"settling": 0, "driving": 0, "ended": 20}


def read(folder, *, processes=CONTROL_PLANE, times=(0, 10, 20)):
    """A record in which each of ``processes`` takes 0.1 cores, and the broker one."""
    rows = [(float(t), name, 1, 1, 0.1 * t) for t in times for name in processes]
    rows += [(float(t), "broker", 1, 1, 1.0 * t) for t in times]
    pd.DataFrame(rows, columns=["t", "process", "count", "rss_bytes", "cpu_s"]).to_parquet(folder / "memory.parquet")
    return record(folder, times=TIMES)


def test_the_control_planes_cpu_is_that_of_its_four_processes(tmp_path):
    """0.1 cores each, and not the broker's."""
    assert control_plane_cpu(read(tmp_path)).number == pytest.approx(0.4)


def test_a_process_that_was_not_read_is_no_data(tmp_path):
    """Three of four would be too little."""
    assert "no reading of kube-scheduler" in control_plane_cpu(read(tmp_path, processes=CONTROL_PLANE[:3])).why


def test_two_readings_are_too_few(tmp_path):
    """A share of ten seconds is not known."""
    assert "fewer than 3" in control_plane_cpu(read(tmp_path, times=(0, 10))).why
