"""What followed each fault of a schedule, and the tally of many trials: by component and kind, and of their messages."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lab.errors import NoData
from lab.inputs.faults import BACK_S, CONSUMER, CUT, DAEMONS, PODS, ROOTS, SLOW_BACK_S, STORE
from lab.measure.commits import commits
from lab.measure.faults import end_of, injected, losses, ready_again, under_faults
from lab.measure.kills import Loss, buried_again, explained
from lab.model.hpa_log import FAILED
from lab.record.store import Record
from lab.record.trial import Fault

PARTS = frozenset((*DAEMONS, *PODS)) - {CONSUMER, STORE}  # what KEDA and the HPA decide by and with
MESSAGES = ("lost", "unseen", "unknown", "copies", "given_up", "unexplained")
TOTALS = ("trials", "untold", "injections", "omitted", *MESSAGES)
WORST = "standstill_s"
AWAY = ("due", "decided", "failed", "steps")  # of faults that were alone
SCALING = ("out", "in")  # the group was, as the fault struck; a tally without heads does not say it
ROW = ("injections", WORST, "copies", *SCALING, "alone", *AWAY)


@dataclass(frozen=True)
class Followed:
    """What followed a fault of ``kind`` that struck ``component``. Times are in s, None where the record does not show them.

    ``scaling`` is "out" where it struck while pods of a step up were not Ready, "in" while pods of a step down were leaving.

    Of a part of the control plane ``standstill_s`` is the longest time without a decision of the HPA that the fault fell into.
    While it was away so many syncs were ``due``, ``decided``, and ``failed`` for want of a metric, and the wanted replicas
    changed in ``steps``; ``alone``: no other part was away or starting then. Of any other component ``standstill_s`` is the
    longest time in which a message waited and nothing was processed of its partition: of those that the struck pod owned, else
    of all.
    """

    component: str
    kind: str
    standstill_s: float | None
    scaling: str = ""
    alone: bool = False
    due: float = 0.0
    decided: int = 0
    failed: int = 0
    steps: int = 0


def followed(record: Record) -> list[Followed]:
    """What followed each fault that struck, in order. Raises :class:`NoData` for a trial without a schedule."""
    struck = sorted(injected(record), key=lambda fault: fault.t)
    parts = [one for one in struck if one.component in PARTS]
    decided, failed, steps, found = list[float](), list[float](), list[float](), list[Followed]()
    produced = _produced(record)
    with suppress(NoData):  # a trial without an HPA
        decided = [one.at for one in record.hpa_syncs]
        failed = [line.t for line in record.hpa_lines if line.words == FAILED]
    with suppress(NoData):
        steps = [change.t for change in record.scalings]
    for one in struck:
        if one.component not in PARTS:
            found.append(Followed(one.component, one.fault, _standstill_s(record, one, produced), _scaling(record, one.t)))
            continue
        over = end_of(one)
        others = [other for other in parts if other is not one and other.t < over and _back(record, other) > one.t]
        gaps = [later - earlier for earlier, later in pairwise(decided) if earlier < over and later > one.t]
        found.append(
            Followed(
                component=one.component,
                kind=one.fault,
                standstill_s=max(gaps, default=None),
                scaling=_scaling(record, one.t),
                alone=not others,
                due=(over - one.t) / record.scale.hpa_sync_s,
                decided=_between(one, decided),
                failed=_between(one, failed),
                steps=_between(one, steps),
            )
        )
    return found


def _scaling(record: Record, t: float) -> str:
    """Which way the group was scaling at ``t`` (epoch s); "" for neither, and where the record does not show it."""
    with suppress(NoData):
        last = next((change for change in reversed(record.scalings) if change.t <= t), None)
        if last and last.after > last.before:
            return "out" if record.ready_at(t) < record.wanted_at(t) else ""
        leaving = (pod for pod in record.pods.values() if pod.deleted is not None and pod.deleted <= t < (pod.gone or math.inf))
        return "in" if last and any(leaving) else ""
    return ""


def _back(record: Record, one: Fault) -> float:
    """When what was struck was surely at work again, epoch s."""
    ready = ready_again(record, one)
    return end_of(one) + (SLOW_BACK_S if one.component in ROOTS else BACK_S) if ready is None else ready


def _between(one: Fault, times: Iterable[float]) -> int:
    """How many of ``times`` the fault lasts over."""
    return sum(one.t < at <= end_of(one) for at in times)


def _produced(record: Record) -> Mapping[tuple[int, int], float]:
    """When the messages were produced with which receipts begin (epoch s), by partition and offset; none without a ledger."""
    found: dict[tuple[int, int], float] = {}
    with suppress(NoData):
        firsts = record.receipts["first"].unique()
        for partitions, offsets, times in record.event_parts("partition", "offset", "ts"):  # ns
            some = np.isin(offsets, firsts)
            places = zip(partitions[some].tolist(), offsets[some].tolist(), strict=True)
            found |= dict(zip(places, (times[some] / 1e9).tolist(), strict=True))
    return found


def _standstill_s(record: Record, one: Fault, produced: Mapping[tuple[int, int], float]) -> float | None:
    """Until each partition had a receipt that began after the fault, from then on or from when its first message came.

    A partition that had no more does not count.
    """
    try:
        owned = frozenset(number for change in record.handovers if change.t <= one.t for number in change.partitions)
        if one.component == CONSUMER and one.pod is not None:
            owned = record.owners(one.t).get(one.pod, frozenset())
        receipts = record.receipts
        if one.fault == CUT:  # its own of meanwhile arrived afterwards
            receipts = receipts[(receipts["pod"] != one.pod) | (receipts["start"] > end_of(one))]
        later = receipts[receipts["partition"].isin(owned) & (receipts["start"] > one.t)]
    except NoData:
        return None
    nexts = later.sort_values("end").drop_duplicates("partition")[["partition", "first", "end"]]
    waits = [end - max(one.t, produced.get((part, first), one.t)) for part, first, end in nexts.itertuples(index=False)]
    return float(max(waits)) if waits else None


def tally(records: Iterable[Record]) -> dict[str, Any]:
    """What the schedules of ``records`` did: numbers, and in ``struck`` a row for each component and kind.

    A trial whose record does not show what became of its messages is ``untold``. A row adds what its faults have, and of
    standstills it has the worst, None where no record shows one. A copy that faults of two kinds explain counts for both.
    """
    return together(_told(record) for record in records if record.inputs.faults)


def together(tallies: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Several tallies as one."""
    totals: Counter[str] = Counter(dict.fromkeys(TOTALS, 0))
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for each in tallies:
        totals.update({name: each[name] for name in TOTALS})
        for one in each["struck"]:
            row = rows.setdefault((one["component"], one["kind"]), dict.fromkeys(ROW, 0) | {WORST: None})
            waits = [round(side[WORST], 3) for side in (row, one) if side[WORST] is not None]
            row |= {name: round(row[name] + one[name], 3) for name in ROW if name != WORST}
            row[WORST] = max(waits, default=None)
    return {**totals, "struck": [{"component": one[0], "kind": one[1], **row} for one, row in sorted(rows.items())]}


def _told(record: Record) -> dict[str, Any]:
    """The tally of one trial, with a row for each fault."""
    found, struck, copies = under_faults(record), followed(record), _copies_by_kind(record)
    known = {name: getattr(found, name).value for name in MESSAGES}
    told: dict[str, Any] = {name: int(value or 0) for name, value in known.items()}
    told |= {"trials": 1, "untold": int(None in known.values()), "injections": len(struck)}
    told["omitted"] = len(record.inputs.faults) - len(struck)
    told["struck"] = [
        {
            "component": one.component,
            "kind": one.kind,
            "injections": 1,
            WORST: one.standstill_s,
            "copies": copies.pop((one.component, one.kind), 0),
            **{way: int(one.scaling == way) for way in SCALING},
            "alone": int(one.alone),
            **{name: getattr(one, name) * one.alone for name in AWAY},
        }
        for one in struck
    ]
    return told


def _copies_by_kind(record: Record) -> dict[tuple[str, str], int]:
    """The copies that the faults of a component and kind explain by themselves; none where the record does not show them."""
    kinds = {one.t: (one.component, one.fault) for one in injected(record)}
    own: dict[tuple[str, str], list[Loss]] = {}
    try:
        for loss in losses(record):
            if loss.t in kinds:
                own.setdefault(kinds[loss.t], []).append(loss)
        seen = commits(record)
        return {kind: explained(record, some, seen).copies + buried_again(record, some) for kind, some in own.items()}
    except NoData:
        return {}
