"""What a trial was given and how it went, by its record: its inputs, the phases of the trial and those of its traffic.

Times are in epoch seconds, lag is in messages.
"""

from __future__ import annotations

from functools import cached_property

import pandas as pd

from lab.errors import NoData
from lab.inputs.inputs import PRODUCER, Inputs
from lab.inputs.policy import Policy
from lab.inputs.profile import BASELINE, RELIEF, Profile
from lab.inputs.scale import Scale
from lab.record import reports
from lab.record.reports import STARTED, Report
from lab.record.tables import Tables

ENDED, CLOSING = "ended", "closing the record"


class Course(Tables):
    """Inputs and times. Each raises :class:`NoData` when the record does not hold what it shows."""

    # Inputs and times.

    @property
    def id(self) -> str:
        """The trial's identity."""
        return self.trial.id

    @property
    def name(self) -> str:
        """The name of its folder: the identity, and from the second attempt on the attempt's number."""
        return self.folder.name

    @property
    def finished(self) -> bool:
        """Whether its trial went to its end."""
        return self.trial.complete

    @property
    def inputs(self) -> Inputs:
        """What the trial was a function of, as applied."""
        return self.trial.inputs

    @property
    def profile(self) -> Profile:
        """The traffic, after the scale's compression."""
        return self.inputs.profile

    @property
    def policy(self) -> Policy:
        """The policy, after the scale's compression: its bounds, its threshold of lag, its YAML."""
        return self.inputs.policy

    @property
    def scale(self) -> Scale:
        """The scale by which times and rates were compressed."""
        return self.inputs.scale

    @property
    def lag_threshold(self) -> int:
        """The lag per replica that the policy scales on. No data for one that scales on something else."""
        if self.policy.lag_threshold is None:
            raise NoData("the policy has no lagThreshold")
        return self.policy.lag_threshold

    def time(self, phase: str, why: str = "") -> float:
        """When the trial entered ``phase``: settling, driving and the like. No data, with ``why``, where it never did."""
        if (at := self.trial.times.get(phase)) is None:
            raise NoData(why or f"the trial never came to its phase {phase}")
        return at

    @property
    def end(self) -> float:
        """When the trial was over, or given up."""
        return self.time(ENDED, "the trial never came to an end")

    @property
    def driven(self) -> float:
        """When the baseline had settled and the producer was applied."""
        return self.time("driving", "the trial never came to its driving")

    @property
    def repartitioned(self) -> float:
        """When the topic was given more partitions."""
        return self.time("repartitioned", "no partitions were added")

    @property
    def phase_lengths(self) -> list[tuple[str, float]]:
        """(phase of the trial, its length in s) in order; what follows the trial's end is closing the record."""
        if self.trial.finished is None:
            raise NoData("the record was never closed")
        times = self.trial.times
        marks = [(CLOSING if name == ENDED else name, at) for name, at in times.items()]
        ends = [*list(times.values())[1:], self.trial.finished]
        return [(name, end - at) for (name, at), end in zip(marks, ends, strict=True)]

    # Traffic.

    def reports(self, *names: str) -> list[Report]:
        """What the programs reported under these names, in order of time."""
        return reports.reports(self.group_events, names)

    @cached_property
    def starts(self) -> list[Report]:
        """Every report of a program that it started, in order of time."""
        return sorted(self.reports(STARTED), key=lambda one: one.t)

    @cached_property
    def phases_begun(self) -> list[tuple[float, str]]:
        """(time, name) of every phase that the producer began, in order. No data where one of the profile's is left out."""
        begun = [(float(one.detail["at"]), str(one.detail["phase"])) for one in self.reports("phase")]
        due = [phase for _, _, phase in self.profile.phases()]
        if self.inputs.driver == PRODUCER and (told := [phase for _, phase in begun]) != due[: len(begun)]:
            names = " and ".join([", ".join(told), ", ".join(due)])
            raise NoData(f"the phases that were reported and those of the profile differ: {names}")
        return begun

    @property
    def zero(self) -> float:
        """When the traffic first left its baseline: what charts and reactions count from."""
        for at, phase in self.phases_begun:
            if phase != BASELINE:
                return at
        raise NoData("the producer never left the baseline")

    @property
    def relief(self) -> float:
        """When the last spike, burst or tooth was over. No data where the producer did not come that far."""
        last = self.phases_begun[-1:]
        if not last or last[0][1] not in RELIEF:
            raise NoData(f"the producer ended in phase {last[0][1]!r}" if last else "the producer began no phase")
        return last[0][0]

    @cached_property
    def profile_start(self) -> float:
        """When the producer began its profile."""
        for one in self.reports("profile"):
            return float(one.detail["start"])
        raise NoData("the producer never started")

    @cached_property
    def phases(self) -> pd.DataFrame:
        """The profile's phases as columns start, end, label."""
        zero = self.profile_start
        rows = [(zero + start, zero + end, phase) for start, end, phase in self.profile.phases()]
        return pd.DataFrame(rows, columns=["start", "end", "label"])

    def span(self, phase: str) -> tuple[float, float]:
        """When the profile's first phase of that name began and its last ended. No data where it has none."""
        chosen = self.phases[self.phases["label"] == phase]
        if chosen.empty:
            raise NoData(f"the profile has no phase {phase}")
        return float(chosen["start"].iloc[0]), float(chosen["end"].iloc[-1])
