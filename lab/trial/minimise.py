"""The fewest faults of a trial's schedule that break it: the schedule is halved, and the trial run again with parts of it.

This is delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002). :func:`halve` is
pure, :func:`minimised` runs the trials.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Generic, TypeVar

from confluent_kafka import KafkaException
from kubernetes.client.exceptions import ApiException

from lab.errors import LabFault
from lab.inputs.faults import Injection
from lab.inputs.inputs import Inputs
from lab.number_format import duration
from lab.record.store import Record, write_json
from lab.record.trial import Turn
from lab.trial.closing import reason
from lab.trial.trials import Execute

log = logging.getLogger("lab.trial")

T = TypeVar("T")
ENDS_ONE = (LabFault, ApiException, KafkaException, OSError)  # run of a part alone: that of all faults is to be judged
Part = tuple[int, ...]  # places in the list


@dataclass(frozen=True)
class Halved(Generic[T]):
    """What is ``left`` of a list that fails: it fails too. So many ``runs`` were made.

    ``minimal``: it passes without any one of what is left. It is not known where there were too few runs.
    """

    left: tuple[T, ...]
    runs: int
    minimal: bool


class _Spent(Exception):
    """There are no more runs."""


def halve(whole: Sequence[T], fails: Callable[[tuple[T, ...]], bool], most: int) -> Halved[T]:
    """Leave of ``whole``, which fails, what still ``fails`` and passes without any one of it, in ``most`` runs.

    ``fails`` is asked of no part twice, and first of none of it: what fails by itself needs no cause. The order stays.
    """
    known: dict[Part, bool] = {}

    def does(part: Part) -> bool:
        if part not in known:
            if len(known) == most:
                raise _Spent
            known[part] = fails(tuple(whole[place] for place in part))
        return known[part]

    left, parts = tuple(range(len(whole))), 2
    try:
        if does(()):
            return Halved((), len(known), minimal=True)
        while len(left) > 1:
            split = _split(left, min(parts, len(left)))
            others = [tuple(place for place in left if place not in one) for one in split]
            if (found := next(filter(does, split), None)) is not None:
                left, parts = found, 2
            elif (found := next(filter(does, others), None)) is not None:
                left, parts = found, max(2, parts - 1)
            elif parts >= len(left):
                break
            else:
                parts *= 2
    except _Spent:
        return Halved(tuple(whole[place] for place in left), len(known), minimal=False)
    return Halved(tuple(whole[place] for place in left), len(known), minimal=True)


def _split(part: Part, count: int) -> list[Part]:
    """``part`` in ``count`` parts of nearly one length, none of them empty."""
    ends = [len(part) * n // count for n in range(count + 1)]
    return [part[begin:end] for begin, end in pairwise(ends)]


def minimised(execute: Execute, breaches: Callable[[Record], Collection[str] | None], folder: Path, most: int) -> Execute:
    """``execute``, and of faults that break their trial the fewest that do, in a file in ``folder`` for ``--replay-faults``.

    ``breaches`` names what a record breaks, and returns None where that is not known. A part of the faults fails if it breaks
    something of that too, and a trial without a fault if it breaks anything. A run that is broken, or of which nothing is
    known, blames no fault and clears none: the log counts it. The trial is run again ``most`` times at most. The record of all
    faults is returned.
    """

    def execute_and_halve(sides: Sequence[Inputs], turn: Turn) -> Sequence[Record]:
        records = execute(sides, turn)
        whole = sides[0]
        if not whole.faults or not (wanted := frozenset(breaches(records[0]) or ())):
            return records
        file, began, runs, unjudged = folder / f"faults-{whole.id}.json", time.monotonic(), 0, 0

        def fails(part: tuple[Injection, ...]) -> bool:
            nonlocal runs, unjudged
            named = f"{len(part)} of the {len(whole.faults)} faults of trial {whole.id}"
            try:
                (record,) = execute([replace(whole, faults=part, faults_from=named)], turn)
                breaks, why = breaches(record), "what they break is not known"
            except ENDS_ONE as error:
                breaks, why = None, f"no verdict: {reason(error)}"
            found = frozenset(breaks or ())
            failed = bool(found & wanted if part else found)
            runs, unjudged = runs + 1, unjudged + (breaks is None)
            to_go_s = (time.monotonic() - began) / runs * (most - runs)
            said = why if breaks is None else f"break {'; '.join(sorted(found)) or 'nothing'}"
            log.info("run %d of at most %d: %s: %s; at most %s to go", runs, most, named, said, duration(to_go_s))
            if failed and part:
                write_json(file, [asdict(one) for one in part])
            return failed

        log.info("%s breaks %s: its faults are halved", whole.id, "; ".join(sorted(wanted)))
        write_json(file, [asdict(one) for one in whole.faults])
        found = halve(whole.faults, fails, most)
        if not found.left:
            file.unlink()
            log.warning("%s breaks without a fault, too", whole.id)
        else:
            how = "and it passes without any one of them" if found.minimal else f"no fewer were found in {most} runs"
            if unjudged:  # each may have broken as well
                how = f"no fewer were found: {unjudged} of {runs} runs could not be judged"
            log.warning("%s breaks by %d of its %d faults, %s: %s", whole.id, len(found.left), len(whole.faults), how, file)
        return records

    return execute_and_halve
