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


@pytest.mark.parametrize(
    ("lacking", "why"),
    [({"processes": CONTROL_PLANE[:3]}, "no reading of kube-scheduler"), ({"times": (0, 10)}, "fewer than 3")],
)
def test_without_every_process_or_three_readings_there_is_no_data(tmp_path, lacking, why):
    """Three of four would be too little, and a share of ten seconds is not known."""
    assert why in control_plane_cpu(read(tmp_path, **lacking)).why
