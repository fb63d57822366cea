"""The syncs of a live HPA as its watch alone tells them: there is no log of the controller's, and no clock of its own.

A sync that changed the status is the write that was seen. One that changed nothing wrote nothing, and saw what the last status
shows. A sync begins a period after the last one ended, so as many silent ones were between two writes as fit there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median

from lab.foresee.live_hpa import MORE_S
from lab.foresee.shadow import KEPT, NEW, UNKNOWN, Live
from lab.model import hpa
from lab.model.hpa import HpaSpec
from lab.model.hpa_log import Seen, Sync, may_exist
from lab.record.hpas import CROSSING_S, Status, possible, statuses
from lab.record.tables import Watched

ABLE = "AbleToScale"
NO_NUMBER = "SucceededGetScale"  # what its reason stays when no metric gave a number, and at no replicas
SLACK = 0.25  # of a period that a sync may be early, or late
FASTEST, SLOWEST = 0.9, 1.6  # periods between two writes that are of syncs in a row

Gaps = Sequence[tuple[float, float]]


def period(seen: Iterable[Watched], sync_s: float) -> float:
    """The time from one sync to the next, s, by the writes in a row that were ``seen``, else by the period ``sync_s``."""
    times = [one.t for life in _lives(seen) for one in _writes(life)[1:]]
    apart = [other - one for one, other in pairwise(times) if FASTEST * sync_s < other - one < SLOWEST * sync_s]
    return median(apart) if apart else sync_s + MORE_S


def syncs(seen: Sequence[Watched], target: Sequence[Watched], sync_s: float, until: float, gaps: Gaps = ()) -> list[Live]:
    """The syncs of the HPA whose watch events were ``seen``, in order, up to ``until`` (epoch s).

    ``target`` are the events of what it scales, ``sync_s`` is the time from one sync to the next, and what came within ``gaps``
    was not seen one by one. Raises :class:`~lab.errors.InputError` for an HPA that the model doesn't know.
    """
    lives = list(_lives(seen))
    ends = [*(life[0].t for life in lives[1:]), until]
    gone = [one.t for one in seen if one.event == "DELETED"]
    found: list[Live] = []
    for life, end in zip(lives, ends, strict=True):
        last = min([end, *(t for t in gone if t >= life[0].t)])
        found += _Life(life, target, sync_s, last, gaps).syncs()
    return found


def _lives(seen: Iterable[Watched]) -> Iterator[list[Status]]:
    """The states of each HPA that was there under the name, one after the other."""
    life: list[Watched] = []
    for one in seen:
        another = bool(life) and life[-1].object["metadata"].get("uid") != one.object["metadata"].get("uid")
        if life and (another or one.event == "DELETED"):
            yield statuses(life)
            life = []
        if one.event != "DELETED":
            life.append(one)
    if life:
        yield statuses(life)


def _writes(life: Sequence[Status]) -> list[Status]:
    """The first state, and each whose status differs from the one before: a sync wrote it."""
    return [*life[:1], *(one for before, one in pairwise(life) if one.object.get("status") != before.object.get("status"))]


class _Life:
    """One HPA from its first state to its ``end``."""

    def __init__(self, states: Sequence[Status], target: Sequence[Watched], sync_s: float, end: float, gaps: Gaps) -> None:
        self._states, self._sync_s, self._end, self._gaps = states, sync_s, end, gaps
        self._times = [one.t for one in states]
        self._target = [one for one in target if one.event != "DELETED"]
        self._target_times = [one.t for one in self._target]
        self._existing = [(one.t, int((one.object.get("status") or {}).get("replicas") or 0)) for one in self._target]
        self._specs: dict[str, HpaSpec] = {}

    def syncs(self) -> Iterator[Live]:
        """Each sync, in order."""
        first, *writes = _writes(self._states)
        new = not first.conditions
        memory, before = NEW if new else UNKNOWN, first.t
        if not new:  # the first of them is counted back from the first write: when the first state was written isn't known
            for t in self._before(first.t, writes[0].t if writes else self._end, known=bool(writes)):
                yield self._live(first, t, before, memory, silent=True)
                memory, before = KEPT, t
        for place, one in enumerate(writes):
            yield self._live(one, one.t, before, memory)
            memory, before = KEPT, one.t
            after = writes[place + 1].t if place + 1 < len(writes) else None
            if any(one.t < ended and began < (after or self._end) for began, ended in self._gaps):
                memory = UNKNOWN
                continue
            for t in self._between(one.t, after):
                yield self._live(one, t, before, memory, silent=True)
                before = t

    def _before(self, begin: float, end: float, *, known: bool) -> list[float]:
        """When silent syncs were after ``begin``: counted back from the one at ``end`` where that is ``known``."""
        if not known:
            return self._between(begin, None)
        count = int((end - begin) / self._sync_s)
        return [end - back * self._sync_s for back in range(count, 0, -1)]

    def _between(self, begin: float, end: float | None) -> list[float]:
        """When silent syncs were between two writes, evenly; up to the end of all where there was no second."""
        last = self._end if end is None else end
        count = int((last - begin) / self._sync_s + (SLACK if end else -SLACK))
        apart = (last - begin) / count if end and count else self._sync_s
        return [begin + number * apart for number in range(1, count if end else count + 1)]

    def _live(self, status: Status, t: float, before: float, memory: str, *, silent: bool = False) -> Live:
        spec = self._spec(t)
        able = next((one for one in status.conditions if one.type == ABLE), None)
        failed = able is not None and able.status == "False"
        stood = failed or (able is not None and able.reason == NO_NUMBER)
        asked = status.current if stood or status.desired is None else status.desired
        current = asked if silent else status.current
        seen = possible(spec, status, may_exist(self._existing, before, t, min(CROSSING_S, self._sync_s)))
        sync = Sync(
            at=t,
            spec=spec,
            current=current,
            desired=asked,
            proposed=None,
            seen=seen,
            scaled_at=t if current != asked else None,
        )
        return Live(sync, silent, memory, _unread(sync, failed, seen), self._ready(t))

    def _spec(self, t: float) -> HpaSpec:
        """The HPA's spec at ``t``."""
        item = self._states[max(0, bisect_right(self._times, t) - 1)].object
        key = str(item["spec"])
        if key not in self._specs:
            self._specs[key] = hpa.parse(item, f"HPA {item['metadata'].get('name')}")
        return self._specs[key]

    def _ready(self, t: float) -> int:
        """The pods of the target that are ready at ``t``."""
        place = bisect_right(self._target_times, t) - 1
        return int((self._target[place].object.get("status") or {}).get("readyReplicas") or 0) if place >= 0 else 0


def _unread(sync: Sync, failed: bool, seen: Sequence[Seen]) -> str:
    """Why a sync can't be decided again; "" where it can."""
    if failed:
        return "the HPA could not get or set the scale"
    if seen and all(one.observed is None for one in seen) and sync.current:
        return "the status has no total of a metric: of cpu, of memory, of a target of type Value, or over no pods"
    return ""
