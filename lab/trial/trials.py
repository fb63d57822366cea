"""Trials of one session: equal inputs run once, are read from stored records, or are gone on with; repeated, and in duets.

A session of ``repeat`` runs each trial in so many blocks. The traffic's seed differs from block to block, and the order within
a block is drawn by ``order``: what drifts, and what one trial leaves to the next, hits all plans alike.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from lab.errors import InputError, NoData
from lab.inputs import duet, inputs
from lab.inputs import scale as scales
from lab.inputs.faults import Faults, Injection
from lab.inputs.inputs import Inputs
from lab.inputs.manifests import COMMITTED, Library
from lab.inputs.scale import Scale
from lab.inputs.variant import Variant
from lab.inputs.workload import Workload
from lab.judge.measure import Runs
from lab.record import store
from lab.record.store import Record
from lab.record.trial import Turn

log = logging.getLogger("lab.trial")

Plan = Mapping[str, Any]
Execute = Callable[[Sequence[Inputs], Turn], Sequence[Record]]  # of a trial, or of the two sides of a duet
Sides = tuple[Inputs, Inputs]
Carry = Callable[[Inputs, Inputs], Sides]


def _refuse(error: InputError) -> NoReturn:
    raise error


def _carry(a: Inputs, b: Inputs) -> tuple[Inputs, Inputs]:
    return duet.carried(a, b, os.cpu_count() or 1)


@dataclass
class Trials:
    """Runs trials by name, looked up in ``library``; ``execute`` makes or finds the records of checked inputs.

    ``refuse`` is called with the error of inputs that can't be used, and must not return; by default it raises the error.
    ``repeat`` is the number of blocks, ``order`` the seed of their order. ``carry`` makes a duet's sides, at a rate that this
    machine carries. ``faults``, a plan or a list, are those of each trial whose own plan names none. ``done`` has each record
    by the id of its inputs, ``asked`` the ids of all that was asked for so far.
    """

    scale: Scale
    runtime: str
    execute: Execute
    repeat: int = 1
    library: Library = COMMITTED
    refuse: Callable[[InputError], NoReturn] = _refuse
    order: int = 1
    carry: Carry = _carry
    faults: Faults | Sequence[Injection] | None = None
    done: dict[str, Record] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    def run(
        self, profile: str | Path, policy: str | Path | Variant, workload: Workload | None = None, seed: int = 1, **how: Any
    ) -> Runs[Record]:
        """The runs of this trial, one of each block; each is executed at most once a session.

        A path is a user's file. ``how`` is that of :func:`lab.inputs.inputs.read`. Its ``scale`` names the most compressed
        scale at which the trial shows what it is for; a session at a slower one runs it at its own.
        """
        plan = {"profile": profile, "policy": policy, "workload": workload, "seed": seed} | how
        return self.blocks({"": plan})[""]

    def blocks(self, plans: Mapping[str, Plan]) -> dict[str, Runs[Record]]:
        """The records of every plan, which is what :meth:`run` takes, one from each block; a block is a run of all plans."""
        chosen = {name: [self._read(block, **plan) for block in self._blocks] for name, plan in plans.items()}
        self.asked.update(one.id for each in chosen.values() for one in each)
        found: dict[str, list[Record]] = {name: [] for name in plans}
        for block in self._blocks:
            for place, name in enumerate(self._shuffled(plans, block), 1):
                turn = Turn(self.order, block, place, len(plans))
                found[name] += self._records([chosen[name][block - 1]], turn)
        return {name: Runs(records) for name, records in found.items()}

    def duet(self, a: Plan, b: Plan) -> tuple[Runs[Record], Runs[Record]]:
        """The records of two sides that are run beside each other on one topic, one pair from each block.

        ``a`` and ``b`` are what :meth:`run` takes, and may be the same (A/A). The side that is put up first swaps from block to
        block. A rate that this machine does not carry twice is halved, and the records say so.
        """
        return self.duets({"": (a, b)})[""]

    def duets(self, pairs: Mapping[str, tuple[Plan, Plan]]) -> dict[str, tuple[Runs[Record], Runs[Record]]]:
        """The records of the two sides of every pair, like :meth:`duet`; a block is a duet of each pair, in an order drawn.

        All run at the lowest of their rates, so that an A/A duet shows the noise of the duet that it stands beside.
        """
        chosen = self._at_one_rate(
            {
                name: [(self._read(block, **a), self._read(block, **b)) for block in self._blocks]
                for name, (a, b) in pairs.items()
            }
        )
        self.asked.update(one.id for each in chosen.values() for sides in each for one in sides)
        found: dict[str, list[Sequence[Record]]] = {name: [] for name in pairs}
        for block in self._blocks:
            for place, name in enumerate(self._shuffled(pairs, block), 1):
                one, other = chosen[name][block - 1]
                turn, swapped = Turn(self.order, block, place, len(pairs)), block % 2 == 0
                records = self._records([other, one] if swapped else [one, other], turn)
                found[name].append(records[::-1] if swapped else records)
        return {name: (Runs(one for one, _ in each), Runs(other for _, other in each)) for name, each in found.items()}

    def _at_one_rate(self, pairs: Mapping[str, Sequence[Sides]]) -> dict[str, list[Sides]]:
        """The sides of every pair at the highest rate at which this machine carries each; blocks of a pair cost the same."""
        try:
            carried = [self.carry(*blocks[0])[0] for blocks in pairs.values()]
            rate = min(one.side.rate for one in carried if one.side)
            return {name: [duet.sides(*sides, rate) for sides in blocks] for name, blocks in pairs.items()}
        except InputError as error:
            self.refuse(error)

    @property
    def _blocks(self) -> range:
        return range(1, self.repeat + 1)

    def _shuffled(self, plans: Mapping[str, Any], block: int) -> list[str]:
        """The plans in the order of their turn."""
        names = list(plans)
        random.Random(f"{self.order} {block} {names}").shuffle(names)
        return names

    def _read(
        self,
        block: int,
        profile: str | Path,
        policy: str | Path | Variant,
        workload: Workload | None = None,
        seed: int = 1,
        scale: str = "",
        **how: Any,
    ) -> Inputs:
        """The inputs of a plan in ``block``; those of the first block are the plan's own."""
        how = {"library": self.library, "repetition": block, "faults": self.faults, **how}
        if isinstance(plan := how["faults"], Faults):
            how["faults"] = replace(plan, seed=plan.seed + block - 1)
        work = workload or Workload()
        try:
            return inputs.read(profile, policy, work, seed + block - 1, self._at(scale), self.runtime, **how)
        except InputError as error:
            self.refuse(error)

    def _at(self, name: str) -> Scale:
        """The slower of the session's scale and the one called ``name``, with the HPA's sync that the session has."""
        named = replace(scales.load(name), sync_s=self.scale.sync_s) if name else self.scale
        return min(self.scale, named, key=lambda one: one.time)

    def _records(self, sides: Sequence[Inputs], turn: Turn) -> list[Record]:
        """The records of a trial, or of the sides of a duet, which are executed together unless this session has them."""
        if any(one.id not in self.done for one in sides):
            records = self.execute(sides, turn)
            self.done |= {one.id: record for one, record in zip(sides, records, strict=True)}
        return [self.done[one.id] for one in sides]


def stored(folder: Path, settle: Callable[[Record], None] | None = None) -> Execute:
    """A function that finds the records of inputs among those stored under ``folder``, and executes nothing.

    ``settle`` is called with each record that is found, and raises when its ledger settles otherwise now; a record without a
    ledger to settle is logged. The function raises :class:`InputError` like :func:`lab.record.store.find`.
    """

    def find(sides: Sequence[Inputs], turn: Turn) -> list[Record]:
        found = [store.find(folder, one.id) for one in sides]
        if settle is not None:
            for record in found:
                try:
                    settle(record)
                except NoData as nothing:
                    log.warning("%s: not settled again: %s", record.id, nothing)
        return found

    return find


def stored_rate(folder: Path) -> Carry:
    """A function that makes the sides of a duet at the rate of those that are stored under ``folder``: another machine's."""

    def carry(a: Inputs, b: Inputs) -> tuple[Inputs, Inputs]:
        pairs = [duet.sides(a, b, rate) for rate in duet.RATES]
        return next((pair for pair in pairs if all(store.attempts(folder, one.id) for one in pair)), pairs[0])

    return carry


def resumed(results: Path, execute: Execute, invalid: Callable[[Sequence[Record]], str] = lambda records: "") -> Execute:
    """A function that executes only what has no finished record under ``results``; it takes the others as they are.

    Records for which ``invalid`` gives a reason are executed again: the machine that disturbed the session before may be quiet.
    """

    def find(sides: Sequence[Inputs], turn: Turn) -> Sequence[Record]:
        found = store.whole(results, [one.id for one in sides])
        if found is None:
            return execute(sides, turn)
        names = " and ".join(record.folder.name for record in found)
        if why := invalid(found):
            log.warning("%s: invalid in the session before, and run again: %s", names, why)
            return execute(sides, turn)
        log.info("%s: finished before, and taken as it is", names)
        return found

    return find


def retried(execute: Execute, invalid: Callable[[Sequence[Record]], str]) -> Execute:
    """``execute``, and once more where ``invalid`` gives a reason for its records; the second records are returned."""

    def execute_twice(sides: Sequence[Inputs], turn: Turn) -> Sequence[Record]:
        records = execute(sides, turn)
        if why := invalid(records):
            log.warning("invalid, and run once more: %s", why)
            records = execute(sides, turn)
        return records

    return execute_twice
