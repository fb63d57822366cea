"""``elastic-lab simulate``: it prints the figures, claims and decisions of a ScaledObject on a profile, and draws a chart.

Times in s, real; lag in messages.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

from lab.commands import ending, situation
from lab.commands.situation import Question
from lab.commands.text import as_json, number, table
from lab.errors import NoData, known
from lab.flags import Flags
from lab.foresee.curve import Curve, late, worst_age
from lab.foresee.notes import in_flight, open_windows
from lab.foresee.scaler import lag_triggers
from lab.foresee.starts import DRAWS
from lab.foresee.variants import rules_of
from lab.inputs.profile import BASELINE, RELIEF
from lab.inputs.scale import REAL
from lab.inputs.triggers.cron import Cron
from lab.inputs.triggers.external import PersistentLag
from lab.judge.bounds import REACTION_S
from lab.judge.claim import BREACHED, HELD, NO_DATA, Repeats, Verdict, judge
from lab.judge.measure import quantity
from lab.judge.quantity import Bound, Quantity, repeated
from lab.number_format import beside
from lab.report.verdict_text import MARKS

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


def forecast(question: Question, curve: Curve) -> dict[str, Quantity]:
    """Return the figures that are read off ``curve``, by field."""
    arrivals, most = question.situation.arrivals, int(curve.replicas.max())
    behind, ups = late(curve, arrivals, question.objective_s), sum(after > before for _, before, after in curve.changes)
    return {
        "reaction_s": _reaction(question, curve),
        "peak_lag": Quantity("peak lag", "messages", curve.peak_lag),
        "late_s": Quantity("time behind by more than the objective", "s", behind),
        "worst_age_s": Quantity("age of the oldest event at worst", "s", worst_age(curve, arrivals)),
        "drain_s": _drain(question, curve),
        "flips": Quantity("flips", "flips", curve.flips),
        "scale_ups": Quantity("scale-ups", "steps", ups),
        "scale_downs": Quantity("scale-downs", "steps", len(curve.changes) - ups),
        "pod_minutes": Quantity("pod-minutes", "pod-minutes", curve.pod_minutes),
        "most_replicas": Quantity("most replicas", "pods", most),
        "above_floor_at_baseline": _above_floor_at_baseline(question, curve),
        "above_floor_at_end": _above_floor_at_end(question, curve),
        "beyond_partitions": Quantity(
            "replicas wanted beyond the partitions", "pods", max(0, most - len(question.situation.shares))
        ),
    }


def verdicts(question: Question, figures: Mapping[str, Quantity]) -> list[Verdict]:
    """Judge the claims that a simulation can show."""
    oldest = Bound(question.objective_s, "--objective-s")
    return [
        judge(figures["reaction_s"] < REACTION_S, "the first new pod is at work in time"),
        judge(figures["worst_age_s"] <= oldest, "no event gets older than the objective allows"),
        judge(figures["flips"] == 0, "the replicas do not flap"),
        judge(figures["above_floor_at_baseline"] == 0, "no pod is scaled on the noise of a small lag"),
        judge(figures["above_floor_at_end"] == 0, "the group gives back the pods that it took"),
        judge(figures["beyond_partitions"] == 0, "no pod is left without a partition, which could do nothing"),
    ]


def at_points(question: Question, curve: Curve) -> Iterator[list[Verdict]]:
    """Yield the verdicts at each point of the HPA's sync; ``curve`` is that of the first."""
    return (verdicts(question, forecast(question, one)) for one in chain([curve], question.elsewhere()))


def gravest(found: Iterable[Verdict]) -> Verdict:
    """Return the verdict that is furthest from holding: every bound here is one from above."""
    order = (HELD, NO_DATA, BREACHED)
    return max(found, key=lambda one: (order.index(one.verdict), one.measured or 0.0))


def worst_verdicts(question: Question) -> list[Verdict]:
    """Return the gravest verdict on each objective over the points of the HPA's sync."""
    return [gravest(one) for one in zip(*at_points(question, question.simulated()), strict=True)]


def differences(question: Question, each: Iterable[Sequence[Verdict]]) -> list[str]:
    """Return a line for each objective that is breached at some points of the HPA's sync and not at others."""
    found = []
    for objective in zip(*each, strict=True):
        at: dict[bool, list[str]] = {True: [], False: []}
        for point, one in zip(question.points_s, objective, strict=True):
            at[one.verdict == BREACHED].append(f"{point:g}")
        if at[True] and at[False]:
            one = gravest(objective)
            found.append(
                f"{one.objective}: breached where the HPA's first sync comes at {', '.join(at[True])} s, with "
                f"{beside(one.measured, one.bound)} {one.unit} at worst, and not at {', '.join(at[False])} s; shown is 0 s"
            )
    return found


def _spike(question: Question) -> float:
    """Return the time at which the traffic first left its baseline, s. Raises :class:`NoData` without a baseline."""
    phases = question.situation.profile.phases()
    found = next((start for start, _, phase in phases if phase != BASELINE), 0.0)
    if not found:
        raise NoData(f"the profile has no phase {BASELINE} that something follows")
    return found


@quantity("s", "reaction")
def _reaction(question: Question, curve: Curve) -> float:
    """Return the time from the spike's start until one more pod is at work than before it, s."""
    spike = _spike(question)
    reacted = curve.working_from(int(curve.working[curve.t <= spike][-1]) + 1, spike)
    if reacted is None:
        raise NoData("no more pods were ever at work than before")
    return reacted - spike


@quantity("s", "drain time")
def _drain(question: Question, curve: Curve) -> float:
    """Return the time from the start of the last phase, drain or lull, until lag is at one lagThreshold, s."""
    begin, _, phase = question.situation.profile.phases()[-1]
    if phase not in RELIEF:
        raise NoData(f"the profile does not end in a phase {' or '.join(RELIEF)}")
    if any(isinstance(one, PersistentLag) and one.settings.rule.ages for one in lag_triggers(question.scaled)):
        raise NoData("lagSeconds is no lag in messages that a drain could end at")
    threshold = known(question.scaled.lag_threshold, "lagThreshold in the policy")
    back = curve.back_at(threshold, begin)
    if back is None:
        rate = question.situation.profile.steps[-1].rate
        flying = in_flight(question.at_real_time(), rate)
        why = f": {flying:,} messages are in flight at {rate:,g} messages/s" if flying > threshold else ""
        raise NoData(f"lag never came back to one lagThreshold, {threshold:,}{why}")
    return back - begin


@quantity("pods", "replicas above the floor at baseline")
def _above_floor_at_baseline(question: Question, curve: Curve) -> int:
    spike = _spike(question)
    rate = max(step.rate for step in question.situation.profile.steps if step.at < spike)
    above = int(curve.replicas[curve.t < spike].max()) - _floor(question, rate)
    if above > 0 and question.situation.backlog:
        raise NoData("a backlog waits at the start, which is no noise")
    for trigger, opens, _ in open_windows(question.situation, question.scaled) if above > 0 else ():
        if opens < spike:
            raise NoData(f"a cron window asks for {trigger.replicas:,} pods before the baseline is over")
    return max(0, above)


@quantity("pods", "replicas above the floor at the end")
def _above_floor_at_end(question: Question, curve: Curve) -> int:
    above = int(curve.replicas[-1]) - _floor(question, question.situation.profile.steps[-1].rate)
    if above > 0 and (why := _held(question)):
        raise NoData(why)
    return max(0, above)  # an idleReplicaCount is below the floor


def _held(question: Question) -> str:
    """Why pods can't have been given back yet when the simulation ends; "" where they can."""
    here, scaled = question.situation, question.scaled
    since = here.profile.phases()[-1][0]
    for trigger, opens, closes in open_windows(here, scaled, here.end):
        if opens <= here.end < closes:
            until = "for ever" if math.isinf(closes) else f"until {_clock(question, trigger, closes)}"
            return f"the cron window of {trigger.replicas:,} pods is open {until}"
    since = max([since, *(closes for _, _, closes in open_windows(here, scaled) if closes <= here.end)])
    left = here.end - since
    if 0 in (scaled.min_replicas, scaled.idle_replicas) and left <= scaled.cooldown_s:
        return f"the cooldownPeriod of {scaled.cooldown_s:,} s outlasts the {left:,g} s that are left: give a longer --tail-s"
    down = rules_of(scaled)[1]
    window = here.controller.downscale_stabilization_s if down.window_s is None else down.window_s
    if down.select == "Disabled" or left > window:
        return ""
    return f"the scale-down window of {window:,} s outlasts the {left:,g} s that are left: give a longer --tail-s"


def _clock(question: Question, trigger: Cron, at: float) -> str:
    begins_at = known(question.situation.profile.begins_at, "begins_at in the profile")
    return f"{(begins_at + timedelta(seconds=at)).astimezone(ZoneInfo(trigger.zone)):%Y-%m-%d %H:%M} {trigger.zone}"


def _floor(question: Question, rate: float) -> int:
    """Return minReplicaCount. Raises :class:`NoData` when so many pods can't take ``rate`` messages/s."""
    floor = question.scaled.min_replicas
    if rate > floor * question.situation.consumers.rate:
        raise NoData(f"the floor of {floor} can't take {rate:g} messages/s")
    return floor


def answer(question: Question) -> tuple[Curve, dict[str, Quantity], list[Verdict]]:
    """Simulate each draw of the starts. Returns the curve of the first, the figures over all, and the verdicts on them."""
    curve, *others = question.drawn()
    each = [forecast(question, one) for one in (curve, *others)]
    figures = {field: repeated(one[field] for one in each) for field in each[0]}
    return curve, figures, _judged(question, figures)


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    situation.add_flags(parser)
    ending.add_flag(parser)
    parser.add_argument("--log", action="store_true", help="print every change of the replicas with its reasons")


def run(options: Namespace) -> int:
    """Simulate and print. Returns the exit code."""
    question = situation.read(options)
    curve, figures, judged = answer(question)
    told = question.notes(curve)
    elsewhere = differences(question, at_points(question, curve))
    content = _content(question, figures, judged, curve) | {"notes": told, "elsewhere": elsewhere}
    print(as_json(content) if options.json else _text(question, figures, judged, [*told, *elsewhere]))
    if options.log and not options.json:
        print("" if question.scale.name == REAL else f"\nlags and times in the reasons are those at {question.scale}")
        for one in curve.log:
            print(f"{one.at:9,.1f} s  {one.before:3d} -> {one.after:<3d} {'; '.join(one.reasons)}")
    if options.chart:
        situation.save(lambda: _chart(question, curve, figures), options.chart)
    # An objective that is breached at some points of a sync alone does not hold either.
    return ending.code([*(one.verdict for one in judged), *[BREACHED] * bool(elsewhere)], options.fail_on)


def _text(question: Question, figures: Mapping[str, Quantity], judged: Sequence[Verdict], told: Sequence[str]) -> str:
    worst = _worst(figures)
    rows = [["figure", "median", f"worst of {len(DRAWS)} draws"] if worst else ["figure", "value"]]
    for name, field in ROWS.items():
        rows.append([name, number(figures[field].value), *([number(worst[field])] if worst else [])])
    missing = [f"no data: {name}: {figures[field].why}" for name, field in ROWS.items() if figures[field].value is None]
    marked = [f"{MARKS[one.verdict]} {one}" for one in judged]
    shown = [table(rows, numbers=range(1, len(rows[0])))]
    parts = [question.lines(), shown, marked, [f"note: {line}" for line in told], missing]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _judged(question: Question, figures: Mapping[str, Quantity]) -> list[Verdict]:
    """Return the verdicts. The draws of the starts are chosen, so they give no interval by chance."""
    found = verdicts(question, figures)
    return [one if one.repeats is None else replace(one, repeats=Repeats(one.repeats.n, one.repeats.held)) for one in found]


def _worst(figures: Mapping[str, Quantity]) -> dict[str, float | None]:
    """Return the greatest of each figure over the draws of the starts; {} where there is one draw."""
    return {
        field: None if one.value is None else max(run.number for run in one.runs) for field, one in figures.items() if one.runs
    }


def _content(question: Question, figures: Mapping[str, Quantity], judged: Sequence[Verdict], curve: Curve) -> dict[str, Any]:
    return question.to_dict() | {
        "figures": {field: one.value for field, one in figures.items()},
        "worst": _worst(figures),
        "missing": {field: one.why for field, one in figures.items() if one.value is None},
        "objectives": [asdict(one) for one in judged],
        "log": [asdict(change) for change in curve.log],
    }


def _chart(question: Question, curve: Curve, figures: Mapping[str, Quantity]) -> Any:
    from lab.charts import forecast

    behind, flips, minutes = (number(figures[field].value) for field in ("late_s", "flips", "pod_minutes"))
    drawn = forecast.Forecast(
        title=f"{question.scaled.name} on {question.profile_name}, simulated",
        subtitle=f"behind by more than {question.objective_s:g} s for {behind} s; {flips} flips; {minutes} pod-minutes",
        profile=question.situation.profile,
        tail_s=question.situation.tail_s,
        objective_s=question.objective_s,
        predicted=curve,
    )
    return forecast.forecast(drawn)
