"""What a record shows, typed and each written once: beside its course lag, events, replicas, pods, group and HPA.

A measure reads these and computes; it opens no file and parses no object. Times are in epoch seconds, lag is in messages.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
from collections.abc import Iterator
from functools import cached_property

import pandas as pd

from lab.errors import NoData
from lab.inputs.workload import DEPLOYMENT
from lab.model import hpa_log
from lab.model.hpa_log import Sync
from lab.record import ages, hpas, pods, reports
from lab.record.ages import Coverage, Lives, Waiting
from lab.record.course import ENDED, Course
from lab.record.hpas import Status
from lab.record.pods import Change, Pod
from lab.record.reports import Commit, Report

CONSUMER = "consumer"
LAG, PARTITION_LAG = "kafka_consumergroup_lag_sum", "kafka_consumergroup_lag"
COMMITTED = "kafka_consumergroup_current_offset"
FEWEST = 3  # samples that a slope or a median is made of


class Views(Course):
    """The views of a record. Each raises :class:`NoData` when the record does not hold what it shows."""

    # Lag.

    @cached_property
    def lag(self) -> pd.DataFrame:
        """The group's total lag as columns t, lag. A sample that is no number is none."""
        chosen = self._samples_of(LAG)
        if chosen.empty:
            raise NoData(f"no sample of {LAG}")
        return chosen[["t", "value"]].rename(columns={"value": "lag"}).sort_values("t", ignore_index=True)

    def lag_within(self, start: float, end: float) -> pd.DataFrame:
        """:attr:`lag` from ``start`` to ``end``. No data for fewer than three samples."""
        seen = self.lag[self.lag["t"].between(start, end)]
        if len(seen) < FEWEST:
            raise NoData(f"{len(seen)} samples of lag in {end - start:.1f} s")
        return seen

    @cached_property
    def partition_lag(self) -> pd.DataFrame:
        """Each partition's lag as columns t, partition, lag, in order of time; empty without a sample."""
        return self._by_partition(PARTITION_LAG, "lag")

    @cached_property
    def committed(self) -> pd.DataFrame:
        """What the group had committed of each partition as columns t, partition, offset; else like :attr:`partition_lag`."""
        return self._by_partition(COMMITTED, "offset")

    def _by_partition(self, metric: str, name: str) -> pd.DataFrame:
        chosen = self._samples_of(metric).sort_values("t", kind="stable")
        partitions = {labels: int(json.loads(labels)["partition"]) for labels in chosen["labels"].unique()}
        columns = {"t": chosen["t"], "partition": chosen["labels"].map(partitions), name: chosen["value"]}
        return pd.DataFrame(columns).reset_index(drop=True)

    def _samples_of(self, metric: str) -> pd.DataFrame:
        return self.samples[(self.samples["metric"] == metric) & self.samples["value"].notna()]

    # Events.

    @cached_property
    def waiting(self) -> Waiting:
        """The events that waited while none before them did. No data for none, without their times, and without receipts."""
        found = ages.waiting(self.lives_of_events())
        if not len(found.at):
            raise NoData("nothing was produced")
        return found

    def lives_of_events(self) -> Iterator[Lives]:
        """When events began to wait and when they were done, part by part. No data like :attr:`waiting`."""
        parts = self.event_parts("partition", "offset", "ts")
        first = next(parts, None)  # no ledger is said before no receipts
        return ages.lives(itertools.chain(filter(None, [first]), parts), self._coverage)

    @cached_property
    def _coverage(self) -> Coverage:
        """When each message was processed first or given up."""
        ended = [self.receipts[["partition", "first", "last", "end"]]]
        with contextlib.suppress(NoData):  # a trial without a dead-letter topic
            letters = self.dead_letters.rename(columns={"offset": "first", "failed": "end"})
            ended.append(letters.assign(last=letters["first"])[list(ended[0])])
        return Coverage.of(pd.concat(ended) if len(ended) > 1 else ended[0])

    # Replicas and pods.

    @cached_property
    def replicas(self) -> pd.DataFrame:
        """The consumer's replicas as columns t, desired, current, ready; one row at every change until the trial's end."""
        return self.replicas_of(CONSUMER)

    def replicas_of(self, deployment: str) -> pd.DataFrame:
        """:attr:`replicas` of another ``deployment`` of the trial."""
        kind = self.inputs.workload.pod_owner if deployment == CONSUMER else DEPLOYMENT
        curve = pods.replica_curve(self.watched(kind, deployment))
        curve = curve[curve["t"] <= self.trial.times.get(ENDED, math.inf)]  # what was taken down then says nothing
        if curve.empty:
            raise NoData(f"the {deployment} {kind} was never seen")
        return curve

    def wanted_at(self, t: float) -> int:
        """The consumer's replicas that were wanted at ``t`` (epoch s). No data where it was not seen by then."""
        return self._replicas_at(t, "desired")

    def ready_at(self, t: float) -> int:
        """The consumer's replicas that were Ready at ``t`` (epoch s). No data where it was not seen by then."""
        return self._replicas_at(t, "ready")

    def _replicas_at(self, t: float, column: str) -> int:
        curve = self.replicas
        if not (before := int(curve["t"].searchsorted(t, side="right"))):
            raise NoData(f"the consumer's replicas were first seen {curve['t'].iloc[0] - t:.1f} s later")
        return int(curve[column].iloc[before - 1])

    @cached_property
    def scalings(self) -> list[Change]:
        """Every change of the consumer's desired replicas, in order."""
        return pods.replica_changes(self.replicas)

    @cached_property
    def pods(self) -> dict[str, Pod]:
        """The consumer's pods by name, in order of their first event; none where none was seen."""
        return self.pods_of(CONSUMER)

    def pods_of(self, app: str) -> dict[str, Pod]:
        """:attr:`pods` of another ``app`` of the trial."""
        return pods.pods_of(self.watched("Pod"), app)

    def lives(self, app: str = CONSUMER) -> dict[str, float]:
        """How long each pod of ``app`` was there while the profile ran and the group drained, s.

        That is from the profile's start to the trial's end: setting up and taking down cost what the lab takes, not what the
        policy asks for. No data where no pod was there then.
        """
        start, end = self.profile_start, self.end
        found = {
            name: min(end, pod.gone or end) - max(start, pod.seen)
            for name, pod in (self.pods if app == CONSUMER else self.pods_of(app)).items()
        }
        lives = {name: seconds for name, seconds in found.items() if seconds > 0}
        if not lives:
            raise NoData(f"no pod of {app} was seen")
        return lives

    # The group.

    @cached_property
    def handovers(self) -> list[Report]:
        """Every assignment of partitions to a member, and every giving up of some, in order of time."""
        return reports.handovers(self.group_events)

    @cached_property
    def commits(self) -> list[Commit]:
        """What the group was seen to commit, in order of time. No data where nobody looked, as at the lab's own consumer."""
        if not (found := reports.commits(self.group_events)):
            raise NoData("nobody looked at what the group commits")
        return found

    def owners(self, at: float) -> dict[str, frozenset[int]]:
        """The partitions that each pod owned at ``at`` by its own handovers; of a pod that died, those it had then."""
        return reports.owners(self.handovers, self.starts, at)

    # The HPA.

    @cached_property
    def hpa_statuses(self) -> list[Status]:
        """Every state of the trial's HPAs, in order."""
        return hpas.statuses(self.watched("HorizontalPodAutoscaler"))

    def hpa_statuses_of(self, name: str) -> list[Status]:
        """:attr:`hpa_statuses` of the HPA ``name`` alone."""
        return hpas.statuses(self.watched("HorizontalPodAutoscaler", name))

    @cached_property
    def hpa_lines(self) -> list[hpa_log.Line]:
        """What kube-controller-manager logged of the HPA's syncs. A trial without an HPA has no data."""
        return list(hpa_log.parse(self.hpa_log, self.trial.begun))

    @cached_property
    def hpa_syncs(self) -> list[Sync]:
        """Every sync of the trial's HPA until the end of the trial, in order. A trial without an HPA has no data."""
        logged = [one for one in hpa_log.syncs(self.hpa_lines) if one.outcome.t < self.end]
        statuses = self.hpa_statuses_of(self.policy.hpa) if self.policy.hpa else self.hpa_statuses
        return hpas.syncs(logged, statuses, self.watched("Deployment", CONSUMER))
