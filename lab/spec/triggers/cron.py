"""The cron trigger: a number of replicas between two schedules (``pkg/scalers/cron_scaler.go``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from lab.spec.triggers import common, schedule
from lab.spec.triggers.common import Common
from lab.spec.triggers.metadata import Metadata
from lab.spec.triggers.reading import Reading
from lab.spec.triggers.schedule import Schedule

FIELDS = ("timezone", "start", "end", "desiredReplicas")
_FIVE = 'five fields of a crontab, such as "0 8 * * *"'
_REPLACED = str.maketrans({" ": "", "*": "x", "/": "Sl", "?": "Qm", ",": "Cm"})


@dataclass(frozen=True)
class Cron:
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
    """The trigger at ``place``. Raises :class:`InputError` naming the field. Source: ``cronMetadata.Validate``.

    A time zone that is none, which KEDA finds out at every query, is refused here.
    """
    shared = common.read(trigger, where, place, cacheable=False)
    metadata = Metadata.read(trigger, where, place)
    metadata.known(FIELDS)
    zone = metadata.text("timezone", "a time zone such as Europe/Berlin")
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise metadata.error("timezone", "a time zone such as Europe/Berlin") from None
    for field in ("start", "end"):
        _schedule(metadata, field)
    if metadata.content["start"] == metadata.content["end"]:
        raise metadata.error("end", f"another time than start, {metadata.content['start']}")
    return Cron(shared, zone, metadata.content["start"], metadata.content["end"], metadata.whole("desiredReplicas", 1))


def _schedule(metadata: Metadata, field: str) -> Schedule:
    try:
        return schedule.parse(metadata.text(field, _FIVE))
    except ValueError as error:
        raise metadata.error(field, f"{_FIVE}; {error}") from None


def read(trigger: Cron, now: datetime) -> Reading:
    """The desired replicas at ``now``, which has a time zone. Source: ``cronScaler.GetMetricsAndActivity``.

    Both schedules are asked for their next time after ``now``; the trigger is active unless the next start comes first. Where
    an expression never comes due (30 February), such a start leaves the trigger active, and such an end alone inactive.
    """
    local = now.astimezone(ZoneInfo(trigger.zone))
    starts, ends = (schedule.parse(text).after(local) for text in (trigger.start, trigger.end))
    active = _active(starts, ends)
    value = trigger.replicas if active else 0
    return Reading(
        float(value),
        active,
        (f"{local:%Y-%m-%d %H:%M %Z}: next start {_shown(starts)}, next end {_shown(ends)}: {value} replicas",),
    )


def _active(starts: datetime | None, ends: datetime | None) -> bool:
    if ends is None:
        return starts is None
    return starts is None or _instant(ends) <= _instant(starts)


def _instant(when: datetime) -> datetime:
    """``when`` in UTC: two times of one zone are otherwise compared by their clocks, which repeat an hour."""
    return when.astimezone(UTC)


def _shown(when: datetime | None) -> str:
    return f"{when:%Y-%m-%d %H:%M %Z}" if when else "never"
