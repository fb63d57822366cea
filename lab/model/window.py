"""How much lag has lasted: the scaler's metric, from samples by partition. Pure: time is an argument, in s on one clock.

    L_p(t)   the sampled lag of partition p (messages), or the age of its oldest uncommitted record (s); straight in between
    E_p(t) = least L_p over [t - sustain, t]               what has been there all that time
    M(t)   = sum of E_p, or P * greatest E_p for ages      both at most P * target, unless idle consumers are allowed
    R(t)   = least M over [t - up, t]                      scaleUpStabilization
    H(t)   = greatest R over [t - down, t]                 scaleDownStabilization; H is the metric

E_p(t) > c exactly when the current stretch of L_p above c has lasted longer than ``sustain``: M counts, level
by level, the partitions whose stretch has lasted. No level is special, so nothing jumps at one: a change of every sample by at
most d changes H by at most P * d, and between samples H moves no faster than the lag itself did (docs/decisions/15).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Set
from dataclasses import dataclass

from lab.inputs.triggers.common import Reading, ScalerError, exposed
from lab.inputs.triggers.persistent_lag import Rule
from lab.model.signal import Signal


class Ends(Signal):
    """The log's end of one partition over the last ``horizon_s`` seconds, messages."""

    __slots__ = ()

    def __init__(self, horizon_s: float) -> None:
        super().__init__(horizon_s, math.inf)

    def add(self, at: float, value: float) -> None:
        """Take a sample. An end before the last one is of another log: the samples of the old log are dropped."""
        if self._times and at > self._times[-1] and value < self._values[-1]:
            del self._times[:], self._values[:]
        super().add(at, value)

    def adopt(self, other: Ends) -> None:
        """Begin with the samples of ``other``, which may have another horizon."""
        for at, end in other.samples():
            self.add(at, end)

    def age(self, committed: int) -> float:
        """The age at the last sample of the record at ``committed``, s; 0 when there is no such record yet.

        Between two samples the log is assumed to have grown evenly. A record from before the first sample is as old as that
        sample, and as much older as the log needs to grow by the difference at its mean rate; without growth, no older. Raises
        ``IndexError`` without any sample.
        """
        now, end = self._times[-1], self._values[-1]
        if committed >= end:
            return 0.0
        index = bisect_right(self._values, committed)
        if index:
            before, after = self._values[index - 1], self._values[index]
            begin, over = self._times[index - 1], self._times[index]
            return now - (begin + (over - begin) * (committed - before) / (after - before))
        seen, grown = now - self._times[0], end - self._values[0]
        return seen + ((self._values[0] - committed) * seen / grown if grown else 0.0)


UNCOMMITTED = 1.0  # as KEDA counts a partition without a commit under offsetResetPolicy latest: enough to wake the group
UNCOMMITTED_S = 1e-6  # the same for ages: it wakes the group and asks for no replica, however many partitions there are


@dataclass(frozen=True)
class Lasting(Reading):
    """A :class:`Reading` with its parts: the lag (or worst age) now, and how much of it has lasted."""

    now: float
    sustained: float


class Window:
    """The samples of one ScaledObject, by partition, at most size + 2 of each, and those of the stabilizations.

    A partition that is new in a sample had no lag before. A partition that is missing is bridged like one that did not answer,
    because a broker may not know all of them yet; then it is forgotten. A rebalance changes nothing: samples belong to a
    partition, whichever pod consumes it. The lag that a rebalance makes must last like any other.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._partitions: dict[int, Signal] = {}
        self._sustained = self._signal(rule.up_s)
        self._raised = self._signal(rule.down_s)
        self._plain = self._signal(rule.down_s)
        self._read_at: float | None = None

    def adopt(self, other: Window) -> None:
        """Begin with the samples of ``other``; its reported values are kept up to the new rule's maximum."""
        for number, signal in other._partitions.items():
            self._partitions[number] = self._copied(signal, self.rule.size * self.rule.interval_s)
        if self.rule.up_s:
            self._sustained = self._copied(other._sustained, self.rule.up_s, self._most)
        if self.rule.down_s:
            self._raised = self._copied(other._raised, self.rule.down_s, self._most)
            self._plain = self._copied(other._plain, self.rule.down_s)
        self._read_at = other._read_at

    def restart(self, number: int) -> None:
        """Forget the samples of a partition. It goes on as a partition that was never seen, not as a new one without lag."""
        if number in self._partitions:
            self._partitions[number] = self._signal(self.rule.size * self.rule.interval_s)

    def _copied(self, signal: Signal, horizon_s: float, most: float = math.inf) -> Signal:
        copy = self._signal(horizon_s)
        for at, value in signal.samples():
            copy.add(at, min(value, most))
        return copy

    def _signal(self, horizon_s: float) -> Signal:
        return Signal(horizon_s, self.rule.longest_gap_s)

    @property
    def partitions(self) -> Set[int]:
        """The partitions that count."""
        return self._partitions.keys()

    @property
    def _most(self) -> float:
        """The largest metric allowed: without idle consumers it is the sum of all partitions' targets."""
        return math.inf if self.rule.allow_idle else len(self._partitions) * self.rule.target

    @property
    def samples(self) -> int:
        """The number of samples kept, of all partitions and of the stabilizations."""
        every = (*self._partitions.values(), self._sustained, self._raised, self._plain)
        return sum(len(signal) for signal in every)

    def add(self, at: float, values: Mapping[int, float | None]) -> None:
        """Take one reading of all the topic's partitions; None stands for one that did not answer."""
        before = self._read_at
        self._read_at = at
        for absent in self._partitions.keys() - values.keys():
            last = self._partitions[absent].last_at
            if last is None or at - last >= self.rule.longest_gap_s:
                del self._partitions[absent]
        for number, value in values.items():
            signal = self._partitions.get(number)
            if signal is None:
                signal = self._partitions[number] = self._signal(self.rule.size * self.rule.interval_s)
                if before is not None:  # where that is too long ago, the signal drops it with the next sample
                    signal.add(before, 0.0)
            if value is not None:
                signal.add(at, value)
        if self.rule.up_s or self.rule.down_s:  # otherwise no stabilization reads earlier values
            self._remember(at)

    def _remember(self, at: float) -> None:
        """Keep the metric at ``at`` for the stabilizations. Keep nothing while it is unknown; :meth:`read` raises then."""
        try:
            self._check(at)
            self._plain.add(at, self._now())
            sustained = self._sustain(at)
            self._sustained.add(at, sustained)
            self._raised.add(at, self._raise(at, sustained))
        except ScalerError:
            return

    def read(self, now: float) -> Lasting:
        """The metric at ``now``. Raises :class:`ScalerError` with the reason while it is unknown: never a guess, never 0."""
        self._check(now)
        plain, sustained = self._now(), self._sustain(now)
        raised = self._raise(now, sustained)
        metric = exposed(self._raised.most(now, self.rule.down_s, raised))
        recent = self._plain.most(now, self.rule.down_s, plain)
        active = recent > self.rule.activation
        unit = "s" if self.rule.ages else "messages"
        return Lasting(
            metric=metric,
            active=active,
            reasons=(
                f"{plain:g} {unit} behind now, {sustained:g} lasting for {self.rule.sustain_s:g} s",
                f"{metric:g} after the windows for up {self.rule.up_s:g} s and down {self.rule.down_s:g} s",
                f"{recent:g} is {'above' if active else 'not above'} activation {self.rule.activation:g}",
            ),
            now=plain,
            sustained=sustained,
        )

    def active(self, now: float) -> bool:
        """Whether there is more than ``activation``, lasting or not, now or within scaleDownStabilization. A group that keeps
        up has lag now and then, and none that lasts. Raises :class:`ScalerError` without a recent sample."""
        self._check(now)
        return self._plain.most(now, self.rule.down_s, self._now()) > self.rule.activation

    def stretch(self, now: float, level: float) -> float:
        """The longest current stretch above ``level`` of any one partition, s."""
        return max((signal.stretch(now, level) for signal in self._partitions.values()), default=0.0)

    def _now(self) -> float:
        """The last samples, without any window."""
        values = [signal.last for signal in self._partitions.values()]
        return max(values) if self.rule.ages else sum(values)

    def _check(self, now: float) -> None:
        """Raise :class:`ScalerError` for a partition without a recent sample, and where there is no partition."""
        if not self._partitions:
            raise ScalerError("no sample yet")
        bridged = self.rule.longest_gap_s
        for number, signal in self._partitions.items():
            last = signal.last_at
            if last is None:
                raise ScalerError(f"partition {number}: no sample yet")
            if now - last > bridged:
                raise ScalerError(f"partition {number}: no sample for {now - last:.0f} s; {bridged:g} s are bridged")

    def _sustain(self, now: float) -> float:
        """M at ``now``: the lag that has lasted, of all partitions together."""
        lasting = []
        for number, signal in self._partitions.items():
            least = signal.least(now, self.rule.sustain_s)
            # One that was seen at 0 needs no longer history: nothing has lasted through that.
            if least > 0 and not signal.covers(now, self.rule.sustain_s):
                raise ScalerError(f"partition {number}: seen for less than sustainSeconds {self.rule.sustain_s:g}")
            lasting.append(least)
        return min(len(lasting) * max(lasting) if self.rule.ages else sum(lasting), self._most)

    def _raise(self, now: float, sustained: float) -> float:
        """R at ``now``, where M is ``sustained``."""
        span = self.rule.up_s
        if not span:
            return sustained
        least = self._sustained.least(now, span, sustained)
        if least > 0 and not self._sustained.covers(now, span):
            raise ScalerError(f"seen for less than sustainSeconds and scaleUpStabilization {span:g}")
        return least
