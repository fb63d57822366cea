"""The trials of scenario payments: its author's ScaledObjects (manifests/payments) on his payment processor."""

from __future__ import annotations

from typing import Any

from lab import paths
from lab.inputs.inputs import REPLAYED
from lab.inputs.variant import Variant
from lab.inputs.workload import Workload
from lab.trial.trials import Trials

FOLDER = paths.MANIFESTS / "payments"
SCALEDOBJECT = FOLDER / "scaledobject.yaml"  # as its author has it
INERTIA, BARE, DEFAULTS = "as its author has it", "without inertia", "without advanced"


def processor(**settings: Any) -> Workload:
    """The payment processor: 166.7 payments/s a pod, 60 s of grace."""
    ours: dict[str, Any] = {"process_ms": "3-9", "concurrency": 1, "cpu_request_m": 60, "grace_s": 60}
    return Workload(**ours | settings)


def run(
    trials: Trials, profile: str, policy: str | Variant = "scaledobject", workload: Workload | None = None, **how: Any
) -> Any:
    """The record of ``profile`` on one of the author's ScaledObjects, or its runs; ``how`` is that of :meth:`Trials.run`.

    A ``policy`` that is none of these is one of the library's.
    """
    file = FOLDER / f"{policy}.yaml"
    chosen = file if isinstance(policy, str) and file.exists() else policy
    return trials.run(profile=profile, policy=chosen, workload=workload or processor(), **{"until": REPLAYED} | how)
