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
from lab.foresee.situation import START_S
from lab.inputs import scale as scales
from lab.inputs import yaml_edit
from lab.inputs.inputs import Inputs
from lab.inputs.scale import Scale
from lab.judge.claim import BREACHED, Verdict
from lab.measure.calibration import starts
from lab.number_format import beside
from lab.record.store import Record
from lab.report.session import Advice
from lab.trial.user_files import PROFILE, UserFiles

ACCEPTED = {"reaction", "flips", "replicas wanted beyond the partitions", "replicas above the floor at the end"}
NO_CHANGE = "no change of the ScaledObject is proposed"


def advise(given: UserFiles, inputs: Inputs, breached: Collection[str], record: Record | None) -> tuple[Advice, str]:
    """What to change in the ScaledObject ``given``, and its text with that change, "" for none.

    Its trial ``breached`` these objectives. The pods' times are those of the trial's ``record``, as far as that shows them,
    else the workload's.
    """
    assert given.scaledobject is not None
    try:
        question, *others = _questions(given, inputs, record)
        found, advice = tune.searched(question, variants.CANDIDATES, os.cpu_count() or 1, others)
    except InputError as error:
        return Advice(notes=[f"{NO_CHANGE}: {error}"]), ""
    chosen = advice.chosen.variant
    if not chosen.changes:
        return Advice(notes=[f"{NO_CHANGE}: none of {len(found):,} that were simulated is worth it"]), ""
    before = yamlfile.text(given.scaledobject)
    after = yaml_edit.edited(before, question.scaled.content, chosen.scaled.content)
    worst = f"simulated at real time: {tune.worst_of(question)}"
    judged = [simulate.worst_verdicts(one) for one in (question, replace(question, scaled=chosen.scaled))]
    notes = [*map(str, advice.reasons), worst, *effects(breached, *judged)]
    return Advice(yaml_edit.difference(given.scaledobject.name, before, after), notes), after


def breached_at_real_time(given: UserFiles, inputs: Inputs, record: Record | None) -> list[str]:
    """A line for each objective of the acceptance that a simulation of ``given`` breaches at real time, with its worst number.

    Worst is over the points of the HPA's sync. Raises :class:`InputError` for files that can't be simulated.
    """
    question = _question(given, inputs, record, scales.load(scales.REAL))
    judged = simulate.worst_verdicts(question)
    found = [one for one in judged if one.verdict == BREACHED and one.objective in ACCEPTED]
    where = f"at the worst of {len(question.points_s)} points of the HPA's sync"
    return [f"{one.objective}: {_number(one)} {one.unit} {where}, wanted {one.target}" for one in found]


def effects(breached: Collection[str], given: Sequence[Verdict], changed: Sequence[Verdict]) -> list[str]:
    """A line for each objective that a simulation breached: its number as given and with the change, beside its bound.

    Another names what the trial ``breached`` and a simulation of the same file does not: there the change may not help.
    """
    short = {one.partition(",")[0]: one for one in breached}  # a trial says more of its reaction than a simulation
    unseen = sorted(set(short) - {one.objective for one in given if one.verdict == BREACHED})
    return [
        *([f"a simulation of the file as it is does not show: {', '.join(unseen)}"] if unseen else []),
        *(
            f"simulated: {one.objective}: {_number(one)} as given, {_number(other)} with the change, wanted {one.target}"
            for one, other in zip(given, changed, strict=True)
            if BREACHED in (one.verdict, other.verdict)
        ),
    ]


def _number(one: Verdict) -> str:
    return "no data" if one.measured is None else beside(one.measured, one.bound)


def _questions(given: UserFiles, inputs: Inputs, record: Record | None) -> list[Question]:
    """What ``tune`` would be asked with these files, and the same at the trial's scale. Raises :class:`InputError` like it."""
    real = scales.load(scales.REAL)
    return [_question(given, inputs, record, one) for one in dict.fromkeys((real, inputs.scale))]


def _question(given: UserFiles, inputs: Inputs, record: Record | None, scale: Scale) -> Question:
    parser = Flags("elastic-lab accept", None, environment=False)
    situation.add_flags(parser)
    words = [f"--scaledobject={given.scaledobject}", f"--profile={given.profile or paths.PROFILES / f'{PROFILE}.yaml'}"]
    rate = [f"--pod-rate={inputs.workload.rate}", f"--partitions={inputs.partitions}"]
    words += [f"--scale={scale.name}"]
    words += [f"--name={given.named}"] if given.named else []
    words += [f"--workload={given.workload}"] if given.workload else rate
    try:
        if record is not None:
            return situation.read(parser.parse_args([*words, f"--calibrate={record.folder}"]))
    except InputError:  # one trial seldom shows all that a calibration needs
        pass
    return situation.read(parser.parse_args([*words, f"--start-s={_start_s(inputs, record, scale)}"]))


def _start_s(inputs: Inputs, record: Record | None, scale: Scale) -> float:
    """The start of a pod at ``scale``, s: what is declared is divided by it, the rest is as the trial's ``record`` shows it."""
    work = inputs.workload
    own = 0.0 if scale.name == scales.REAL else START_S
    try:
        if record is not None:
            own = max(0.0, starts(record)[0] - work.start_at(inputs.scale.time))
    except NoData:
        pass
    return own + work.start_at(scale.time)
