"""A sampled value over time: a straight line between samples, the last one held. Pure; times in s on any one clock.

The least value of a continuous curve over a trailing window is itself continuous, in time and in every sample. That is why the
scaler has no cliffs (docs/decisions/15).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right


class Signal:
    """Samples of the last ``horizon_s`` seconds and the one before. A gap above ``longest_gap_s`` drops what is older."""

    __slots__ = ("_gap", "_horizon", "_times", "_values")

    def __init__(self, horizon_s: float, longest_gap_s: float) -> None:
        self._horizon, self._gap = horizon_s, longest_gap_s
        self._times, self._values = array("d"), array("d")  # 16 bytes a sample

    def __len__(self) -> int:
        return len(self._times)

    @property
    def last_at(self) -> float | None:
        """When the last sample was taken; None without any."""
        return self._times[-1] if self._times else None

    @property
    def last(self) -> float:
        """The last sample's value. Raises ``IndexError`` without any."""
        return self._values[-1]

    def samples(self) -> list[tuple[float, float]]:
        """The samples kept, as (time, value) in order."""
        return list(zip(self._times, self._values, strict=True))

    def add(self, at: float, value: float) -> None:
        """Take a sample. One that is not later than the last is a repetition and is dropped."""
        if self._times and at <= self._times[-1]:
            return
        if self._times and at - self._times[-1] > self._gap:
            del self._times[:], self._values[:]
        self._times.append(at)
        self._values.append(value)
        spent = bisect_right(self._times, at - self._horizon) - 1
        if spent > 0:
            del self._times[:spent], self._values[:spent]

    def covers(self, now: float, span_s: float) -> bool:
        """Whether the samples reach back over the last ``span_s`` seconds, and the last of them is not too old to hold."""
        return bool(self._times) and self._times[0] <= now - span_s and now - self._times[-1] <= self._gap

    def least(self, now: float, span_s: float, tip: float | None = None) -> float:
        """The least of the last ``span_s`` seconds, both ends included, up to ``tip`` at ``now``. ``ValueError``: none."""
        return min(self._within(now, span_s, tip))

    def most(self, now: float, span_s: float, tip: float | None = None) -> float:
        """The greatest value of the last ``span_s`` seconds; otherwise as :meth:`least`."""
        return max(self._within(now, span_s, tip))

    def stretch(self, now: float, level: float) -> float:
        """How long the value has been above ``level`` without a break up to ``now``, s; 0 when it is not above it now."""
        until = now
        for index in range(len(self._times) - 1, -1, -1):
            at, value = self._times[index], self._values[index]
            if value <= level:
                if index + 1 == len(self._times):
                    return 0.0
                later, above = self._times[index + 1], self._values[index + 1]
                return now - (at + (later - at) * (level - value) / (above - value))
            until = at
        return now - until

    def _within(self, now: float, span_s: float, tip: float | None) -> list[float]:
        """The values at the window's beginning, at every sample in it, and at its tip. No point between them is outside."""
        begin = now - span_s
        first = bisect_right(self._times, begin)
        values = self._values[first:].tolist()
        if tip is not None:
            values.append(tip)
        if first:
            at, value = self._times[first - 1], self._values[first - 1]
            if values and begin > at:
                later = self._times[first] if first < len(self._times) else now
                value += (values[0] - value) * (begin - at) / (later - at)
            values.append(value)
        return values
