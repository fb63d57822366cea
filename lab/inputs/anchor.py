"""The anchor of a trial whose policy has a time of day: KEDA's cron beside times that a scale divides. Pure.

KEDA opens and closes a cron window at a full minute of the wall clock, which no trial moves. So a trial starts its profile,
which says its time of day (``begins_at``), where the first window opens at a full minute. The schedules that are applied are
minutes of that day, in UTC. The distance of every other start and end is divided too, and must come to whole minutes.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from lab.errors import InputError
from lab.inputs import scaledobject
from lab.inputs.fidelity import TOLERANCE, Compressed, Wrong, refuse
from lab.inputs.policy import Policy
from lab.inputs.profile import Profile
from lab.inputs.scale import Scale
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers import cron
from lab.inputs.triggers.cron import Cron

MINUTE_S = 60
TAKEN_S = 20.0  # until KEDA has taken a new ScaledObject and its HPA has synced, over two syncs; 5 s on a quiet machine
PRODUCER_S = 10.0  # until the producer's pod is up
ZONE = "Etc/UTC"
NEEDED = 'the time of day at which the profile begins, such as "2026-01-15T07:50:00+01:00": the policy has a cron trigger'


@dataclass(frozen=True)
class Window:
    """The window of the cron trigger at ``index``, from ``start_s`` to ``end_s``, s after the profile's start."""

    index: int
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Schedule:
    """A ``field`` of a cron trigger as the policy's file has it, and as a trial applied it."""

    field: str
    written: str
    applied: str


def crons(policy: Policy) -> tuple[tuple[int, Cron], ...]:
    """The cron triggers of ``policy``, each with its index."""
    if not isinstance(policy, ScaledObject):
        return ()
    return tuple((index, one) for index, one in enumerate(policy.triggers) if isinstance(one, Cron))


def lead_s(scale: Scale) -> float:
    """The least time from where the group is up until the profile may begin, s."""
    return TAKEN_S + 2 * scale.hpa_sync_s + PRODUCER_S


def require_begin(policy: Policy, profile: Profile, where: object) -> None:
    """Raise :class:`InputError` where ``policy`` has a time of day and ``profile``, whose file is ``where``, has none."""
    if crons(policy) and profile.begins_at is None:
        raise InputError(where, "begins_at", None, NEEDED)


def windows(policy: Policy, begins_at: datetime | None) -> tuple[Window, ...]:
    """The window of each cron trigger that opens first after ``begins_at``, at real time; none without a cron trigger. Raises
    :class:`InputError` for a schedule that never comes due, a window open at the start, and a second start before its end."""
    if begins_at is None:
        return ()
    return tuple(_window(policy, index, trigger, begins_at)[0] for index, trigger in crons(policy))


def at_scale(written: Sequence[Window], time: float) -> tuple[Window, ...]:
    """The windows in a trial that divides times by ``time``: each start and end comes whole minutes after the first start."""
    if not written:
        return ()
    first = min(one.start_s for one in written)

    def applied(seconds: float) -> float:
        return first / time + MINUTE_S * round((seconds - first) / time / MINUTE_S)

    return tuple(Window(one.index, applied(one.start_s), applied(one.end_s)) for one in written)


def check(
    policy: Policy, profile: Profile, scale: Scale, file: object, profile_file: object, others: Iterable[Scale] = ()
) -> tuple[Compressed, ...]:
    """Each start and end of a cron window of ``policy``, in s after the start of ``profile``, as written and as applied.

    ``profile`` is at real time. Raises :class:`InputError`, like :func:`lab.inputs.fidelity.check`, for windows no trial can
    hold.
    """
    if not crons(policy):
        return ()
    require_begin(policy, profile, profile_file)
    if profile.real_time and scale.time != 1:
        raise InputError(profile_file, "real_time", True, "false beside a cron trigger, or --scale real")
    assert profile.begins_at is not None
    for index, trigger in crons(policy):
        again = _window(policy, index, trigger, profile.begins_at)[1]
        if again < profile.duration:
            allowed = f"a window that opens once in the {profile.duration:g} s of the profile: it opens again after {again:g} s"
            raise InputError(file, _field(index, "start"), trigger.start, allowed)
    written = windows(policy, profile.begins_at)
    refuse(partial(_wrong, policy, written), scale, file, others)
    return times(written, scale)


def times(written: Sequence[Window], scale: Scale) -> tuple[Compressed, ...]:
    """Each start and end of ``written`` beside what ``scale`` makes of it, s after the profile's start."""
    return tuple(
        Compressed(_field(one.index, name), getattr(one, f"{name}_s"), getattr(other, f"{name}_s"))
        for one, other in zip(written, at_scale(written, scale.time), strict=True)
        for name in ("start", "end")
    )


def is_faithful(policy: Policy, profile: Profile, scale: Scale) -> bool:
    """Whether ``scale`` keeps the windows of ``policy``. Raises :class:`InputError` for those that no trial can hold."""
    return not any(True for _ in _wrong(policy, windows(policy, profile.begins_at), scale))


def start_after(earliest: float, applied: Sequence[Window]) -> float:
    """The first moment from ``earliest`` on (epoch s) from which a profile has its first window open at a full minute."""
    first = min(one.start_s for one in applied)
    return math.ceil((earliest + first) / MINUTE_S) * MINUTE_S - first


def with_schedules(policy: ScaledObject, applied: Sequence[Window], start: float) -> ScaledObject:
    """``policy`` with the schedules of its cron triggers as they are for a profile that begins at ``start`` (epoch s)."""
    content = copy.deepcopy(policy.content)
    for one in applied:
        opens, closes = _expression(start + one.start_s, opens=True), _expression(start + one.end_s)
        content["spec"]["triggers"][one.index]["metadata"] |= {"timezone": ZONE, "start": opens, "end": closes}
    return scaledobject.parse(content, policy.where)


def schedules(policy: ScaledObject, applied: ScaledObject) -> tuple[Schedule, ...]:
    """What the cron triggers of ``policy`` say, beside what they say in ``applied``."""
    pairs = zip(crons(policy), crons(applied), strict=True)
    return tuple(
        Schedule(_field(index, name), f"{getattr(one, name)} {one.zone}", f"{getattr(other, name)} {ZONE}")
        for (index, one), (_, other) in pairs
        for name in ("start", "end")
    )


def _field(index: int, name: str) -> str:
    return f"spec.triggers[{index}].metadata.{name}"


def as_trial(policy: ScaledObject, profile: Profile, time: float) -> tuple[ScaledObject, Profile]:
    """``policy`` and ``profile`` as on a trial's wall clock, for a simulation of it. Raises like :func:`windows`."""
    applied = at_scale(windows(policy, profile.begins_at), time)
    if not applied or profile.begins_at is None:
        return policy, profile
    start = start_after(profile.begins_at.timestamp(), applied)
    return with_schedules(policy, applied, start), replace(profile, begins_at=datetime.fromtimestamp(start, UTC))


def _window(policy: Policy, index: int, trigger: Cron, begins_at: datetime) -> tuple[Window, float]:
    """The first window of ``trigger`` after ``begins_at``, and when it opens again: s after ``begins_at``, at real time."""

    def error(name: str, allowed: str) -> InputError:
        return InputError(getattr(policy, "where", ""), _field(index, name), getattr(trigger, name), allowed)

    start, end = cron.due(trigger, begins_at)
    if start is None or end is None:
        raise error("start" if start is None else "end", "a schedule that comes due within five years")
    if end <= start:
        raise error("start", f"a window that opens after the profile begins: it is open at {begins_at.isoformat()}")
    again = cron.due(trigger, start)[0]
    if again is not None and again < end:
        raise error("start", "one start before each end: KEDA's window would open at the last of them")
    found = Window(index, (start - begins_at).total_seconds(), (end - begins_at).total_seconds())
    return found, math.inf if again is None else (again - begins_at).total_seconds()


def _wrong(policy: Policy, written: Sequence[Window], scale: Scale) -> Iterator[Wrong]:
    """The starts and ends that ``scale`` moves by too much."""
    first = min((one.start_s for one in written), default=0.0)
    values = {_field(index, name): getattr(one, name) for index, one in crons(policy) for name in ("start", "end")}
    for one in times(written, scale):
        after, applied = one.written_s - first, one.applied_s * scale.time - first
        if abs(applied - after) > TOLERANCE * after + 1e-6:  # a float's last digit
            allowed = (
                f"at scale {scale.name} (time / {scale.time:g}) within {TOLERANCE:.0%} of a multiple of "
                f"{MINUTE_S * scale.time:g} s after the first start: whole minutes make these {after:g} s {applied:g} s"
            )
            yield one.field, values[one.field], allowed


def _expression(at: float, opens: bool = False) -> str:
    """The schedule that is due in the minute of ``at`` (epoch s), UTC; ``opens`` for that of a window's start. A window that
    opens on 29 February may do so in any month: to KEDA it would else be open once it has ended."""
    wall = datetime.fromtimestamp(round(at), UTC)
    month = "*" if opens and (wall.month, wall.day) == (2, 29) else wall.month
    return f"{wall.minute} {wall.hour} {wall.day} {month} *"
