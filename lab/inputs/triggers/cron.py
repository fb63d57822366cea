"""The cron trigger: a number of replicas between two schedules (``pkg/scalers/cron_scaler.go``).

:meth:`Schedule.after` is a port of what KEDA runs, and no library, because its corners decide replicas: a day matches by either
of its two fields unless one of them has a star; a step takes the star away; hours that a change of clocks skips are passed
over. Source: ``github.com/robfig/cron/v3`` 3.0.1, ``parser.go`` and ``SpecSchedule.Next`` in ``spec.go``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from lab.inputs.triggers import common
from lab.inputs.triggers.common import Common, Reading, Unscaled
from lab.inputs.triggers.metadata import Metadata

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, {name: value for value, name in enumerate(_MONTH_NAMES, start=1)}),
    ("day of week", 0, 6, {name: value for value, name in enumerate(_DAY_NAMES)}),
)
_RANGE = re.compile(r"(?:(?P<star>[*?])|(?P<low>\w+)(?:-(?P<high>\w+))?)(?:/(?P<step>\d+))?")
_YEARS = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Field:
    """The values that match, and whether a star (without a step above 1) stands among them."""

    values: frozenset[int]
    star: bool

    def __contains__(self, value: int) -> bool:
        return value in self.values


@dataclass(frozen=True)
class Schedule:
    """A parsed expression: it comes due at second 0 of every minute that matches."""

    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    def after(self, now: datetime) -> datetime | None:
        """The next time after ``now``, in its zone; None if there is none within five years. Source: ``SpecSchedule.Next``."""
        zone = now.tzinfo or UTC
        at = _seconds(now) + 1
        limit = _wall(at, zone).year + _YEARS
        moved, wrapped = False, True
        while wrapped:
            if _wall(at, zone).year > limit:
                return None
            at, moved, wrapped = self._pass(at, moved, zone)
        return _wall(at, zone)

    def _pass(self, at: int, moved: bool, zone: tzinfo) -> tuple[int, bool, bool]:
        """Move each field on until it matches; wrapped when a larger one has to be looked at again.

        Once a field has ``moved``, the smaller ones stand at their beginning. A wrap is seen by its first value alone, as in
        the original: where a change of clocks skips midnight, hours run into the next day unseen.
        """
        while _wall(at, zone).month not in self.month:
            if not moved:
                at, moved = _date(_wall(at, zone).replace(day=1), 0, zone), True
            at = _later(at, zone, months=1)
            if _wall(at, zone).month == 1:
                return at, moved, True
        while not self._day_matches(_wall(at, zone)):
            if not moved:
                at, moved = _date(_wall(at, zone), 0, zone), True
            at = _midnight(_later(at, zone, days=1), zone)
            if _wall(at, zone).day == 1:
                return at, moved, True
        while _wall(at, zone).hour not in self.hour:
            if not moved:
                at, moved = _date(_wall(at, zone), _wall(at, zone).hour * 3600, zone), True
            at += 3600
            if _wall(at, zone).hour == 0:
                return at, moved, True
        while _wall(at, zone).minute not in self.minute:
            if not moved:
                at, moved = at - at % 60, True
            at += 60
            if _wall(at, zone).minute == 0:
                return at, moved, True
        while _wall(at, zone).second:
            moved = True
            at += 1
            if _wall(at, zone).second == 0:
                return at, moved, True
        return at, moved, False

    def _day_matches(self, wall: datetime) -> bool:
        """Source: ``dayMatches``."""
        of_month, of_week = wall.day in self.day, wall.isoweekday() % 7 in self.weekday
        return of_month and of_week if self.day.star or self.weekday.star else of_month or of_week


def parse_schedule(text: str) -> Schedule:
    """The schedule in ``text``. Raises :class:`ValueError` naming the field that can't be read. Source: ``Parser.Parse``."""
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"it has {len(parts)} fields")
    return Schedule(*(_field(part, *bounds) for part, bounds in zip(parts, _FIELDS, strict=True)))


def _field(text: str, name: str, least: int, most: int, names: dict[str, int]) -> Field:
    """Source: ``getField`` and ``getRange``."""
    values: set[int] = set()
    star = False
    for part in text.split(","):
        found = _RANGE.fullmatch(part)
        if not found:
            raise ValueError(f"its {name} is {part!r}")
        step = int(found["step"] or 1)
        if found["star"]:
            low, high = least, most
            star = star or step <= 1
        else:
            low = _number(found["low"], names, name)
            high = _number(found["high"], names, name) if found["high"] else low
            if found["step"] and not found["high"]:
                high = most  # "N/step" means "N-max/step"
        if not least <= low <= high <= most or step == 0:
            raise ValueError(f"its {name} is {part!r}, and {least} to {most} is the range")
        values.update(range(low, high + 1, step))
    return Field(frozenset(values), star)


def _number(text: str, names: dict[str, int], name: str) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not text.isdecimal():
        raise ValueError(f"its {name} is {text!r}")
    return int(text)


def _seconds(when: datetime) -> int:
    return (when - _EPOCH) // timedelta(seconds=1)


def _wall(at: int, zone: tzinfo) -> datetime:
    return (_EPOCH + timedelta(seconds=at)).astimezone(zone)


def _offset(at: int, zone: tzinfo) -> int:
    away = _wall(at, zone).utcoffset()
    return int(away.total_seconds()) if away else 0


def _date(day: datetime, clock: int, zone: tzinfo) -> int:
    """The instant of ``clock`` seconds into the date of ``day``, even where clocks skip or repeat it: Go's ``time.Date``."""
    naive = _seconds(datetime(day.year, day.month, day.day, tzinfo=UTC)) + clock
    away = _offset(naive, zone)
    if away and _offset(naive - away, zone) != away:
        away = _offset(naive - away, zone)
    return naive - away


def _later(at: int, zone: tzinfo, months: int = 0, days: int = 0) -> int:
    """The same clock ``months`` and ``days`` later, days of a month that has fewer running into the next: Go's ``AddDate``."""
    wall = _wall(at, zone)
    month = wall.month - 1 + months
    first = datetime(wall.year + month // 12, month % 12 + 1, 1)
    clock = wall.hour * 3600 + wall.minute * 60 + wall.second
    return _date(first + timedelta(days=wall.day - 1 + days), clock, zone)


def _midnight(at: int, zone: tzinfo) -> int:
    """The midnight that ``at`` was meant to be where a change of clocks moved it by an hour."""
    hour = _wall(at, zone).hour
    return at + (24 - hour) * 3600 if hour > 12 else at - hour * 3600


FIELDS = ("timezone", "start", "end", "desiredReplicas")
_FIVE = 'five fields of a crontab, such as "0 8 * * *"'
_REPLACED = str.maketrans({" ": "", "*": "x", "/": "Sl", "?": "Qm", ",": "Cm"})


@dataclass(frozen=True)
class Cron(Unscaled):
    """``replicas`` while the next end is nearer than the next start, 0 else; the HPA wants 1 per replica."""

    common: Common
    zone: str
    start: str
    end: str
    replicas: int

    @property
    def target(self) -> float:
        """What the HPA wants per replica: the metric is the number of replicas itself."""
        return 1.0

    def metric(self, index: int, environment: Mapping[str, str]) -> dict[str, Any]:
        """The HPA's metric. Source: ``cronScaler.GetMetricSpecForScaling`` and ``parseCronTimeFormat``."""
        start, end = (text.translate(_REPLACED) for text in (self.start, self.end))
        return common.external(index, common.normalized(f"cron-{self.zone}-{start}-{end}"), self.common.metric_type, 1)


def parse(trigger: Mapping[str, Any], where: object, place: str) -> Cron:
    """The trigger at ``place``. Raises :class:`InputError` naming the field. Source: ``cronMetadata.Validate``. A time zone
    that is none, which KEDA finds out at every query, is refused here."""
    shared = common.read(trigger, where, place, cacheable=False)
    metadata = Metadata.read(trigger, where, place)
    metadata.check(FIELDS)
    zone = metadata.text("timezone", "a time zone such as Europe/Berlin")
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        metadata.refuse("timezone", "a time zone such as Europe/Berlin")
    for field in ("start", "end"):
        try:
            parse_schedule(metadata.text(field, _FIVE))
        except ValueError as error:
            metadata.refuse(field, f"{_FIVE}; {error}")
    start, end = (metadata.content.get(field, "") for field in ("start", "end"))
    if start == end:
        metadata.refuse("end", f"another time than start, {start}")
    return Cron(shared, zone, start, end, metadata.whole("desiredReplicas", 1))


def read(trigger: Cron, now: datetime) -> Reading:
    """The desired replicas at ``now``, which has a time zone. Source: ``cronScaler.GetMetricsAndActivity``.

    Both schedules are asked for their next time after ``now``; the trigger is active unless the next start comes first. Where
    an expression never comes due (30 February), such a start leaves the trigger active, and such an end alone inactive.
    """
    starts, ends = due(trigger, now)
    active = starts is None or (ends is not None and ends <= starts)  # in UTC: clocks repeat an hour
    value, zone = trigger.replicas if active else 0, ZoneInfo(trigger.zone)
    at, start, end = (f"{when.astimezone(zone):%Y-%m-%d %H:%M %Z}" if when else "never" for when in (now, starts, ends))
    return Reading(float(value), active, (f"{at}: next start {start}, next end {end}: {value} replicas",))


def due(trigger: Cron, now: datetime) -> tuple[datetime | None, datetime | None]:
    """The next start and the next end after ``now``, in UTC; None for an expression that never comes due."""
    local = now.astimezone(ZoneInfo(trigger.zone))
    starts, ends = (parse_schedule(text).after(local) for text in (trigger.start, trigger.end))
    return starts and starts.astimezone(UTC), ends and ends.astimezone(UTC)
