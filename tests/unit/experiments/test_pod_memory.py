"""A pod's memory while lag grows is compared with what it held before; other programs' memory is not counted."""

import pytest

from tests.experiments.measure.pod_memory import RESIDENT, pod_memory
from tests.unit.measure import built

START = 100


def trial(folder, samples):
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
    found = pod_memory(trial(tmp_path, samples))
    assert (found.baseline_mb.value, found.late_mb.value) == (30, 33)
    assert found.growth.value == pytest.approx(1.1)
    assert found.lag_over_baseline.value == 150
    assert (found.late_growth.value, found.lag_over_middle.value) == (0.6, 1.5)
    assert "no memory of a consumer" in pod_memory(trial(tmp_path, samples[:1])).growth.why
