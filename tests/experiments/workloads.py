"""The workloads that most experiments share, light enough that 48 pods are not short of two cores, and duets by name."""

from collections.abc import Mapping
from typing import Any

from lab.inputs.workload import Workload

# 100 events/s a pod: 24 of them make 2,400 events/s. At work one uses some 20 millicores: a third of what it requests.
LIGHT: dict[str, Any] = {"process_ms": "5-15", "concurrency": 1, "cpu_request_m": 70}
# 300 events/s a pod, for the group whose every dip is watched.
BUSY: dict[str, Any] = {"process_ms": "5-15", "concurrency": 3}


def light(**settings: Any) -> Workload:
    """The light workload with other settings changed."""
    return Workload(**LIGHT | settings)


def slim(**settings: Any) -> Workload:
    """The light workload with a request that lets 48 of its pods on two cores."""
    return light(**{"cpu_request_m": 25} | settings)


def busy(**settings: Any) -> Workload:
    """The busy workload with other settings changed."""
    return Workload(**BUSY | settings)


def duet(trials: Any, plan: dict[str, Any], policies: Mapping[str, Any]) -> dict[str, Any]:
    """The runs of ``plan`` on two policies, by their names, on the same events at the same moment."""
    sides = (plan | {"policy": policy} for policy in policies.values())
    return dict(zip(policies, trials.duet(*sides), strict=True))
