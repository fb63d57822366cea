"""The answers to a state of the play page: what the model says of each policy, in figures, in pictures and in words. Pure."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from lab.audit import findings
from lab.audit.findings import Finding
from lab.audit.scaled import Facts
from lab.board.figures import FONT, GRID, TEXT
from lab.board.panels import ASKED, DELIVERED, QUIET
from lab.commands import simulate as figures
from lab.commands.play.state import State, profile_of, profiles, scaled_of
from lab.commands.situation import Question
from lab.commands.text import number
from lab.foresee import explain
from lab.foresee.curve import Arrivals, Change, Curve
from lab.foresee.group import Consumers
from lab.foresee.in_flight import InFlight
from lab.foresee.notes import notes
from lab.foresee.scaler import lag_triggers
from lab.foresee.simulate import simulate
from lab.foresee.situation import Situation
from lab.foresee.variants import LONGEST_WINDOW
from lab.inputs import anchor, scale
from lab.inputs.keys import shares
from lab.inputs.scale import HPA_SYNC_S
from lab.inputs.triggers.kafka import Kafka
from lab.judge.quantity import Quantity

SEED = 1  # of the keys, as simulate has it
MOST_TOLD = 1_000  # syncs of a curve that are each explained at the pointer; of a longer one those that changed the replicas
ROWS = {  # what a figure is to whoever has never seen one
    "late_s": "Late: the oldest waiting message is older than {objective_s:g} s, for (s)",
    "worst_age_s": "Age of the oldest waiting message, at worst (s)",
    "peak_lag": "Messages waiting, at most",
    "flips": "Flips: pods were taken away and then needed again",
    "pod_minutes": "Pod-minutes: the price",
    "most_replicas": "Pods, at most",
    "reaction_s": "From more traffic until one more pod works (s)",
}


@dataclass(frozen=True)
class Answer:
    """What is known of one policy: the curve with every sync, figures by field, findings of the audit, and notes on the curve.

    ``cap`` is the most lag that KEDA tells the HPA, messages; None for no cap.
    """

    curve: Curve
    arrivals: Arrivals
    figures: Mapping[str, Quantity]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    cap: int | None


@dataclass(frozen=True)
class Told:
    """A decision in words: at ``at`` s ``before`` pods became ``after``; ``by`` is what decided, ``steps`` is how."""

    at: float
    before: int
    after: int
    by: str
    steps: tuple[str, ...]

    @property
    def head(self) -> str:
        """The decision in a line."""
        done = f"stays at {self.after}" if self.before == self.after else f"{self.before} → {self.after} pods"
        return f"{clock(self.at)}  {done}: {self.by}"


def clock(seconds: float) -> str:
    """A time after the start, as 5:30 for 330 s."""
    return f"{int(seconds // 60)}:{seconds % 60:02.0f}"


@functools.lru_cache(maxsize=32)
def answer(text: str, where: str, state: State) -> Answer:
    """The answer for the policy ``text``, which ``where`` names; the policies of ``state`` don't count, and are to be "".

    Raises :class:`InputError` for a policy or traffic that can't be used, or is not simulated.
    """
    scaled, traffic = scaled_of(text, where), profile_of(state.traffic)
    anchor.require_begin(scaled, traffic, "traffic")
    triggers = lag_triggers(scaled, 1)
    flying, partitions = InFlight(state.commit_s), int(state.partitions)
    situation = Situation(
        traffic,
        shares(traffic, SEED, partitions),
        Consumers(rate=state.pod_rate, start_s=state.start_s, in_flight_s=flying.mean_s),
        tail_s=LONGEST_WINDOW,
        swing=(flying.least_s, flying.most_s),
    )
    known = Question(scaled, situation, state.traffic, scale.load(scale.REAL), state.objective_s, "as set", "as set")
    curve = simulate(situation, scaled, every=True)
    capped = [one for one in triggers if isinstance(one, Kafka) and not one.allow_idle]
    facts = Facts(partitions={"": partitions}, commit_s=state.commit_s, pod_rate=state.pod_rate, sync_s=HPA_SYNC_S)
    return Answer(
        curve=curve,
        arrivals=situation.arrivals,
        figures=figures.forecast(known, curve),
        findings=findings.audit({where: text}, facts).findings,
        notes=tuple(notes(situation, scaled, curve)),
        cap=partitions * capped[0].lag_threshold if len(triggers) == len(capped) == 1 else None,
    )


def told(found: Answer) -> list[Told]:
    """The syncs of the curve in words, and KEDA's own steps; those alone that changed the replicas where there are many."""
    every = found.curve.log
    kept = every if len(every) <= MOST_TOLD else [one for one in every if one.before != one.after]
    return [Told(one.at, one.before, one.after, explain.SAID[by(one, found.cap)], one.reasons) for one in kept]


def by(change: Change, cap: int | None) -> str:
    """What decided, a key of :data:`explain.SAID`: the last limit that changed the number, without one the metric.

    ``cap`` is the most lag that KEDA tells the HPA, messages.
    """
    reasons, words = change.reasons, [reason.partition(":")[0] for reason in change.reasons]
    if reasons[0] == "KEDA" or not change.before:
        return explain.KEDA
    if "are above maxReplicas" in reasons[0]:
        return explain.MOST
    if "are below minReplicas" in reasons[0]:
        return explain.LEAST
    limits = [explain.LIMITS[word] for word in words if word in explain.LIMITS]
    windows = [explain.WINDOWS[word] for word in words if word in explain.WINDOWS]
    if limits or windows:
        return (limits or windows)[-1]
    if any(reason.endswith("gave a number") for reason in reasons):
        return explain.FAILED
    if cap is not None and any(f": {cap:g} / (" in reason for reason in reasons):
        return explain.CAP
    return explain.TOLERANCE if any(": keeps" in reason for reason in reasons) else explain.METRIC


def sentence(found: Answer, where: str, objective_s: float) -> str:
    """The answer in a sentence, which also stands for the picture where it can't be seen."""
    late, flips, price = (number(found.figures[name].value) for name in ("late_s", "flips", "pod_minutes"))
    behind = "no message is late" if late == "0" else f"messages are late (older than {objective_s:g} s) for {late} s"
    peak, most = number(found.figures["peak_lag"].value), number(found.figures["most_replicas"].value)
    again = f"pods are taken away and then needed again {flips} x (flips)"
    return (
        f"{where}: {behind}; {again}; the price is {price} pod-minutes. Up to {peak} messages wait, and up to {most} pods run."
    )


def rows(state: State, found: Sequence[Answer | None]) -> Iterator[tuple[str, list[str]]]:
    """Each figure: what it is, and its number for each policy, "no data" with the reason, "" for one without an answer."""
    for name, words in ROWS.items():
        cells = []
        for one in found:
            figure = one.figures[name] if one else None
            cells.append(
                "" if figure is None else number(figure.value) if figure.value is not None else f"no data: {figure.why}"
            )
        yield words.format(objective_s=state.objective_s), cells


def command(state: State, file: str) -> str:
    """The command line that prints the same figures of a policy in ``file``."""
    traffic = state.traffic if state.traffic in profiles() else "steps.yaml"
    values = (state.pod_rate, state.partitions, state.start_s, InFlight(state.commit_s).mean_s, state.objective_s)
    names = ("pod-rate", "partitions", "start-s", "in-flight-s", "objective-s")
    words = [f"--{name} {value:.10g}" for name, value in zip(names, values, strict=True)]
    return " ".join([f"elastic-lab simulate --scaledobject {file} --profile {traffic}", *words])


STYLES = ({"color": DELIVERED, "width": 2.4}, {"color": ASKED, "width": 2.4, "dash": "dash"})
SYMBOLS = ("triangle-up", "diamond")
_AXES = {"lag": ("y", (0.71, 0.97), "Messages waiting (lag)"), "pods": ("y2", (0.36, 0.62), "Pods asked for (dotted: at work)")}
_AXES |= {"rate": ("y3", (0.0, 0.27), "Messages/s read (grey: arriving)")}
HEIGHT = 640


def picture(state: State, found: Mapping[str, Answer | None]) -> dict[str, Any]:
    """Lag, replicas and throughput over minutes, as Plotly's JSON; the answers are by the name of their policy.

    A point of the replicas has the decision in words: its line in ``text``, all of it in ``customdata``.
    """
    traffic, traces = profile_of(state.traffic), []
    end = traffic.duration + LONGEST_WINDOW
    at = [*(step.at for step in traffic.steps), end]
    rate = [*(step.rate for step in traffic.steps), traffic.steps[-1].rate]
    arrives = _line("arriving", at, rate, "rate", {"color": QUIET, "width": 1, "shape": "hv"}, "%{y:,.4~g} messages/s arrive")
    traces.append(arrives | {"fill": "tozeroy", "fillcolor": "#6b6b6b33", "showlegend": False})
    for place, (name, one) in enumerate(found.items()):
        if one is not None:
            traces += _traces(name, one, STYLES[place], SYMBOLS[place])
    known = [one for one in found.values() if one]
    most = max((int(one.curve.replicas.max()) for one in known), default=1)
    return {"data": traces, "layout": _layout(end, int(state.partitions), most)}


def _traces(name: str, one: Answer, style: Mapping[str, Any], symbol: str) -> Iterator[dict[str, Any]]:
    curve, steps = one.curve, told(one)
    yield _line(name, curve.t, curve.lag, "lag", style, "%{y:,.4~s} messages wait") | {"showlegend": True}
    held = {**style, "shape": "hv"}
    yield _line(name, curve.t, curve.replicas, "pods", held, "") | {"hoverinfo": "skip", "hovertemplate": None}
    worked = {**held, "width": 1.2, "dash": "dot"}
    yield _line(name, curve.t, curve.working, "pods", worked, "") | {"hoverinfo": "skip", "hovertemplate": None}
    yield {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": _minutes([step.at for step in steps]),
        "y": [step.after for step in steps],
        "yaxis": "y2",
        "marker": {
            "color": style["color"],
            "symbol": [symbol if step.before != step.after else "circle" for step in steps],
            "size": [9 if step.before != step.after else 3 for step in steps],
        },
        "text": [escape(f"{name}  {step.head}").replace(": ", ":<br>") for step in steps],
        "customdata": ["\n".join([f"{name}  {step.head}", *(f"    {reason}" for reason in step.steps)]) for step in steps],
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }
    t, rates = throughput(curve, one.arrivals)
    yield _line(name, t, rates, "rate", held, "%{y:,.4~g} messages/s read")


def throughput(curve: Curve, arrivals: Arrivals) -> tuple[np.ndarray, np.ndarray]:
    """(times in s, messages/s whose offset was committed from each time on): the mean over a sync period."""
    end = float(curve.t[-1])
    t = np.linspace(0.0, end, max(2, math.ceil(end / HPA_SYNC_S) + 1))
    done = np.maximum.accumulate(np.maximum(0.0, arrivals.by(t) - np.interp(t, curve.t, curve.lag)))
    rates = np.diff(done) / np.diff(t)
    return t, np.append(rates, rates[-1])


def _line(
    name: str, at: Sequence[float] | np.ndarray, values: Any, panel: str, style: Mapping[str, Any], said: str
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendgroup": name,
        "x": _minutes(at),
        "y": np.round(np.asarray(values, dtype=float), 2).tolist(),
        "yaxis": _AXES[panel][0],
        "line": dict(style),
        "showlegend": False,
        "hovertemplate": f"{escape(name)}, minute %{{x:.1f}}: {said}<extra></extra>",
    }


def _minutes(seconds: Any) -> list[float]:
    found: list[float] = np.round(np.asarray(seconds, dtype=float) / 60, 3).tolist()
    return found


def _layout(end: float, partitions: int, most: int) -> dict[str, Any]:
    look = {
        "gridcolor": GRID,
        "zeroline": False,
        "linecolor": "#bbbbbb",
        "rangemode": "tozero",
        "nticks": 5,
        "fixedrange": True,
    }
    axes = {f"yaxis{name[1:]}": look | {"domain": list(domain)} for name, domain, _ in _AXES.values()}
    axes["yaxis"] |= {"tickformat": "~s"}
    titles = [
        {"text": f"<b>{words}</b>", "xref": "paper", "yref": "paper", "x": 0, "y": top, "yanchor": "bottom", "showarrow": False}
        for _, (_, top), words in _AXES.values()
    ]
    shown = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y2", "y0": partitions, "y1": partitions}
    line = shown | {"line": {"color": QUIET, "width": 1, "dash": "dot"}}
    named = {"text": f"{partitions} partitions: more pods have nothing to read", "xref": "paper", "x": 1, "yref": "y2"}
    named |= {"y": partitions, "xanchor": "right", "yanchor": "bottom", "showarrow": False, "font": {"size": 10}}
    near = partitions <= 1.6 * most
    return axes | {
        "margin": {"l": 44, "r": 10, "t": 4, "b": 40},
        "height": HEIGHT,
        "font": {"family": FONT, "size": 12, "color": TEXT},
        "plot_bgcolor": "white",
        "paper_bgcolor": "white",
        "hovermode": "closest",
        "hoverdistance": 30,
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.0, "yanchor": "top"},
        "xaxis": look | {"range": [0, end / 60], "title": {"text": "minutes"}, "anchor": "y3", "nticks": 8},
        "shapes": [line] if near else [],
        "annotations": [*titles, named] if near else titles,
    }
