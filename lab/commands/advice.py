"""What to change in a ScaledObject that was not accepted: from ``tune``'s search, as a diff of the user's own file."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace

from lab import paths, yamlfile
from lab.commands import simulate, situation, tune
from lab.commands.situation import Question
from lab.errors import InputError, NoData
from lab.flags import Flags
from lab.foresee import variants
from lab.foresee.choice import Outcome, recommend, shortlist
from lab.foresee.variants import Variant
from lab.inputs import yaml_edit
from lab.inputs.inputs import Inputs
from lab.inputs.scaledobject import ScaledObject
from lab.judge.claim import BREACHED, Verdict
from lab.measure.calibration import starts
from lab.number_format import beside, number
from lab.record.store import Record
from lab.report.session import Advice
from lab.report.verdict_text import SIGNS
from lab.trial.user_files import PROFILE, UserFiles

NO_CHANGE = "no change of the ScaledObject is proposed"


def advise(given: UserFiles, inputs: Inputs, breached: Collection[str], record: Record | None) -> tuple[Advice, str]:
    """What to change in the ScaledObject ``given``, and its text with that change, "" for none.

    Its trial ``breached`` these objectives. The pods' times are those of the trial's ``record``, as far as that shows them,
    else the workload's.
    """
    assert given.scaledobject is not None
    try:
        question = _question(given, inputs, record)
        found = tune.simulated(question, variants.CANDIDATES, os.cpu_count() or 1)
        chosen, reasons = _choice(question, found)
    except InputError as error:
        return Advice(notes=[f"{NO_CHANGE}: {error}"]), ""
    if not chosen.changes:
        return Advice(notes=[f"{NO_CHANGE}: none of {len(found):,} that were simulated is worth it"]), ""
    before = yamlfile.text(given.scaledobject)
    after = yaml_edit.edited(before, question.scaled.content, chosen.scaled.content)
    notes = [*reasons, *effects(breached, _verdicts(question, question.scaled), _verdicts(question, chosen.scaled))]
    return Advice(yaml_edit.difference(given.scaledobject.name, before, after), notes), after


def effects(breached: Collection[str], given: Sequence[Verdict], changed: Sequence[Verdict]) -> list[str]:
    """A line for each objective that a simulation breached: its number as given and with the change, beside its bound.

    Another names what the trial ``breached`` and a simulation of the same file does not: there the change may not help.
    """
    unseen = sorted(set(breached) - {one.objective for one in given if one.verdict == BREACHED})
    return [
        *([f"a simulation of the file as it is does not show: {', '.join(unseen)}"] if unseen else []),
        *(
            f"simulated: {one.objective}: {_number(one)} as given, {_number(other)} with the change, "
            f"wanted {SIGNS.get(one.operator, one.operator)} {number(one.bound)} {one.unit}"
            for one, other in zip(given, changed, strict=True)
            if BREACHED in (one.verdict, other.verdict)
        ),
    ]


def _number(one: Verdict) -> str:
    return "no data" if one.measured is None else beside(one.measured, one.bound)


def _choice(question: Question, found: Sequence[Outcome]) -> tuple[Variant, list[str]]:
    """The recommended variant, or where a simulation of it breaches anything the next that doesn't; and why, a line a field."""
    advice = recommend(question.situation, question.scaled, found, question.objective_s)
    chosen, partitions = advice.chosen.variant, len(question.situation.shares)
    capped = variants.with_changes(question.scaled, {**chosen.changes, variants.MOST: partitions})
    others = sorted([capped, *shortlist(found)], key=lambda one: len(one.changes))
    held = next((one for one in (chosen, *others) if not _breached(question, one)), chosen)
    if held is chosen:
        return chosen, [str(reason) for reason in advice.reasons]
    before = variants.in_force(question.scaled)
    values = ((field, before[field], value) for field, value in held.changes.items())
    return held, [f"{field} {variants.text_of(old)} -> {variants.text_of(new)}" for field, old, new in values]


def _breached(question: Question, one: Variant) -> bool:
    return any(verdict.verdict == BREACHED for verdict in _verdicts(question, one.scaled))


def _verdicts(question: Question, scaled: ScaledObject) -> list[Verdict]:
    """The verdicts of a simulation of ``scaled`` in the situation of ``question``."""
    asked = replace(question, scaled=scaled)
    return simulate.verdicts(asked, simulate.forecast(asked, asked.simulated()))


def _question(given: UserFiles, inputs: Inputs, record: Record | None) -> Question:
    """The question that ``elastic-lab tune`` would be asked with these files. Raises :class:`InputError` like it."""
    parser = Flags("elastic-lab accept", None, environment=False)
    situation.add_flags(parser)
    words = [f"--scaledobject={given.scaledobject}", f"--profile={given.profile or paths.PROFILES / f'{PROFILE}.yaml'}"]
    rate = [f"--pod-rate={inputs.workload.rate}", f"--partitions={inputs.partitions}"]
    words += [f"--name={given.named}"] if given.named else []
    words += [f"--workload={given.workload}"] if given.workload else rate
    try:
        if record is not None:
            return situation.read(parser.parse_args([*words, f"--calibrate={record.folder}"]))
    except InputError:  # one trial seldom shows all that a calibration needs
        pass
    return situation.read(parser.parse_args([*words, f"--start-s={_start_s(inputs, record)}"]))


def _start_s(inputs: Inputs, record: Record | None) -> float:
    try:
        return starts(record)[0] if record is not None else inputs.workload.start_s
    except NoData:
        return inputs.workload.start_s
