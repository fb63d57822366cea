"""CPU of the machine, of the control plane and of what runs the pods, on records in which it is known."""

import pandas as pd
import pytest

from tests.experiments.measure.cores import (
    CONTROL_PLANE,
    RUNS_CONTAINERS,
    RUNS_PROCESSES,
    control_plane_cpu,
    machine_cpu,
    pod_runtime_cpu,
)
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


@pytest.mark.parametrize("runs", [RUNS_CONTAINERS, RUNS_PROCESSES])
def test_what_runs_the_pods_is_the_container_runtime_or_the_labs_node(tmp_path, runs):
    """0.1 cores each, without the control plane beside it."""
    found = pod_runtime_cpu(read(tmp_path, processes=[*runs, *CONTROL_PLANE]))
    assert found.number == pytest.approx(0.1 * len(runs))


def test_a_cluster_whose_processes_are_not_seen_has_no_runtime(tmp_path):
    """An existing cluster's node is somewhere else."""
    assert "no reading of lab.kubelet, zygote.py" in pod_runtime_cpu(read(tmp_path)).why


def test_the_machines_cpu_is_all_that_was_busy(tmp_path):
    """10 s of two cores in 20 s, from the first to the last reading while the trial was driven."""
    rows = [(-5.0, 0.0), (0.0, 100.0), (10.0, 108.0), (20.0, 110.0), (25.0, 200.0)]
    pd.DataFrame(rows, columns=["t", "busy_s"]).to_parquet(tmp_path / "load.parquet")
    assert machine_cpu(record(tmp_path, times=TIMES)).number == pytest.approx(0.5)
    pd.DataFrame(rows[:2], columns=["t", "busy_s"]).to_parquet(tmp_path / "load.parquet")
    assert "1 readings" in machine_cpu(record(tmp_path, times=TIMES)).why
