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
from lab.audit.scaledobject import Facts
from lab.board.figures import FONT, GRID, TEXT
from lab.board.panels import ASKED, DELIVERED, QUIET
from lab.commands import simulate as figures
from lab.commands.play.state import State, scaled_of
from lab.commands.play.traffic import handles, length_of, profile_of, profiles
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
from lab.inputs import anchor, keys, scale
from lab.inputs.scale import HPA_SYNC_S
from lab.inputs.triggers.kafka import Kafka
from lab.judge.quantity import Quantity

SEED = 1  # of the keys, as simulate has it
MOST_TOLD = 1_000  # syncs of a curve that are each explained at the pointer; of a longer one those that changed the replicas


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

    @functools.cached_property
    def told(self) -> list[Told]:
        """The syncs of the curve in words, and KEDA's own steps; those alone that changed the replicas where there are many."""
        every = self.curve.log
        kept = every if len(every) <= MOST_TOLD else [one for one in every if one.before != one.after]
        return [Told(one.at, one.before, one.after, explain.SAID[by(one, self.cap)], one.reasons) for one in kept]


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


def draw_keys(traffic: str) -> None:
    """Draw the keys of all traffic that is offered, first those of ``traffic``: another one then waits for no draw."""
    offered = (one.zipf for one in profiles().values())
    for zipf in dict.fromkeys((profile_of(traffic).zipf, *offered, 0.0)):
        keys.draw(zipf, SEED)


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
        keys.shares(traffic, SEED, partitions),
        Consumers(rate=state.pod_rate, start_s=state.start_s, in_flight_s=flying.mean_s),
        tail_s=LONGEST_WINDOW,
        swing=(flying.least_s, flying.most_s),
    )
    known = Question(scaled, situation, state.traffic, scale.load(scale.REAL), state.objective_s, "as set", "as set")
    curve = simulate(situation, scaled, every=True)
    capped = [one for one in triggers if isinstance(one, Kafka) and not one.allow_idle]
    return Answer(
        curve=curve,
        arrivals=situation.arrivals,
        figures=figures.forecast(known, curve),
        findings=_audited(text, where, partitions, state.commit_s, state.pod_rate),
        notes=tuple(notes(situation, scaled, curve)),
        cap=partitions * capped[0].lag_threshold if len(triggers) == len(capped) == 1 else None,
    )


@functools.lru_cache(maxsize=32)
def _audited(text: str, where: str, partitions: int, commit_s: float, pod_rate: float) -> tuple[Finding, ...]:
    """What the audit finds, which the traffic is no part of."""
    facts = Facts(partitions={"": partitions}, commit_s=commit_s, pod_rate=pod_rate, sync_s=HPA_SYNC_S)
    return findings.audit({where: text}, facts).findings


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


STYLES = ({"color": DELIVERED, "width": 2.4}, {"color": ASKED, "width": 2.4, "dash": "dash"})
SYMBOLS = ("triangle-up", "diamond")
MUTE = {"hoverinfo": "skip", "hovertemplate": None}
_AXES = {"lag": ("y", (0.71, 0.97), "Messages waiting (lag)"), "pods": ("y2", (0.36, 0.62), "Pods asked for (dotted: at work)")}
_AXES |= {"rate": ("y3", (0.0, 0.27), "Messages/s read (grey: arriving{})")}
HEIGHT = 640


def picture(state: State, found: Mapping[str, Answer | None]) -> dict[str, Any]:
    """Lag, replicas and throughput over minutes, as Plotly's JSON; the answers are by the name of their policy.

    A point of the replicas has the decision in words: its line in ``text``, all of it in ``customdata``.
    """
    traffic, partitions, traces = profile_of(state.traffic), int(state.partitions), []
    end = length_of(traffic)
    at = [*(step.at for step in traffic.steps), end]
    rate = [*(step.rate for step in traffic.steps), traffic.steps[-1].rate]
    arrives = _line("arriving", at, rate, "rate", {"color": QUIET, "width": 1, "shape": "hv"}, "%{y:,.4~g} messages/s arrive")
    traces.append(arrives | {"fill": "tozeroy", "fillcolor": "#6b6b6b33", "showlegend": False})
    for place, (name, one) in enumerate(found.items()):
        if one is not None:
            traces += _traces(name, one, STYLES[place], SYMBOLS[place])
    most = max((int(one.curve.replicas.max()) for one in found.values() if one), default=1)
    if near := partitions <= 1.6 * most:
        line = {"color": QUIET, "width": 1, "dash": "dot"}
        traces.append(_line("partitions", [0, end], [partitions] * 2, "pods", line, "") | MUTE)
    top = max(max(one["y"]) for one in traces if one["yaxis"] == _AXES["rate"][0])
    return {"data": traces, "layout": _layout(end, top or 1, handles(traffic), partitions if near else None)}


def _traces(name: str, one: Answer, style: Mapping[str, Any], symbol: str) -> Iterator[dict[str, Any]]:
    curve, steps = one.curve, one.told
    yield _line(name, curve.t, curve.lag, "lag", style, "%{y:,.4~s} messages wait") | {"showlegend": True}
    held = {**style, "shape": "hv"}
    yield _line(name, curve.t, curve.replicas, "pods", held, "") | MUTE
    worked = {**held, "width": 1.2, "dash": "dot"}
    yield _line(name, curve.t, curve.working, "pods", worked, "") | MUTE
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


def _layout(end: float, rate: float, dragged: Sequence[Mapping[str, Any]], partitions: int | None) -> dict[str, Any]:
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
    axes["yaxis3"] |= {"range": [-0.08 * rate, 1.25 * rate]}  # room for the handles
    said = ", drag ◇" if dragged else ""
    titles = [
        {
            "text": f"<b>{words.format(said)}</b>",
            "xref": "paper",
            "yref": "paper",
            "x": 0,
            "y": top,
            "yanchor": "bottom",
            "showarrow": False,
        }
        for _, (_, top), words in _AXES.values()
    ]
    named = {"text": f"{partitions} partitions: more pods have nothing to read", "xref": "paper", "x": 1, "yref": "y2"}
    named |= {"y": partitions, "xanchor": "right", "yanchor": "bottom", "showarrow": False, "font": {"size": 10}}
    return axes | {
        "margin": {"l": 44, "r": 10, "t": 4, "b": 40},
        "height": HEIGHT,
        "font": {"family": FONT, "size": 12, "color": TEXT},
        "plot_bgcolor": "white",
        "paper_bgcolor": "white",
        "hovermode": "closest",
        "hoverdistance": 30,
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.0, "yanchor": "top"},
        "xaxis": look | {"range": [-end / 3000, end / 60], "title": {"text": "minutes"}, "anchor": "y3", "nticks": 8},
        "shapes": dragged,
        "annotations": [*titles, named] if partitions else titles,
    }
