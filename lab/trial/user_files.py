"""What a user brings to the acceptance: files in the place of its own profile, policy and workload."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import paths
from lab.host import machine
from lab.inputs import anchor, clients, fidelity, inputs, scaledobject_file, workload
from lab.inputs import profile as profiles
from lab.inputs import scale as scales
from lab.inputs.inputs import REPLAYED, Inputs
from lab.inputs.manifests import Library
from lab.inputs.own_consumer import OFF, PROCESSES, RECEIPTS
from lab.inputs.profile import BASELINE, RELIEF
from lab.inputs.scale import Scale
from lab.inputs.workload import PARTITIONS, Workload
from lab.judge.bounds import CEILING_S
from lab.model.baseline import baseline

PROFILE, POLICY = "step-10x", "lag"


@dataclass(frozen=True)
class UserFiles:
    """The files that were given; None where the acceptance's own is taken. ``named`` is one ScaledObject of several.

    With ``own_traffic`` the profile says when phases begin, and others send.
    """

    scaledobject: Path | None = None
    profile: Path | None = None
    workload: Path | None = None
    named: str = ""
    own_traffic: bool = False

    def __bool__(self) -> bool:
        return any((self.scaledobject, self.profile, self.workload))

    @property
    def name(self) -> str:
        """The name of the file with the policy under trial, and that of its object where several are in it."""
        file = self.scaledobject.name if self.scaledobject else f"{POLICY}.yaml"
        return f"{file} ({self.named})" if self.named else file

    def plan(self) -> dict[str, Any]:
        """The profile, policy, workload and partitions of the trial. Raises :class:`InputError` for a bad workload."""
        chosen, partitions = self._workload()
        return {
            "profile": self.profile or PROFILE,
            "policy": self.scaledobject or POLICY,
            "workload": chosen,
            "partitions": partitions,
            "named": self.named,
            **({"driver": OFF, "until": REPLAYED} if self.own_traffic else {}),
        }

    def read(self, scale: Scale, runtime: str, library: Library) -> Inputs:
        """The inputs of the trial; what is not brought is of ``library``. Raises :class:`InputError` for a bad file."""
        chosen = self.plan()
        traffic, policy, work = (chosen.pop(name) for name in ("profile", "policy", "workload"))
        return inputs.read(traffic, policy, work, 1, scale, runtime, library=library, **chosen)

    def scale(self) -> Scale:
        """The scale for a session that names none: quick, or the most compressed one that is faithful to the ScaledObject.

        Real time always is. Raises :class:`InputError` for a ScaledObject, a profile or a workload that can't be used.
        """
        quick = scales.load(scales.QUICK)
        if self.scaledobject is None:
            return quick
        policy, (chosen, _) = scaledobject_file.load(self.scaledobject, self.named).scaled, self._workload()
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


def header_lines(given: Inputs) -> list[str]:
    """The trial in lines a user reads before it runs: what was replaced, what the traffic asks, what it can't show."""
    policy, pod = given.policy, given.workload.rate * given.scale.rate
    rates = [step.rate for step in given.profile.steps]
    at_work = min(policy.max_replicas, given.partitions)
    lines = [
        f"acceptance: {given.id} at scale {given.scale}",
        f"traffic {min(rates):,.0f} to {max(rates):,.0f} messages/s; a pod takes {pod:,.0f}/s, the floor of "
        f"{policy.min_replicas} pods {policy.min_replicas * pod:,.0f}/s, {at_work} pods on {given.partitions} partitions "
        f"{at_work * pod:,.0f}/s",
    ]
    if not (given.workload.own or given.workload.start_s):
        lines.append("pods join as soon as they run: no start_s is in the workload")
    if given.driver != OFF and (late := given.ceiling_delay_s) >= CEILING_S:
        lines.append(f"the ceiling of {policy.max_replicas} pods makes events {late:,.0f} s older, wanted < {CEILING_S:g} s")
    start = baseline(policy, given.partitions, given.workload.topics)
    if start.replicas != policy.start:
        lines.append(f"baseline of {start.replicas}, not the floor of {policy.start}: {start.why}")
    if given.workload.client != clients.PYTHON:
        from lab.foresee.estimate import pods_note  # a session without a user's files needs no simulation

        lines.append(pods_note(given, os.cpu_count() or 1, machine.total_bytes()))
    phases = [phase for _, _, phase in given.profile.phases()]
    if all(phase == BASELINE for phase in phases):
        lines.append(f"the profile never leaves its phase {BASELINE}: reaction and drain will be no data")
    elif phases[-1] not in RELIEF:
        lines.append(f"the profile ends in phase {phases[-1]}, not in {' or '.join(RELIEF)}: the drain will be no data")
    if given.workload.own and given.runtime == PROCESSES:
        lines.append(
            "what your pods take of this machine is counted as the lab's consumer takes: check-consumer measures yours"
        )
    lines += [note] if (note := consumer_note(given)) else []
    return [*lines, *(f"replaced {one}" for one in given.replaced)]


def replacement_note(given: Inputs) -> str:
    """What a record's inputs say was replaced in the user's ScaledObject, as a paragraph; "" when nothing was."""
    rows = [f"{one.field} ({one.theirs!r})" for one in given.replaced]
    return f"Replaced in the ScaledObject as it was brought, so that it runs here: {'; '.join(rows)}." if rows else ""


def consumer_note(given: Inputs) -> str:
    """What runs in the place of the lab's consumer, and what can't be said of it, as a paragraph; "" for the lab's own."""
    work = given.workload
    if not work.own:
        return ""
    program = work.command if given.runtime == PROCESSES else work.image
    what = f"The consumer is {program!r}, in the place of the lab's; it tells: {work.rung}."
    if given.driver == OFF:
        return f"{what} The traffic is your own: what was sent, lost or processed again has no data."
    if work.rung == RECEIPTS:
        return what
    return f"{what} Loss, copies, throughput and dips have no data; a reaction ends with the first commit of a new pod."
