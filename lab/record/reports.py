"""What the programs of a trial reported of themselves: their reports, and who was given which partitions."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import pandas as pd

GIVEN, TAKEN, STARTED = "assigned", ("revoked", "lost"), "started"


class Report(NamedTuple):
    """An event that ``pod`` reported at ``t`` (epoch s): its ``partitions``, and what only events of its name say.

    It was over then, and had taken ``seconds``: 0 where the report does not say.
    """

    t: float
    pod: str
    event: str
    partitions: tuple[int, ...]
    detail: dict[str, Any]
    seconds: float = 0.0


def reports(events: pd.DataFrame, names: Iterable[str]) -> list[Report]:
    """The reports of these ``names``, in the order of the table ``events``."""
    chosen = events.loc[events["event"].isin(list(names)), ["t", "pod", "event", "partitions", "detail", "seconds"]]
    seconds = chosen.pop("seconds").astype(float).fillna(0.0).tolist()
    rows = zip(chosen.itertuples(index=False, name=None), seconds, strict=True)
    return [
        Report(float(t), str(pod), str(event), tuple(map(int, () if parts is None else parts)), json.loads(text), took)
        for (t, pod, event, parts, text), took in rows
    ]


def handovers(events: pd.DataFrame) -> list[Report]:
    """The reports of a member that was assigned partitions or gave some up, by time; one may be assigned none."""
    found = reports(events.sort_values("t", kind="stable"), [GIVEN, *TAKEN])
    return [change for change in found if change.event == GIVEN or change.partitions]


def owners(changes: Iterable[Report], starts: Iterable[Report], at: float) -> dict[str, frozenset[int]]:
    """The partitions that each pod owned at ``at`` (epoch s) by its own handovers; of a pod that died, those it had then.

    A container that ``starts`` anew owns nothing yet. Both are in order of time.
    """
    owned: dict[str, frozenset[int]] = {}
    for change in heapq.merge(starts, changes, key=lambda one: one.t):
        if change.t > at:
            break
        held = owned.get(change.pod, frozenset())
        if change.event == GIVEN:
            owned[change.pod] = held | set(change.partitions)
        elif change.event != STARTED:
            owned[change.pod] = held - set(change.partitions)
        elif change.pod in owned:  # a program without any handover is no member
            owned[change.pod] = frozenset()
    return owned


class Commit(NamedTuple):
    """The group was seen at ``t`` (epoch s) to have committed ``offset`` in ``partition``, whose log ended at ``end`` then.

    ``look`` counts the observer's questions (:mod:`lab.programs.observer`).
    """

    t: float
    look: int
    partition: int
    offset: int
    end: int


def commits(events: pd.DataFrame) -> list[Commit]:
    """What an observer saw the group commit, in order of time; none where nobody looked."""
    return [
        Commit(one.t, int(one.detail["look"]), int(number), int(offset), int(one.detail["ends"][number]))
        for one in reports(events.sort_values("t", kind="stable"), ["committed"])
        for number, offset in one.detail["offsets"].items()
    ]
