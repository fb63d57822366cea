"""Dead letters: whether exactly those messages were given up whose failure was injected."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import yaml

from lab.errors import NoData
from lab.measure.integrity import integrity
from lab.record.store import Record
from lab.spec.backoff import Backoff
from lab.spec.failures import Failures, Place

NAMED = 20  # messages named of each kind; totals count all


@dataclass(frozen=True)
class DeadLetters:
    """Counts of messages; ``again`` are letters beyond the first about one, ``unreasoned`` letters whose headers are wrong.

    ``injected`` is computed from what was produced and the trial's inputs alone, so ``missing`` (injected, no letter) and
    ``surplus`` (a letter, not injected) compare two sources. ``both`` are processed and dead. ``unaccounted`` is what was
    produced and is neither. ``transient`` messages were to fail at first; ``recovered`` counts how often one succeeded in a
    retry, which is more where a message was processed twice.
    """

    produced: int
    processed: int
    dead: int
    unaccounted: int
    injected: int
    missing: int
    surplus: int
    both: int
    again: int
    stray: int
    unreasoned: int
    transient: int
    recovered: int
    named: tuple[str, ...]


def injected(record: Record) -> Failures:
    """What the trial's inputs say is to fail."""
    workload = record.inputs.workload
    return Failures(
        seed=record.inputs.seed,
        fail_rate=workload.fail_rate,
        poison_rate=workload.poison_rate,
        poison=Place.parse(workload.poison),
        retries=retries(record),
    )


def retries(record: Record) -> int:
    """How often a message is tried again."""
    return len(Backoff.parse(record.inputs.workload.retry_ms).delays_ms)


def topic(record: Record) -> str:
    """The trial's topic, as it was applied. Raises :class:`NoData` when the record does not hold that."""
    file = record.folder / "inputs" / "configmap-trial.yaml"
    if not file.exists():
        raise NoData(f"{record.folder.name} has no {file.name}")
    return str(yaml.safe_load(file.read_text())["data"]["TOPIC"])


def dead_letters(record: Record) -> DeadLetters:
    """Compare the dead-letter topic with what was injected. Raises :class:`NoData` when the trial had none, or no ledger."""
    whole, ledger, letters = integrity(record), record.reconciliation, record.dead_letters
    produced, failures = record.produced, injected(record)
    seqs = produced["seq"].to_numpy(dtype="uint64")
    never = failures.never(produced["partition"].to_numpy(), produced["offset"].to_numpy(), seqs)
    transient = (failures.transient(seqs) > 0) & ~never
    wanted = _places(produced[never])
    found = _places(letters)
    missing, surplus = sorted(wanted - found), sorted(found - wanted)
    about = letters.merge(produced, how="left", on=["partition", "offset"], suffixes=("", "_there"))
    wrong = (letters["attempts"] != failures.retries + 1) | (letters["error"] == "")
    wrong |= letters["topic"] != topic(record)
    wrong |= (letters["first_failure"] > letters["failed"]) | (about["seq"] != about["seq_there"])
    return DeadLetters(
        produced=whole.produced,
        processed=whole.processed,
        dead=whole.dead,
        unaccounted=whole.produced - whole.processed - whole.dead,
        injected=len(wanted),
        missing=len(missing),
        surplus=len(surplus),
        both=whole.both,
        again=int(ledger["buried_again"]),
        stray=int(ledger["stray_letters"]),
        unreasoned=int(wrong.sum()),
        transient=int(transient.sum()),
        recovered=int((record.group_events["event"] == "recovered").sum()),
        named=(*_named("injected, but no dead letter", missing), *_named("a dead letter, but not injected", surplus)),
    )


def _places(rows: pd.DataFrame) -> set[tuple[int, int]]:
    """(partition, offset) of each row."""
    return set(zip(rows["partition"].tolist(), rows["offset"].tolist(), strict=True))


def _named(what: str, places: list[tuple[int, int]]) -> list[str]:
    return [f"{what}: partition {partition}, offset {offset}" for partition, offset in places[:NAMED]]
