"""CPU and memory of the lab's own processes, on readings in which they are known."""

import pandas as pd
import pytest

from tests.experiments.measure.broker import broker_cores
from tests.experiments.measure.cores import CONTROL_PLANE, CPU, RESIDENT, control_plane_cpu, pod_cost
from tests.experiments.measure.memory import memory_growth
from tests.unit.measure import built
from tests.unit.measure.built import receipt, sample
from tests.unit.measure.whole import MACHINE

MIB = 2**20


def record(folder, rows, ended=1200.0):
    """A profile of 30 s from 100 on, with readings (t, process, count, bytes, CPU s)."""
    profile, told = built.profile(100.0, 30, (0, "baseline"))
    times = {"settling": 0, "driving": 0, "ended": ended}
    made = built.record(folder, inputs=profile, group_events=told, times=times)
    columns = ["t", "process", "count", "rss_bytes", "cpu_s"]
    pd.DataFrame(rows, columns=columns[: len(rows[0])]).to_parquet(folder / "memory.parquet")
    return made


def test_the_brokers_cpu_is_that_of_the_profile(tmp_path):
    """8 s of CPU in 20 s; what it took before and after, and what others took, is none of it."""
    rows = [(t, "kafka", 1, 9, cpu) for t, cpu in ((95, 50.0), (105, 60.0), (115, 65.0), (125, 68.0), (135, 90.0))]
    rows += [(t, "etcd", 1, 9, 10.0 * t) for t in (105, 125)]
    assert broker_cores(record(tmp_path, rows)).value == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("row", "why"),
    [((105, "kafka", 1, 9, 1.0), "1 readings of the broker's CPU time"), ((105, "kafka", 1, 9), "no CPU time by process")],
)
def test_without_two_readings_the_broker_has_no_data(tmp_path, row, why):
    """A record of before 2026-11-23 has memory alone."""
    assert why in broker_cores(record(tmp_path, [row])).why


@pytest.mark.parametrize(
    ("processes", "times", "why"),
    [
        (CONTROL_PLANE, (0, 10, 20), ""),
        (CONTROL_PLANE[:3], (0, 10, 20), "no reading of kube-scheduler"),  # three of four would be too little
        (CONTROL_PLANE, (0, 10), "fewer than 3"),
    ],
)
def test_the_control_planes_cpu_is_that_of_its_four_processes(tmp_path, processes, times, why):
    """0.1 cores each, and not the broker's, which takes one."""
    rows = [(float(t), name, 1, 1, 0.1 * t) for t in times for name in processes]
    found = control_plane_cpu(record(tmp_path, [*rows, *((float(t), "broker", 1, 1, 1.0 * t) for t in times)]))
    assert found.value == (None if why else pytest.approx(0.4))
    assert why in found.why


def test_the_process_that_grows_fastest_counts(tmp_path):
    """Its growth is that of one process, per hour and as a share of the machine's memory. A few minutes say nothing.

    Pods that are added are no growth, and the first minutes of a process that came late would look like growth for ever.
    """
    rows = [(10.0 * n, "broker", 1, int((300 + n / 3) * MIB)) for n in range(121)]
    rows += [(10.0 * n, "consumer", 4 + n // 10, (4 + n // 10) * 60 * MIB) for n in range(121)]
    rows += [(10.0 * n, "late", 1, 10 * n * MIB) for n in range(90, 121)]
    found = memory_growth(record(tmp_path, rows))
    assert found.process == "broker"
    assert found.share_an_hour.number == pytest.approx(120 / 1024 / MACHINE.memory_gib, rel=0.01)
    assert "fewer than 20" in memory_growth(record(tmp_path, rows, 120.0)).share_an_hour.why


def test_a_consumer_costs_what_its_samples_say(tmp_path):
    """2 s of CPU for 1,000 messages of a pod at work; one that started had taken 1.3 s by its first sample, and works on."""
    rows = [("old", 15, 10.0, 5), ("old", 25, 12.0, 9), ("new", 22, 1.3, 7), ("new", 26, 1.4, 8), ("other", 20, 50.0, 99)]
    samples = [sample(t, CPU, cpu, pod) for pod, t, cpu, _ in rows] + [
        sample(t, RESIDENT, mb * 1e6, pod) for pod, t, _, mb in rows
    ]
    pods = [built.pod(5, "old", "ADDED"), built.pod(20, "new", "ADDED")]
    done = [receipt("old", 15, 25, 1000), receipt("new", 22, 26, 100), receipt("old", 0, 10, 9000)]
    times = {"settling": 0, "driving": 10, "ended": 100}
    found = pod_cost(built.record(tmp_path, times=times, transitions=pods, samples=samples, receipts=done))
    assert (found.message_us.value, found.held_mb.value, found.start_cpu_s.value) == pytest.approx((2.1e6 / 1100, 9, 1.3))
    late = times | {"driving": 26}
    idle = pod_cost(built.record(tmp_path / "idle", times=late, transitions=pods, samples=samples, receipts=done))
    assert "no samples of the CPU" in idle.message_us.why
