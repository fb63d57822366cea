"""Measures of single experiments, on readings in which they are known: processes, pods' memory, reasons of steps, pauses."""

from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from lab.errors import NoData
from lab.model.hpa_log import Sync
from lab.record.trial import Fault
from tests.experiments.measure.cores import CONTROL_PLANE, CPU, RESIDENT, broker_cores, control_plane_cpu, pod_cost
from tests.experiments.measure.memory import growth_over, memory_growth, pod_memory
from tests.experiments.measure.reasons import LASTING, METRIC, reasons
from tests.experiments.measure.steps import stalls
from tests.unit.measure import built
from tests.unit.measure.built import receipt, sample
from tests.unit.measure.whole import MACHINE
from tests.unit.scenarios.payments.test_hpa_steps import SPEC

START = 100


def two_consumers(folder, samples):
    """30 s of baseline and 60 of spike, of two consumers."""
    inputs, told = built.profile(START, 90, (0, "baseline"), (30, "spike"))
    watched = [built.pod(START - 5, name, "ADDED") for name in ("a", "b")]
    times = (105, 110, 115, 155, 160, 165, 175, 180, 185)
    lags = built.lags(dict(zip(times, (100, 200, 150, 19_000, 20_000, 19_500, 28_000, 29_000, 30_000), strict=True)))
    return built.record(folder, inputs=inputs, group_events=told, transitions=watched, samples=[*samples, *lags])


def test_a_pods_memory_late_in_the_spike_over_that_of_before(tmp_path):
    """30 MB before, 55 in the middle and 33 late; what lies between, and what the producer holds, does not count.

    A compact record may lack samples: that is no memory of 0.
    """
    samples = [built.sample(START + 10, RESIDENT, mb * 1e6, pod=pod) for pod, mb in (("a", 29), ("b", 31), ("producer", 900))]
    samples += [built.sample(START + 40, RESIDENT, 99e6, pod="a"), built.sample(START + 60, RESIDENT, 55e6, pod="a")]
    samples += [built.sample(START + 80, RESIDENT, mb * 1e6, pod=pod) for pod, mb in (("a", 32), ("b", 34), ("producer", 900))]
    found = pod_memory(two_consumers(tmp_path, samples))
    assert (found.baseline_mb.value, found.late_mb.value) == (30, 33)
    assert found.growth.value == pytest.approx(1.1)
    assert found.lag_over_baseline.value == 150
    assert (found.late_growth.value, found.lag_over_middle.value) == (0.6, 1.5)
    assert "no memory of a consumer" in pod_memory(two_consumers(tmp_path, samples[:1])).growth.why


def scraped(*, metric=(0, 4_000), lasting=(0, 4_000), desired=8, scaled=True, at=10.5):
    """A sync that goes from 4 pods to ``desired``; both metrics have their first value up to 10 s, and then the second."""
    times = [float(second) for second in range(20)]
    rows = [
        (t, name, values[t > 10])
        for name, values in ((METRIC, metric), (LASTING, lasting))
        for t in times
        if values[t > 10] is not None
    ]
    return SimpleNamespace(
        samples=pd.DataFrame(rows, columns=["t", "metric", "value"]),
        hpa_syncs=[Sync(at, SPEC, 4, desired, desired, (), scaled_at=at if scaled else None)],
        profile_start=5.0,
        lag_threshold=500,
    )


@pytest.mark.parametrize(
    ("change", "steps", "unexplained"),
    [
        ({}, 1, 0),  # the scrape after it asks for 8
        ({"metric": (4_000, 0), "lasting": (4_000, 0)}, 1, 0),  # the scrape before it did
        ({"metric": (0, 3_501)}, 1, 0),  # a part of a pod's lag takes a pod
        ({"metric": (0, 3_500)}, 1, 1),  # for 7
        ({"lasting": (0, 0)}, 1, 1),  # nothing had lasted
        ({"at": 9.5}, 1, 1),  # a second too early
        ({"scaled": False}, 0, 0),  # one that the window held
        ({"desired": 3}, 0, 0),  # one down
        ({"at": 4.5}, 0, 0),  # before the profile began
    ],
)
def test_a_step_is_explained_by_a_scrape_beside_it(change, steps, unexplained):
    """By lag that has lasted and by a metric for as many pods; by nothing that came later. Other syncs are no steps."""
    found = reasons(scraped(**change))
    assert (found.steps.number, found.unexplained.number) == (steps, unexplained)


@pytest.mark.parametrize("lacking", [{"metric": (None, None)}, {"lasting": (None, None)}])
def test_without_the_scalers_metrics_there_is_no_data(lacking):
    """A missing metric explains nothing, and is no step without a reason either."""
    assert "was scraped" in reasons(scraped(**lacking)).unexplained.why


STEP = {"t": 100.0, "kind": "up", "before": 2, "after": 3, "settled": 101.0, "until": 104.0}


def batches(pod, *spans):
    """A receipt for each span."""
    return [receipt(pod, start, end, 10) for start, end in spans]


def test_a_member_that_sleeps_for_a_second_is_one(tmp_path):
    """One of two sleeps for 0.9 s, the other begins its batches 50 ms apart, and a third joins late: that is no pause.

    A fourth left long before.
    """
    rows = [*batches("a", (99, 99.95), (99.95, 100.7), (101.6, 104)), *batches("b", (99, 99.9), (99.95, 100.1), (100.15, 104))]
    found = stalls(
        built.record(tmp_path, steps=[STEP], receipts=[*rows, *batches("c", (102, 102.5), (103, 104)), *batches("d", (90, 95))])
    )
    assert (found.member_steps.value, found.stalled.value) == (2, 1)
    assert found.longest_s.value == pytest.approx(0.9)


def test_a_pause_that_outlasts_the_time_watched_is_one(tmp_path):
    """One of 4.3 s that begins soon after the step, and so ends 4.5 s after it; one that begins later than 4 s is none."""
    rows = [*batches("a", (99, 99.9), (99.9, 100.2), (104.5, 105)), *batches("b", (99, 99.9), (99.9, 104.1), (109, 110))]
    found = stalls(built.record(tmp_path, steps=[STEP], receipts=rows))
    assert (found.member_steps.value, found.stalled.value) == (2, 1)
    assert found.longest_s.value == pytest.approx(4.3)


def test_a_pause_belongs_to_one_step(tmp_path):
    """One that begins with the last batch before the next step is that one's alone."""
    rows = batches("a", (99, 99.9), (99.9, 103.15), (103.6, 107))
    found = stalls(built.record(tmp_path, steps=[STEP, STEP | {"t": 103.2, "until": 107.0}], receipts=rows))
    assert (found.member_steps.value, found.stalled.value) == (2, 1)


def test_without_a_step_or_a_receipt_there_is_no_data(tmp_path):
    """No member is no proof that none slept."""
    assert "no step" in stalls(built.record(tmp_path, receipts=[])).stalled.why
    assert "no receipts" in stalls(built.record(tmp_path / "idle", steps=[STEP], receipts=[])).stalled.why


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
    """Its growth is that of all of its kind, per hour and as a share of the machine's memory. A few minutes say nothing.

    Pods that are added are no growth, and the first minutes of a process that came late would look like growth for ever.
    """
    rows = [(10.0 * n, "broker", 1, int((300 + n / 3) * MIB)) for n in range(121)]
    rows += [(10.0 * n, "consumer", 4 + n // 10, (4 + n // 10) * 60 * MIB) for n in range(121)]
    rows += [(10.0 * n, "late", 1, 10 * n * MIB) for n in range(90, 121)]
    found = memory_growth(record(tmp_path, rows))
    assert found.process == "broker"
    assert found.share_an_hour.number == pytest.approx(120 / 1024 / MACHINE.memory_gib, rel=0.01)
    rows += [(10.0 * n, "pod", 2 + 5 * (n > 90), int((2 + 5 * (n > 90)) * (60 + n / 12) * MIB)) for n in range(121)]
    several = memory_growth(record(tmp_path / "seven", rows))
    assert several.process == "pod"  # each grows by a quarter of what the broker does, and seven by more
    assert several.share_an_hour.number == pytest.approx(7 * 30 / 1024 / MACHINE.memory_gib, rel=0.01)
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


def test_memory_that_grows_from_trial_to_trial_is_told_by_kind():
    """A third more in the last three of nine, and twice as many processes; what not every trial has is left out.

    A trial in which a component was killed is none of its: it began anew, and holds less. What is there in the first half of a
    trial alone is none of the trial's: it may be there for more or fewer readings.
    """

    def trial(number, anew=0):
        count = 2 if number < 6 else 4
        held = {"kafka": 1, "etcd": count, "spark": 1} if number != 4 else {"kafka": 1, "etcd": count}
        kafka = anew if anew and number in (6, 7) else 300 if number < 6 else 400
        sizes = {"kafka": kafka, "etcd": count * (50 if number else 500), "spark": 9}
        rows = [(t, name, count, sizes[name] * MIB) for t in (1, 2, 3) for name, count in held.items()]
        rows += [(2, "kafka", 1, 9000 * MIB), (1, "ended", 1, 0)]
        rows += [(t, "workers", 3, 30 * MIB) for t in ((1,) if number < 6 else (1, 1.2, 1.4))]
        rows += [(t, "workers", 1, 5 * MIB) for t in (2, 3)]
        faults = SimpleNamespace(faults=struck.get(number, ()))
        return SimpleNamespace(memory=pd.DataFrame(rows, columns=["t", "process", "count", "rss_bytes"]), trial=faults)

    struck: dict[int, tuple[Fault, ...]] = {}
    trials = [trial(number) for number in range(9)]
    numbers = {"etcd, number": 2, "kafka, number": 1, "workers, number": 1}
    assert growth_over(trials) == pytest.approx({"etcd": 1, "kafka": 4 / 3, "workers": 1} | numbers)
    with pytest.raises(NoData, match="8 trials, fewer than 9"):
        growth_over(trials[1:])
    kill = Fault(1.0, "sigkill", component="kafka")
    struck = {6: (kill, replace(kill, component="consumer")), 7: (kill,), 8: (replace(kill, skipped="not there"),)}
    assert growth_over([trial(number, 100) for number in range(9)])["kafka"] == pytest.approx(4 / 3)
    struck[8] = (kill,)
    with pytest.raises(NoData, match="kafka was killed in each trial of a third"):
        growth_over([trial(number) for number in range(9)])
