"""What a trial needs, told beforehand: the figures follow from its inputs, and what does not fit is one line."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from lab import paths
from lab.errors import InputError
from lab.foresee.estimate import Estimate, check_pods, estimate, log_bytes, shortage
from lab.host.resources import LOG_BYTES
from lab.inputs import inputs, scale, workload
from lab.inputs.clients import FRANZ_GO, JAVA, PYTHON
from lab.inputs.inputs import Inputs
from lab.inputs.variant import Variant, policy
from lab.inputs.workload import Workload

PODS = Path(paths.PROJECT) / "docs" / "examples" / "backlog-pods.yaml"


def acceptance(**other: object) -> Inputs:
    """The acceptance run at real time, but for ``other`` settings of its workload."""
    pods, partitions = workload.load(PODS)
    chosen = dataclasses.replace(pods, **other)
    return inputs.read("backlog", "backlog", chosen, 1, scale.load("real"), "binary", partitions=partitions)


@pytest.fixture(scope="module")
def needed() -> Estimate:
    """The acceptance run's estimate."""
    return estimate(acceptance())


def test_the_acceptance_run_is_what_the_text_asks_for(needed: Estimate) -> None:
    """A backlog of 20 million and more, 90 to 150 million events, and two cores and 25 GB that carry it."""
    given = acceptance()
    assert [phase for _, _, phase in given.profile.phases()] == ["baseline", "spike", "drain"]
    (_, baseline, _), (begin, end, _), _ = given.profile.phases()
    assert baseline >= 300
    assert 600 <= end - begin <= 900
    rate = given.profile.steps[0].rate
    assert 2 <= rate / given.pod_rate <= 4
    assert 10 * rate > given.partitions * given.pod_rate
    assert needed.peak_lag is not None
    assert needed.peak_lag >= 20_000_000
    assert 90_000_000 <= needed.events <= 150_000_000
    assert needed.drain_s is not None
    assert shortage(needed, 2, 20 * 2**30, {"of results": 25 * 10**9}) is None


def test_a_payload_that_does_not_compress_needs_the_disk(needed: Estimate) -> None:
    """Without compression the same trial needs 26 GB for its topics alone."""
    plain = estimate(acceptance(compression="none"))
    assert plain.log_bytes > 26e9 > 20e9 > needed.log_bytes
    assert log_bytes(acceptance(compression="none")) == LOG_BYTES
    assert log_bytes(acceptance(random_bytes=0)) < log_bytes(acceptance()) < log_bytes(acceptance(linger_ms=5)) < LOG_BYTES
    assert log_bytes(acceptance(random_bytes=232)) > 0.9 * LOG_BYTES


@pytest.mark.parametrize(
    ("cores", "memory", "free", "says"),
    [
        (2, 2**40, 10**9, r"disk of results: [\d,]+ bytes are needed for 91,800,000 events, 1,000,000,000 are free"),
        (2, 2**30, 10**12, r"memory: [\d,]+ MiB are needed, 1,024 MiB are available"),
        (1, 2**40, 10**12, r"cores: 1\.\d\d are needed at 60,000 events/s, there are 1"),
    ],
)
def test_what_does_not_fit_is_one_line(needed: Estimate, cores: int, memory: int, free: int, says: str) -> None:
    """The first of disk, memory and cores that there is too little of, with both figures."""
    line = shortage(needed, cores, memory, {"of results": free})
    assert line is not None
    assert re.fullmatch(says, line)


def test_pods_in_java_need_more_of_the_machine(needed: Estimate) -> None:
    """So much that they may not fit where those in Python do; those on franz-go need less memory."""
    java, go = (estimate(acceptance(client=one)) for one in ("java", "franz-go"))
    assert java.memory_bytes > needed.memory_bytes >= go.memory_bytes
    assert java.cores > needed.cores == go.cores
    assert shortage(java, 2, needed.memory_bytes, {"of results": 10**12}) is not None


def test_a_trial_that_is_not_simulated_has_no_peak() -> None:
    """Steps by decree: what it needs is known, what it would do is not."""
    found = estimate(inputs.read("saturate", "up-and-down", Workload(), 1, scale.load("quick"), "binary", until="replayed"))
    assert (found.peak_lag, found.drain_s) == (None, None)
    assert found.cores > 0


def test_a_quick_trial_peaks_where_it_did() -> None:
    """step-10x at quick was measured at 137,000 messages on a quiet machine (docs/decisions/09)."""
    found = estimate(inputs.read("step-10x", "lag", Workload(), 1, scale.load("quick"), "binary"))
    assert found.peak_lag == pytest.approx(137_000, rel=0.15)
    assert found.scale == "quick"
    assert found.events == 774_400
    assert found.wall_s > 140


TWELVE = policy("lag-4500", max_replicas=12)


def of_client(client: str, policy: str | Variant = "lag-4500") -> Inputs:
    """A trial at quick whose pods have another client."""
    return inputs.read("plateau", policy, Workload(client=client), 1, scale.load("quick"), "binary")


@pytest.mark.parametrize(
    ("sides", "machine", "says"),
    [
        ([of_client(JAVA)], (2, 24), "pods with client java: 24 is not allowed; allowed: at most 16 on 2 cores and 24,576 MiB"),
        ([of_client(JAVA, TWELVE)], (2, 24), "pods with client java that start together: 8 is not allowed; allowed: at most 7"),
        ([of_client(JAVA)], (2, 4), r"pods with client java: 24 is not allowed; allowed: at most \d+ on 2 cores and 4,096 MiB"),
        ([of_client(JAVA)], (1, 24), "pods with client java: 24 is not allowed; allowed: at most 4 on 1 cores"),
        ([of_client(JAVA, "up-and-down")] * 2, (1, 24), "pods with client java: 16 is not"),
        ([of_client(JAVA)], (8, 24), ""),
        ([of_client(FRANZ_GO)], (2, 24), ""),
        ([of_client(PYTHON)], (1, 1), ""),
        ([of_client(JAVA, "three-up-and-down"), of_client(PYTHON, "three-up-and-down")], (2, 24), ""),
        ([of_client(JAVA, "half-taken"), of_client(FRANZ_GO, "half-taken")], (2, 24), ""),
    ],
)
def test_more_pods_of_a_client_than_a_machine_carries_are_refused(
    sides: list[Inputs], machine: tuple[int, int], says: str
) -> None:
    """In one line, for cores and memory of pods at work, and the CPU of those that start together; of both sides at once."""
    cores, gib = machine
    if not says:
        check_pods(sides, cores, gib * 2**30)
        return
    with pytest.raises(InputError, match=f"^trial: {says}"):
        check_pods(sides, cores, gib * 2**30)
