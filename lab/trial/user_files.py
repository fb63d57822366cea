"""What a user brings to the acceptance: files in the place of its own profile, policy and workload."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import paths
from lab.inputs import anchor, fidelity, workload
from lab.inputs import policy as policies
from lab.inputs import profile as profiles
from lab.inputs import scale as scales
from lab.inputs.inputs import Inputs
from lab.inputs.profile import BASELINE, RELIEF
from lab.inputs.scale import Scale
from lab.inputs.workload import PARTITIONS, Workload
from lab.model.baseline import baseline

PROFILE, POLICY = "step-10x", "lag"


@dataclass(frozen=True)
class UserFiles:
    """The files that were given; None where the acceptance's own is taken."""

    scaledobject: Path | None = None
    profile: Path | None = None
    workload: Path | None = None

    def __bool__(self) -> bool:
        return any((self.scaledobject, self.profile, self.workload))

    def plan(self) -> dict[str, Any]:
        """The profile, policy, workload and partitions of the trial. Raises :class:`InputError` for a bad workload."""
        chosen, partitions = self._workload()
        return {
            "profile": self.profile or PROFILE,
            "policy": self.scaledobject or POLICY,
            "workload": chosen,
            "partitions": partitions,
        }

    def scale(self) -> Scale:
        """The scale for a session that names none: quick, or the most compressed one that is faithful to the ScaledObject.

        Real time always is. Raises :class:`InputError` for a ScaledObject, a profile or a workload that can't be used.
        """
        quick = scales.load(scales.QUICK)
        if self.scaledobject is None:
            return quick
        policy, (chosen, _) = policies.load(self.scaledobject), self._workload()
        traffic = profiles.load(self.profile or paths.PROFILES / f"{PROFILE}.yaml")
        slower = (one for one in scales.declared() if one.time <= quick.time and one.rate == quick.rate)
        return next(
            one
            for one in slower
            if fidelity.is_faithful(policy, one)
            and not fidelity.drowned(policy, one, chosen)
            and anchor.is_faithful(policy, traffic, one)
        )

    def _workload(self) -> tuple[Workload, int]:
        return workload.load(self.workload) if self.workload else (Workload(), PARTITIONS)


def header_lines(inputs: Inputs) -> list[str]:
    """The trial in lines a user reads before it runs: what was replaced, what the traffic asks, what it can't show."""
    policy, pod = inputs.policy, inputs.workload.rate * inputs.scale.rate
    rates = [step.rate for step in inputs.profile.steps]
    at_work = min(policy.max_replicas, inputs.partitions)
    lines = [
        f"acceptance: {inputs.id} at scale {inputs.scale}",
        f"traffic {min(rates):,.0f} to {max(rates):,.0f} messages/s; a pod takes {pod:,.0f}/s, the floor of "
        f"{policy.min_replicas} pods {policy.min_replicas * pod:,.0f}/s, {at_work} pods on {inputs.partitions} partitions "
        f"{at_work * pod:,.0f}/s",
    ]
    start = baseline(policy, inputs.partitions, inputs.workload.topics)
    if start.replicas != policy.start:
        lines.append(f"baseline of {start.replicas}, not the floor of {policy.start}: {start.why}")
    phases = [phase for _, _, phase in inputs.profile.phases()]
    if all(phase == BASELINE for phase in phases):
        lines.append(f"the profile never leaves its phase {BASELINE}: reaction and drain will be no data")
    elif phases[-1] not in RELIEF:
        lines.append(f"the profile ends in phase {phases[-1]}, not in {' or '.join(RELIEF)}: the drain will be no data")
    return [*lines, *(f"replaced {one}" for one in inputs.replaced)]


def replacement_note(inputs: Inputs) -> str:
    """What a record's ``inputs`` say was replaced in the user's ScaledObject, as a paragraph; "" when nothing was."""
    rows = [f"{one.field} ({one.theirs!r})" for one in inputs.replaced]
    return f"Replaced in the ScaledObject as it was brought, so that it runs here: {'; '.join(rows)}." if rows else ""
