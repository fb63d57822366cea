"""The checker is checked: whatever a seed corrupts of a real record is found, or changes no number beyond its resolution.

A corruption is made twice. *At rest* it changes a file of the sealed record, which is then refused. *Before the seal* it is in
what was recorded: the ledger is settled with it and the record sealed, so that only what the record says twice can tell.

It is harmless where no verdict tells it and every number stays within its resolution. That of a time is the longest gap between
scrapes that the gate ``scrape_gap`` allows, that of a lag what it changes in such a gap, and that of all else a hundredth.
"""

import json
import logging
import shutil
from collections import Counter
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from random import Random
from statistics import median

import pyarrow as pa
import pytest
from hypothesis import settings

from lab.errors import InputError, LabFault
from lab.judge.claim import HELD, judge
from lab.judge.gates import GATES
from lab.measure.delivery import DELIVERED, delivery, unaccounted
from lab.measure.overview import numbers
from lab.measure.progress import uncommitted
from lab.measure.validity import judge_validity
from lab.record import seal, store
from lab.record.ledger import reconcile
from lab.record.ledger.fold import COLUMNS, ends_of, fold, merge
from tests.records import FOLDER
from tests.records.corruption import KINDS, TABLES, Parts
from tests.thoroughness import DEFAULT

log = logging.getLogger("corruption")
RECORD = "plateau-lag-4500-820331f3"  # of a group that drained; it has every table that is corrupted
HARMLESS, MISSED = "harmless", "missed"
COUNTED = ("drop", "double", "checksum")  # what these do to events and receipts is never harmless: the ledger counts each
# Of 1,000 these are not found. The pod that processed a message is told once: nothing contradicts another one on its receipt.
# A gap of two scrapes, which the gate allows, moves the end of a lag and with it a mean rate by more than a hundredth.
KNOWN = {"swap": {86}, "samples": {49, 69}}
SCRAPES = next(int(gate.bound) for gate in GATES if gate.name == "scrape_gap")


def seeds():
    """Of each of the eight kinds: 1,000 in all every night, 40 in every ``tox``."""
    return range(5 if settings().max_examples <= DEFAULT else 125)


def settled(parts):
    """What the ledger says of the events and the receipts."""
    table = pa.Table.from_pandas(parts.events[list(COLUMNS)].astype("int64"), preserve_index=False).combine_chunks()
    folded = merge(pa.Table.from_batches(list(fold(table.to_batches(), ends_of(parts.receipts)))))
    return reconcile.check(folded, parts.receipts)


def verdicts(record):
    """The verdicts on a record: both invariants of delivery, and each gate, by name."""
    invariants = {"delivery": unaccounted(record) == 0, "committed": uncommitted(record) == 0}
    found = {name: judge(comparison, DELIVERED, kind="invariant").verdict for name, comparison in invariants.items()}
    return found | {gate.name: one.verdict for gate, one in zip(GATES, judge_validity(record), strict=True)}


@dataclass(frozen=True)
class Corrupted:
    """What was done to a part of the record, in words, and what found it: HARMLESS or MISSED where nothing did."""

    kind: str
    seed: int
    part: str
    what: str
    found: str


class Whole:
    """The record RECORD with the checksums that a small record goes without, sealed anew in ``folder``."""

    def __init__(self, folder):
        self.folder, small = folder / RECORD, store.opened(FOLDER / "records" / RECORD)
        shutil.copytree(small.folder, self.folder)
        events = small.events(*COLUMNS[:-1]).sort_values(["partition", "offset"], ignore_index=True)
        events["crc"] = events["seq"] * 2_654_435_761 % 2**32
        upto = events.set_index(["partition", "offset"])["crc"].groupby("partition").cumsum().to_dict()
        places = small.receipts[["partition", "first", "last"]].itertuples(index=False, name=None)
        sums = [upto[number, last] - upto.get((number, first - 1), 0) for number, first, last in places]
        self.parts = Parts(events, small.receipts.assign(checksum=sums), small.group_events, small.samples, small.trial)
        self.ledger = settled(self.parts)
        self._write(self.parts, self.folder, TABLES)
        self._seal(self.parts, self.folder)
        self.record = store.opened(self.folder)
        self.parts = replace(self.parts, trial=self.record.trial)
        self.verdicts, self.numbers = verdicts(self.record), numbers(self.record)
        scrape_s = median(later - t for t, later in pairwise(self.parts.scrapes))
        lag = self.record.lag["lag"]
        self._allowed = {"s": SCRAPES * scrape_s, "messages": float(lag.diff(SCRAPES).abs().max())}

    def corrupt(self, kind, seed, scratch):
        """Corrupt the record, look for it at rest and before the seal, and leave ``scratch`` empty."""
        part, parts, what = KINDS[kind](self.parts, Random(f"{kind} {seed}"))
        folder = scratch / "records" / RECORD
        shutil.copytree(self.folder, folder)
        self._write(parts, folder, [name for name in TABLES if getattr(parts, name) is not getattr(self.parts, name)])
        (folder / seal.FILE).write_text(json.dumps(parts.trial.to_json()))
        found = f"{MISSED} at rest"
        try:
            store.opened(folder)
        except InputError:
            found = self._found(parts, folder, scratch)
        shutil.rmtree(scratch / "records")
        return Corrupted(kind, seed, part, what, found)

    def _found(self, parts, folder, results):
        """What finds a corruption of before the seal."""
        try:
            self._seal(parts, folder)
            record = store.find(results, parts.trial.id)
        except (InputError, LabFault) as refused:
            return f"refused: {getattr(refused, 'field', 'receipts')}"
        now = verdicts(record)
        if told := [name for name, verdict in now.items() if verdict != self.verdicts[name]]:
            counted = told[0] == "delivery" and not delivery(record).why
            words = [one.partition(" ")[2] for one in delivery(record).named[:1]] if counted else []
            return ", ".join([f"{told[0]} {now[told[0]]}", *words])
        measured = numbers(record)
        if gone := [name for name, one in self.numbers.items() if one.value is not None and measured[name].value is None]:
            return f"no data: {gone[0]}"
        beyond = [name for name in self.numbers if not self._same(name, measured[name].value)]
        return f"{MISSED}: {', '.join(beyond)}" if beyond else HARMLESS

    def _same(self, name, now):
        """Whether the number ``name`` is what it was, to its resolution."""
        was, unit = self.numbers[name].value, name.rpartition("(")[2].removesuffix(")")
        if was is None or now is None or was == now:
            return was == now
        of_samples = unit == "s" or (unit == "messages" and "lag" in name)
        return abs(now - was) <= (self._allowed[unit] if of_samples else abs(was) / 100)

    def _write(self, parts, folder, names):
        for name in names:
            getattr(parts, name).to_parquet(folder / TABLES[name], index=False)

    def _seal(self, parts, folder):
        same = parts.events is self.parts.events and parts.receipts is self.parts.receipts
        store.write_json(folder / "reconciliation.json", asdict(self.ledger if same else settled(parts)))
        parts.trial.sealed(folder).write(folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The record that is corrupted."""
    return Whole(tmp_path_factory.mktemp("whole"))


def unseen(corrupted):
    """Those that are neither found nor harmless."""
    counted = [one for one in corrupted if one.kind in COUNTED and one.part in ("events", "receipts")]
    return [one for one in corrupted if one.found.startswith(MISSED) or (one.found == HARMLESS and one in counted)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_corruption_is_found_or_harmless(kind, whole, tmp_path):
    """At rest by the seal, each of them; before the seal by a verdict, by a refusal, or it changes nothing."""
    corrupted = [whole.corrupt(kind, seed, tmp_path) for seed in seeds()]
    counts = sorted(Counter((one.part, one.found) for one in corrupted).items())
    log.info("%s: %s", kind, "; ".join(f"{part} {count} x {found}" for (part, found), count in counts))
    assert {one.seed for one in unseen(corrupted)} == KNOWN.get(kind, set()) & {*seeds()}


def test_the_record_is_whole_before(whole):
    """With its checksums it gives the verdict that it was committed with, and every invariant is held."""
    said = json.loads((FOLDER / "records" / RECORD / "reconciliation.json").read_text())
    assert json.loads(json.dumps(asdict(whole.ledger))) == said
    assert [whole.verdicts[name] for name in ("delivery", "committed", "clock", "lag_sum", "scrape_gap")] == [HELD] * 5


def test_a_checker_that_does_not_look_is_seen(whole, tmp_path, monkeypatch):
    """With a ledger that says the same of everything, what is changed is found by nothing."""
    monkeypatch.setattr(reconcile, "check", lambda *_: whole.ledger)
    assert unseen([whole.corrupt("checksum", seed, tmp_path) for seed in range(3)])
