"""Dead letters: whether exactly those messages were given up whose failure was injected."""

from __future__ import annotations

import pandas as pd
import yaml

from lab.errors import NoData
from lab.inputs.failures import Backoff, Failures, Place
from lab.inputs.topics import numbering
from lab.judge.measure import Measure, measure, number
from lab.measure.delivery import delivery
from lab.record.store import Record


class DeadLetters(Measure):
    """The dead-letter topic beside the injected failures, which are computed from the trial's inputs and the produced messages.

    A message is dead when there is a letter about it.
    """

    dead = number("messages", "dead letters")
    unaccounted = number("messages", "messages produced, but neither processed nor dead")
    injected = number("messages", "messages injected to fail for ever")
    without_letter = number("messages", "messages injected to fail for ever that are no dead letter")
    surplus = number("messages", "dead letters that were not injected")
    both = number("messages", "messages processed and dead")
    again = number("letters", "further dead letters about the same message")
    stray = number("letters", "dead letters about no message of the trial")
    unreasoned = number("letters", "dead letters without a right reason")
    attempts = number("attempts", "most attempts at a dead letter")


@measure
def dead_letters(record: Record) -> DeadLetters:
    """Compare the dead-letter topic with what was injected; no data when the trial had no such topic, or no ledger."""
    whole, ledger, letters = delivery(record), record.reconciliation, record.dead_letters
    produced, workload = record.produced, record.inputs.workload
    failures = Failures(
        seed=record.inputs.seed,
        fail_rate=workload.fail_rate,
        poison_rate=workload.poison_rate,
        poison=Place.parse(workload.poison),
        retries=len(Backoff.parse(workload.retry_ms).delays_ms),
    )
    seqs = produced["seq"].to_numpy(dtype="uint64")
    never = failures.never(produced["partition"].to_numpy(), produced["offset"].to_numpy(), seqs)
    wanted = _places(produced[never])
    found = _places(letters)
    about = letters.merge(produced, how="left", on=["partition", "offset"], suffixes=("", "_there"))
    wrong = letters["attempts"] != failures.retries + 1
    wrong |= letters["error"] == ""
    file = record.folder / "inputs" / "configmap-trial.yaml"
    if not file.exists():
        raise NoData(f"{record.folder.name} has no {file.name}")
    on = numbering(yaml.safe_load(file.read_text())["data"])
    theirs = [on.place(number)[0] for number in letters["partition"].tolist()]
    wrong |= letters["topic"] != pd.Series(theirs, index=letters.index, dtype=object)
    wrong |= letters["first_failure"] > letters["failed"]
    wrong |= about["seq"] != about["seq_there"]
    return DeadLetters(
        dead=int(whole.dead),
        unaccounted=int(whole.stored - whole.processed - whole.dead),
        injected=len(wanted),
        without_letter=len(wanted - found),
        surplus=len(found - wanted),
        both=int(whole.both),
        again=ledger.buried_again,
        stray=ledger.stray_letters,
        unreasoned=int(wrong.sum()),
        attempts=None if letters.empty else int(letters["attempts"].max()),
    )


def _places(rows: pd.DataFrame) -> set[tuple[int, int]]:
    """(partition, offset) of each row."""
    return set(zip(rows["partition"].tolist(), rows["offset"].tolist(), strict=True))
