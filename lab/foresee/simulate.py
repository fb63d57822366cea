"""The closed loop: traffic builds lag, KEDA and the HPA see it and decide, pods start and take their partitions.

It goes from event to event: a sync of an HPA, a step of the profile, a poll of KEDA's, a sample of the persistent-lag scaler's,
a pod that joins or leaves, the end of a rebalance. Between two of them every rate is constant. Many policies on the same
traffic share the steps, and so the arrays.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from lab.errors import InputError
from lab.foresee import whole
from lab.foresee.curve import Change, Curve
from lab.foresee.group import Floats, Group, Ints, Rebalance, Seen
from lab.foresee.scaler import Scaler
from lab.foresee.situation import Situation
from lab.foresee.starts import Starts
from lab.inputs.consumer import Balancer
from lab.inputs.scaledobject import ScaledObject

PARTS_OF_A_SYNC = 30  # where many policies share steps, each event moves to the nearest such part of a sync period


def simulate(situation: Situation, scaled: ScaledObject, *, every: bool = False) -> Curve:
    """The curve of ``scaled`` in ``situation``. Raises :class:`InputError` for what is not simulated.

    With ``every`` its log has each sync of the HPA, and not only the decisions that changed the replicas.
    """
    return simulate_many(situation, [scaled], every=every)[0]


def simulate_many(situation: Situation, policies: Sequence[ScaledObject], *, every: bool = False) -> list[Curve]:
    """:func:`simulate` for each of ``policies``, in one pass; events between syncs are rounded to a part of a period."""
    if situation.topics > 1 and Balancer(situation.consumers.balancer).by_topic:
        allowed = f"any other with topics {situation.topics}: it shares out each topic by itself, which is not simulated"
        raise InputError("simulated group", "balancer", situation.consumers.balancer, allowed)
    return _Loop(situation, policies, every).run()


class _Kind(IntEnum):
    """The kind of an event; events at the same time come in this order."""

    RATE = 0
    ROUND = 1
    COME = 2
    GO = 3
    SAMPLE = 4
    POLL = 5
    SYNC = 6


class _Loop:
    """One pass: the state of all groups, the scalers, and the events to come."""

    def __init__(self, situation: Situation, policies: Sequence[ScaledObject], every: bool) -> None:
        self._is, self._every = situation, every
        self._scalers = [Scaler(scaled, situation) for scaled in policies]
        self._wanted = np.array([scaler.replicas for scaler in self._scalers], dtype=np.int64)
        self._group = Group(situation.consumers, situation.shares, len(policies), situation.read_s or 0.0)
        self._group.backlog += situation.shares * situation.backlog
        self._members = [
            Rebalance(situation.consumers, row, int(count)) for row, count in zip(self._group.owner, self._wanted, strict=True)
        ]
        self._starts = [Starts(situation.consumers, situation.draw, int(count)) for count in self._wanted]
        self._coming: list[list[float]] = [[] for _ in policies]  # when each starting pod will join, in order
        self._working = np.array([one.working for one in self._members], dtype=np.int64)
        self._due: list[tuple[float, _Kind, int, float]] = []  # (time, kind, policy, leavers or rate)
        self._logs: list[list[Change]] = [[] for _ in policies]
        self._points: list[tuple[float, Floats, Ints, Ints]] = []
        steps = situation.profile.steps
        for step, after in zip(steps, [*(one.at for one in steps[1:]), situation.end], strict=True):
            heapq.heappush(self._due, (step.at, _Kind.RATE, 0, step.rate))
            # Messages in flight follow the rate: without a point here the curve would show the old rate's until the next sync.
            if step.at + situation.consumers.in_flight_s < after:
                heapq.heappush(self._due, (step.at + situation.consumers.in_flight_s, _Kind.RATE, 0, step.rate))
        for index, scaler in enumerate(self._scalers):
            heapq.heappush(self._due, (situation.phase_s, _Kind.SYNC, index, 0))
            if scaler.polls_every_s:
                heapq.heappush(self._due, (0.0, _Kind.POLL, index, 0))
            if math.isfinite(scaler.due):
                heapq.heappush(self._due, (scaler.due, _Kind.SAMPLE, index, 0))

    def run(self) -> list[Curve]:
        """Go through to the end."""
        now = rate = 0.0
        while now < self._is.end:
            at = min(self._due[0][0], self._is.end) if self._due else self._is.end
            if at > now:
                self._group.step(at - now, rate)
                now = at
            lags = self._group.lags
            seen = lags if self._is.read_s is None else self._group.lags_with(self._is.read_s)
            while self._due and self._due[0][0] <= now:
                _, kind, index, number = heapq.heappop(self._due)
                if kind is _Kind.RATE:
                    rate = number
                elif kind is _Kind.SAMPLE:
                    self._scalers[index].sample(self._seen(now, index, seen[index]))
                    heapq.heappush(self._due, (self._scalers[index].due, _Kind.SAMPLE, index, 0))
                elif kind in (_Kind.POLL, _Kind.SYNC):
                    self._decide(now, index, kind, seen[index])
                else:
                    self._move(now, index, kind, number)
            self._points.append((now, whole.totals(lags), self._wanted.copy(), self._working.copy()))
        t = np.array([point[0] for point in self._points])
        lag, replicas, working = (np.array([point[part] for point in self._points]) for part in (1, 2, 3))
        return [
            Curve(t, lag[:, index], replicas[:, index], working[:, index], tuple(log)) for index, log in enumerate(self._logs)
        ]

    def _seen(self, now: float, index: int, lags: Floats) -> Seen:
        group = self._group
        return Seen(now, lags, group.processed[index], group.backlog[index], self._members[index].joined)

    def _decide(self, now: float, index: int, kind: _Kind, lags: Floats) -> None:
        scaler, before = self._scalers[index], int(self._wanted[index])
        if kind is _Kind.POLL:
            after, again = scaler.poll(self._seen(now, index, lags)), scaler.polls_every_s
        else:
            after = scaler.sync(self._seen(now, index, lags))
            again = self._is.sync_s + max(0, after - self._members[index].members) * self._is.sync_each_s
        assert again is not None
        heapq.heappush(self._due, (now + again, kind, index, 0))
        if after != before or (self._every and kind is _Kind.SYNC):
            self._logs[index].append(Change(now, before, after, scaler.reasons))
        if after == before:
            return
        self._wanted[index] = after
        self._scale(now, index, before, after)

    def _scale(self, now: float, index: int, before: int, after: int) -> None:
        """Pods start, or leave: first those that have not joined, as a ReplicaSet deletes them, the latest of them first."""
        ready, coming = self._starts[index].scale(now, before, after), self._coming[index]
        due = {at: self._put(at, _Kind.COME, index, 0) for at in set(ready)}
        coming.extend(due[at] for at in ready)
        coming.sort()
        if after < before:
            cancelled = min(before - after, len(coming))
            del coming[len(coming) - cancelled :]
            if leaving := before - after - cancelled:
                self._put(now + self._is.consumers.stop_s, _Kind.GO, index, leaving)

    def _move(self, now: float, index: int, kind: _Kind, number: float) -> None:
        """A pod joins or leaves, or a round of rebalancing ends."""
        group, coming = self._members[index], self._coming[index]
        if kind is _Kind.ROUND:
            if group.ends is None or now < group.ends:
                return  # a member joined or left meanwhile: the round goes on
            group.round(now)
        else:
            came = bisect_right(coming, now) if kind is _Kind.COME else 0
            del coming[:came]
            if not came and not number:
                return  # those that were to come are no longer wanted
            group.resize(now, group.members + came - int(number))
        self._working[index] = group.working
        if group.ends is not None:
            group.ends = self._put(group.ends, _Kind.ROUND, index, 0)

    def _put(self, at: float, kind: _Kind, index: int, number: float) -> float:
        """Schedule an event at ``at``, or at its rounded time; returns that time."""
        if len(self._scalers) > 1:
            part = self._is.sync_s / PARTS_OF_A_SYNC
            at = round(at / part) * part
        heapq.heappush(self._due, (at, kind, index, number))
        return at
