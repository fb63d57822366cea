"""``python -m lab simulate``: what a ScaledObject would do on a profile: figures, objectives, its decisions, a chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lab.commands import situation
from lab.commands.foreseen import forecast, verdicts
from lab.commands.situation import Question
from lab.commands.text import as_json, number, table
from lab.foresee.curve import Curve
from lab.foresee.simulate import simulate
from lab.judge.claim import Verdict
from lab.judge.quantity import Quantity
from lab.report.tables import MARKS

ROWS = {
    "reaction (s)": "reaction_s",
    "peak lag (messages)": "peak_lag",
    "behind by more than the objective, for (s)": "late_s",
    "oldest event at worst (s)": "worst_age_s",
    "drain (s)": "drain_s",
    "flips": "flips",
    "scale-ups": "scale_ups",
    "scale-downs": "scale_downs",
    "pod-minutes": "pod_minutes",
    "most replicas (pods)": "most_replicas",
}


def run(command: str, help_text: str, arguments: Sequence[str]) -> int:
    """Simulate and print; returns the exit code, which is 0 whatever the objectives say."""
    parser = situation.flags(command, help_text)
    parser.add_argument("--log", action="store_true", help="print every change of the replicas with its reasons")
    options = parser.parse_args(arguments)
    question = situation.read(options)
    curve = simulate(question.situation, question.scaled)
    figures = forecast(question, curve)
    judged = verdicts(question, figures)
    print(as_json(_content(question, figures, judged, curve)) if options.json else _text(question, figures, judged))
    if options.log and not options.json:
        print("\n" + "\n".join(_log(curve)))
    if options.chart:
        situation.save(lambda: _chart(question, curve, figures), options.chart)
    return 0


def _text(question: Question, figures: Mapping[str, Quantity], judged: Sequence[Verdict]) -> str:
    rows = [("figure", "value"), *((name, number(figures[field].value)) for name, field in ROWS.items())]
    missing = [f"no data: {name}: {figures[field].why}" for name, field in ROWS.items() if figures[field].value is None]
    objectives = [f"{MARKS[one.verdict]} {one}" for one in judged]
    parts = [question.lines(), [table(rows, numbers=[1])], objectives, missing]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _content(question: Question, figures: Mapping[str, Quantity], judged: Sequence[Verdict], curve: Curve) -> dict[str, Any]:
    return question.to_dict() | {
        "figures": {field: one.value for field, one in figures.items()},
        "missing": {field: one.why for field, one in figures.items() if one.value is None},
        "objectives": [asdict(one) for one in judged],
        "log": [asdict(change) for change in curve.log],
    }


def _log(curve: Curve) -> list[str]:
    return [f"{one.at:9,.1f} s  {one.before:3d} -> {one.after:<3d} {'; '.join(one.reasons)}" for one in curve.log]


def _chart(question: Question, curve: Curve, figures: Mapping[str, Quantity]) -> Any:
    from lab.report import predict

    drawn = predict.Forecast(
        title=f"{question.scaled.name} on {question.profile_name}, simulated",
        subtitle=f"behind by more than {question.objective_s:g} s for {number(figures['late_s'].value)} s; "
        f"{number(figures['flips'].value)} flips; {number(figures['pod_minutes'].value)} pod-minutes",
        profile=question.situation.profile,
        tail_s=question.situation.tail_s,
        objective_s=question.objective_s,
        predicted=curve,
    )
    return predict.forecast(drawn)
