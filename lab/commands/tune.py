"""``elastic-lab tune``: it simulates many variants of a ScaledObject, and recommends one with reasons, as YAML."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from lab import yamlfile, yamltext
from lab.commands import ending, simulate, situation
from lab.commands.situation import Question
from lab.commands.text import as_json, number, table
from lab.flags import Flags, whole
from lab.foresee import variants
from lab.foresee.choice import FIGURES, SHORT, Each, Outcome, Recommendation, instead, outcomes, recommend
from lab.foresee.variants import Variant
from lab.inputs import yaml_edit
from lab.judge.claim import BREACHED, Verdict
from lab.report.verdict_text import MARKS

CHUNK = 50  # policies in one pass: a larger pass shares more steps and takes more memory
COLUMNS = ("", "pod-minutes", "behind (s)", "oldest (s)", "flips", "most pods", "changes")
BEYOND = 4  # times the lateness of the latest marked policy: later policies are counted, not drawn
HOLDS = "the simplest that breaches no objective; the cheapest of the least late breaches one, and changes: {}"
HEAD = "# {0} as tuned by elastic-lab tune; changed: {1}. Comments of the original are lost.\n"


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    situation.add_flags(parser)
    ending.add_flag(parser)
    parser.flag("candidates", whole(2, 100_000), variants.CANDIDATES, "policies to simulate at most", "2 to 100,000")
    parser.flag("processes", whole(1, 256), os.cpu_count() or 1, "to simulate in", "1 to 256")
    allowed = "a file in a folder that is there"
    parser.flag("output", situation.writable, None, "write the ScaledObject to take", allowed, optional=True)


def run(options: Namespace) -> int:
    """Tune and print. Returns the exit code: that of the objectives of what is recommended, at its worst."""
    question = situation.read(
        options, "what is recommended is written at real time; simulate --scale shows what a scale makes of it"
    )
    curve = question.simulated()  # a ScaledObject that can't be simulated is refused here, before the many variants
    told = question.notes(curve)
    found, advice = searched(question, options.candidates, options.processes)
    judged = simulate.worst_verdicts(replace(question, scaled=advice.chosen.variant.scaled))
    content = _content(question, found, advice) | {"objectives": [asdict(one) for one in judged], "notes": told}
    print(as_json(content) if options.json else _text(question, found, advice, judged, told))
    if options.output:
        options.output.write_text(_changed(options.scaledobject, question, advice.chosen.variant), encoding="utf-8")
    if options.chart:
        situation.save(lambda: _chart(question, found, advice), options.chart)
    return ending.code([one.verdict for one in judged], options.fail_on)


def searched(
    question: Question, candidates: int, processes: int, others: Sequence[Question] = ()
) -> tuple[list[Outcome], Recommendation]:
    """Return the outcome of each variant, in order, and the recommendation. Both are the same whatever the ``processes``.

    What is recommended breaches no objective at any point of the HPA's sync: in ``question`` and in the ``others``, else in
    ``question`` alone. Where every variant does, it is the cheapest of the least late.
    """
    with _workers(processes) as each:
        tried = variants.variants(question.scaled, question.situation, question.objective_s, candidates)
        chunks = [tried[at : at + CHUNK] for at in range(0, len(tried), CHUNK)]
        passes = each(partial(outcomes, question.situation, objective_s=question.objective_s), chunks)
        found = [one for chunk in passes for one in chunk]
        advice = recommend(question.situation, question.scaled, found, question.objective_s, each)
        return found, _held([question, *others], advice, each)


def _held(questions: Sequence[Question], advice: Recommendation, each: Each) -> Recommendation:
    """``advice``; where a simulation of what it recommends breaches anything, that of the simplest variant that doesn't."""
    question, chosen = questions[0], advice.chosen.variant
    if not any(_breaches(one, chosen) for one in questions):
        return advice
    simplest = sorted([advice.given.variant, _capped(question, chosen), *advice.others], key=lambda one: len(one.changes))
    held = _first_held(questions, [chosen, *simplest], each)
    if held is None or held is chosen:
        return advice
    why = HOLDS.format(_differs(advice.chosen))
    return instead(advice, held, why, question.situation, question.scaled, question.objective_s, each)


def _capped(question: Question, one: Variant) -> Variant:
    """``one`` with as many replicas at most as there are partitions, but for the floor."""
    most = max(len(question.situation.shares), question.scaled.min_replicas)
    changes, given = {**one.changes, variants.MOST: most}, variants.in_force(question.scaled)
    return variants.with_changes(question.scaled, {field: new for field, new in changes.items() if new != given[field]})


def _first_held(questions: Sequence[Question], tried: Sequence[Variant], each: Each = map) -> Variant | None:
    """The first of ``tried`` that breaches nothing in any of the ``questions``, else in the first of them; None for none."""
    held = None
    for one, breached in zip(tried, each(partial(_breaches, questions[0]), tried), strict=True):
        if not breached:
            if not any(_breaches(other, one) for other in questions[1:]):
                return one
            held = held or one
    return held


def _breaches(question: Question, one: Variant) -> bool:
    """Whether ``one`` breaches anything at any point of the HPA's sync."""
    asked = replace(question, scaled=one.scaled)
    return any(verdict.verdict == BREACHED for each in simulate.at_points(asked, asked.simulated()) for verdict in each)


@contextmanager
def _workers(processes: int) -> Iterator[Each]:
    """Yield a map over so many processes."""
    if processes == 1:
        yield map
        return
    with ProcessPoolExecutor(min(processes, SHORT)) as pool:
        yield pool.map


def _changed(file: Path, question: Question, variant: Variant) -> str:
    """The text of the user's ``file`` with the changed fields; of standard input, which is read, the ScaledObject alone."""
    if file == yamlfile.STDIN:
        return as_yaml(variant)
    return yaml_edit.edited(yamlfile.text(file), question.scaled.content, variant.scaled.content)


def as_yaml(variant: Variant) -> str:
    """Return the ScaledObject as YAML: the user's own, of which only the changed fields differ."""
    changes = ", ".join(variant.changes) or "nothing"
    return HEAD.format(variant.scaled.name, changes) + yamltext.written(variant.scaled.content)


def _text(
    question: Question, found: Sequence[Outcome], advice: Recommendation, judged: Sequence[Verdict], told: Sequence[str]
) -> str:
    rows = [_row("as given", advice.given), _row("recommended", advice.chosen), *(_row("front", one) for one in advice.front)]
    parts = [
        "\n".join([*question.lines(), *(f"note on what is given: {line}" for line in told)]),
        f"{len(found):,} policies simulated; those below again, each alone: {worst_of(question)}",
        table([COLUMNS, *rows], numbers=range(1, 6)),
        f"recommended: {advice.why}",
        "\n".join(map(str, advice.reasons)) or "keep what is given: no change is worth it",
        "\n".join(f"{MARKS[one.verdict]} {one}" for one in judged),
    ]
    return "\n\n".join(parts)


def worst_of(question: Question) -> str:
    """Return over what a figure is the worst, in words."""
    times = ", ".join(f"{at:g}" for at in question.points_s)
    read = ", which read lag close to an end of what is in flight but for the first" if question.situation.swing else ""
    return f"each figure is the worst of {len(question.points_s)} points of the HPA's sync (its first at {times} s){read}"


def _row(name: str, one: Outcome) -> list[str]:
    figures = (one.pod_minutes, one.late_s, one.worst_age_s, one.flips, one.most_replicas)
    return [name, *(number(round(figure, 1)) for figure in figures), _differs(one)]


def _differs(one: Outcome) -> str:
    return "; ".join(f"{field} {variants.text_of(value)}" for field, value in one.variant.changes.items()) or "none"


def _content(question: Question, found: Sequence[Outcome], advice: Recommendation) -> dict[str, Any]:
    return question.to_dict() | {
        "candidates": len(found),
        "points_s": question.points_s,
        "given": _figures(advice.given),
        "recommended": _figures(advice.chosen) | {"why": advice.why, "reasons": [asdict(one) for one in advice.reasons]},
        "front": [_figures(one) for one in advice.front],
        "yaml": as_yaml(advice.chosen.variant),
    }


def _figures(one: Outcome) -> dict[str, Any]:
    changes = {field: variants.text_of(value) for field, value in one.variant.changes.items()}
    return {"changes": changes} | {name: getattr(one, name) for name in FIGURES}


def _chart(question: Question, found: Sequence[Outcome], advice: Recommendation) -> Any:
    import pandas as pd

    from lab.charts import policies

    fewest = min(one.flips for one in found)
    marked = [(one, policies.FRONT) for one in advice.front]
    marked += [(advice.given, policies.YOURS), (advice.chosen, policies.RECOMMENDED)]
    points = [(one, policies.TRIED if one.flips == fewest else policies.FLIPPING) for one in found] + marked
    shown = BEYOND * max(one.late_s for one, _ in marked)
    beyond = sum(one.late_s > shown for one, _ in points)
    frame = pd.DataFrame(
        [{"pod_minutes": one.pod_minutes, "late_s": one.late_s, "kind": kind, "label": _differs(one)} for one, kind in points]
    )
    return policies.front(
        frame,
        f"{question.scaled.name} on {question.profile_name}: {len(found):,} policies, simulated",
        f"recommended: {_differs(advice.chosen)}{f'; {beyond} later than {shown:,.0f} s are not shown' if beyond else ''}",
        question.objective_s,
    )
