"""Traffic profiles: timestamped steps of the producer's rate, and the exact schedule that follows from them.

A profile is piecewise constant. The number of events due by time t is the integral of the rate, and event i is due when
the integral reaches i, so the schedule is a pure function of the profile and no random number decides when to send.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab import yamlfile
from lab.errors import InputError, report, together
from lab.yamlfile import Fields

MAX_RATE = 1_000_000.0
MAX_SECONDS = 7 * 86_400.0
ROUNDING = 1e-6  # events; so close to a whole one the integral of the rate is it
ZIPF = 1.1  # the field's usual skew of keys
BASELINE = "baseline"
RELIEF = ("drain", "lull")  # the phases in which a backlog is worked off


@dataclass(frozen=True)
class Step:
    """From ``at`` seconds after the start the rate is ``rate`` events/s; ``phase`` says what the step is for."""

    at: float
    rate: float
    phase: str


@dataclass(frozen=True)
class Profile:
    """Steps in order of time, the first at 0, and the length in seconds.

    ``zipf`` is the exponent s of the keys' Zipf distribution (0: all entities alike). ``real_time`` says that the profile
    takes the same time at every scale, as what it is for does. ``begins_at`` is the time of day of its start, which a cron
    trigger needs; no scale changes it. It is None where the profile says none.
    """

    steps: tuple[Step, ...]
    duration: float
    zipf: float = ZIPF
    real_time: bool = False
    begins_at: datetime | None = None

    @cached_property
    def _edges(self) -> npt.NDArray[np.float64]:
        return np.array([*(step.at for step in self.steps), self.duration])

    @cached_property
    def _due(self) -> npt.NDArray[np.float64]:
        rates = np.array([step.rate for step in self.steps])
        return np.concatenate(([0.0], np.cumsum(rates * np.diff(self._edges))))

    @property
    def total(self) -> int:
        """How many events the whole profile sends."""
        return int(np.floor(self._due[-1] + ROUNDING))

    def due(self, seconds: float) -> int:
        """How many events are due ``seconds`` after the start: those whose time, by :meth:`times`, is then or before."""
        count = int(np.floor(np.interp(seconds, self._edges, self._due) + ROUNDING))
        if count < self.total and self.times(count, count + 1)[0] <= seconds:
            count += 1
        return min(self.total, count)

    def times(self, first: int, last: int) -> npt.NDArray[np.float64]:
        """When events ``first`` to ``last`` (exclusive) are due, in seconds after the start."""
        # Steps of rate 0 would make the integral flat; the k-th event is due at the start of the next flowing step.
        flowing = np.concatenate((np.diff(self._due) > 0, [True]))
        # The integral is off by a float's last digits, and must not leave an event behind at the end of the step before.
        index = np.arange(first, last, dtype=np.float64)
        position = np.searchsorted(self._due, index + ROUNDING, side="right") - 1
        position = np.minimum(position, len(self.steps) - 1)
        rates = np.array([step.rate for step in self.steps])
        with np.errstate(divide="ignore", invalid="ignore"):
            within = np.where(flowing[position], np.maximum(0.0, index - self._due[position]) / rates[position], 0.0)
        return self._edges[position] + within

    def oldest_s(self, capacity: float) -> float:
        """The age, s, that events reach where ``capacity`` a second are done at most, each in its turn."""
        backlog = most = 0.0
        for step, seconds in zip(self.steps, np.diff(self._edges).tolist(), strict=True):
            backlog = max(0.0, backlog + (step.rate - capacity) * seconds)
            most = max(most, backlog)
        return most / capacity

    def phases(self) -> list[tuple[float, float, str]]:
        """(start, end, phase) of each run of steps of one phase, in seconds."""
        runs: list[tuple[float, float, str]] = []
        ends = [*(step.at for step in self.steps[1:]), self.duration]
        for step, end in zip(self.steps, ends, strict=True):
            if runs and runs[-1][2] == step.phase:
                runs[-1] = (runs[-1][0], end, step.phase)
            else:
                runs.append((step.at, end, step.phase))
        return runs

    def compressed(self, time: float, rate: float) -> Profile:
        """The same shape with every time divided by ``time`` and every rate multiplied by ``rate``."""
        time = 1 if self.real_time else time
        steps = tuple(replace(step, at=step.at / time, rate=step.rate * rate) for step in self.steps)
        return replace(self, steps=steps, duration=self.duration / time)

    def to_dict(self) -> dict[str, Any]:
        """The profile as explicit steps, in the form :func:`load` reads."""
        steps = [{"at": step.at, "rate": step.rate, "phase": step.phase} for step in self.steps]
        content = {"kind": "steps", "steps": steps, "duration": self.duration, "zipf": self.zipf}
        at = {"begins_at": self.begins_at.isoformat()} if self.begins_at else {}
        return content | ({"real_time": True} if self.real_time else {}) | at


def _step(rate: float, baseline: float, spike_hold: float, spike_mult: float) -> list[Step]:
    spike = Step(baseline, rate * spike_mult, "spike")
    return [Step(0.0, rate, BASELINE), spike, Step(baseline + spike_hold, rate, "drain")]


def _bursty(rate: float, baseline: float, spike_hold: float, spike_mult: float, every: float, bursts: float) -> list[Step]:
    steps = [Step(0.0, rate, BASELINE)]
    for at in (baseline + burst * every for burst in range(int(bursts))):
        steps += [Step(at, rate * spike_mult, "burst"), Step(at + spike_hold, rate, "lull")]
    return steps


def _sawtooth(rate: float, baseline: float, spike_hold: float, spike_mult: float, bursts: float) -> list[Step]:
    treads = 10  # a ramp is drawn as ten steps: the rate stays piecewise constant
    steps = [Step(0.0, rate, BASELINE)]
    for tooth in range(int(bursts)):
        for tread in range(treads):
            at = baseline + spike_hold * (tooth + tread / treads)
            steps.append(Step(at, rate * (1 + (spike_mult - 1) * (tread + 1) / treads), "tooth"))
    return [*steps, Step(baseline + spike_hold * int(bursts), rate, "drain")]


_SPAN = (0.001, MAX_SECONDS)
_SHAPES = {"spike_mult": "multiple of the rate", "bursts": "number of bursts"}
_BOUNDS = {"baseline": _SPAN, "spike_hold": _SPAN, "every": _SPAN, "spike_mult": (1, 1000), "bursts": (1, 10_000)}
_UNITS = {"baseline": "s", "spike_hold": "s", "every": "s"}
_RATE = "messages/s"
_YEARS = (1970, 2100)  # of a profile's start: no schedule then leaves the calendar
# By kind: what makes its steps of the rate and of its fields, and the default of each field.
_KINDS: dict[str, tuple[Callable[..., list[Step]], dict[str, float]]] = {
    "steady": (lambda rate: [Step(0.0, rate, BASELINE)], {}),
    "step": (_step, {"baseline": 300, "spike_hold": 600, "spike_mult": 10}),
    "bursty": (_bursty, {"baseline": 300, "spike_hold": 60, "spike_mult": 10, "every": 180, "bursts": 5}),
    "sawtooth": (_sawtooth, {"baseline": 300, "spike_hold": 300, "spike_mult": 10, "bursts": 3}),
}
KINDS = (*_KINDS, "steps")
_COMMON = ("kind", "duration", "zipf", "real_time", "begins_at")


def build(content: Mapping[str, Any], where: object) -> Profile:
    """The profile that ``content`` describes; ``where`` names its source in errors.

    ``kind`` is one of KINDS: a name with ``rate`` (events/s at multiplier 1), ``duration`` (s) and its own fields (s, and
    counts), or ``steps`` with explicit ``{at, rate, phase}``. Raises :class:`InputError` naming each field for anything else.
    """
    with together():
        given = Fields(content, where)
        kind, duration = given.choice("kind", *KINDS), given.number("duration", *_SPAN, unit="s")
        steps = _steps(given, kind) if given.sound("kind") else []
        if steps and given.sound("duration", "steps", "rate", *_BOUNDS):
            _check(steps, duration, given, kind)
        begins_at = _begin(given)
        return Profile(tuple(steps), duration, given.number("zipf", 0, 5, ZIPF), given.flag("real_time"), begins_at)


def _steps(given: Fields, kind: str) -> list[Step]:
    if kind == "steps":
        given.known(*_COMMON, "steps")
        return _explicit(given)
    make, defaults = _KINDS[kind]
    given.known(*_COMMON, "rate", *defaults)
    rate = given.number("rate", 0, MAX_RATE, unit=_RATE)
    found = {name: given.number(name, *_BOUNDS[name], default, _UNITS.get(name, "")) for name, default in defaults.items()}
    return make(rate, **found)


def _check(steps: list[Step], duration: float, given: Fields, kind: str) -> None:
    """Refuse ``steps`` that are each allowed, but do not make a profile of this ``duration``, s."""
    last, gap = ("steps", "steps") if kind == "steps" else ("spike_hold", "every")
    if (fastest := max(step.rate for step in steps)) > MAX_RATE:
        report(InputError(given.where, "rate x spike_mult", fastest, f"at most {MAX_RATE:.10g} {_RATE}"))
    if steps[-1].at >= duration:
        given.refuse(last, f"a profile that fits its duration of {duration:g} s")
    if any(later.at <= earlier.at for earlier, later in pairwise(steps)):
        given.refuse(gap, "steps in increasing order of time")


def _begin(given: Fields) -> datetime | None:
    """The time of day in ``begins_at``."""
    found = given.content.get("begins_at")
    if found is None:
        return None
    if isinstance(found, str):
        with suppress(ValueError):
            found = datetime.fromisoformat(found)
    if isinstance(found, datetime) and found.tzinfo is not None and _YEARS[0] < found.year < _YEARS[1]:
        return found
    given.refuse("begins_at", 'a time with its distance from UTC, such as "2026-01-15T07:50:00+01:00", from 1971 to 2099')
    return None


def _explicit(given: Fields) -> list[Step]:
    steps = []
    for row in given.each("steps"):
        row.known("at", "rate", "phase")
        at, rate = row.number("at", 0, MAX_SECONDS, unit="s"), row.number("rate", 0, MAX_RATE, unit=_RATE)
        steps.append(Step(at, rate, str(row.content.get("phase", "step"))))
    if not steps:
        given.refuse("steps", "a list of {at, rate, phase}")
    elif steps[0].at != 0:
        report(InputError(given.where, "steps[0].at", steps[0].at, "0: a profile starts at once"))
    return steps


def load(path: Path) -> Profile:
    """The profile in the YAML file at ``path``. Raises :class:`InputError` naming every field that can't be used."""
    with together():
        read = yamlfile.document(path)
        return build(read.content, read.where)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a profile's file, by which editors complete it."""

    def number(bounds: tuple[float, float], text: str, **more: object) -> dict[str, object]:
        return {"type": "number", "minimum": bounds[0], "maximum": bounds[1], "description": text, **more}

    def mapping(needed: Sequence[str], fields: Mapping[str, object]) -> dict[str, object]:
        return {"type": "object", "additionalProperties": False, "required": [*needed], "properties": fields}

    rate, at = number((0, MAX_RATE), "events/s"), number((0, MAX_SECONDS), "s after the start; the first is 0")
    step = mapping(("at", "rate"), {"at": at, "rate": rate, "phase": {"type": "string", "description": "what the step is for"}})
    common = {
        "duration": number(_SPAN, "length, s"),
        "zipf": number((0, 5), "exponent of the keys' Zipf distribution; 0: all entities alike", default=ZIPF),
        "real_time": {"type": "boolean", "default": False, "description": "no scale compresses it"},
        "begins_at": {"type": "string", "description": 'time of day of its start, as "2026-01-15T07:50:00+01:00"'},
    }
    kinds = [
        mapping(("kind", "duration", "steps"), {"kind": {"const": "steps"}, "steps": {"type": "array", "items": step}} | common)
    ]
    for kind, (_, defaults) in _KINDS.items():
        own = {name: number(_BOUNDS[name], _SHAPES.get(name, "s"), default=value) for name, value in defaults.items()}
        kinds.append(mapping(("kind", "duration", "rate"), {"kind": {"const": kind}, "rate": rate} | own | common))
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "traffic profile", "oneOf": kinds}
