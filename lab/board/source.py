"""The live board's questions to Prometheus: the trials, and the series of panels and marks over one trial's time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from requests.exceptions import RequestException
from urllib3.util import Retry

from lab.board.panels import MARKS, NAMESPACES, Mark, Panel, Query, filled
from lab.errors import LabFault

LOOK_BACK = "12h"
TIMEOUT_S = 5
POINTS = 600  # more points than a graph of the board has pixels
OVER_S = 15  # without a sample for so long, a trial is over
MARGIN_S = 3
SHORTEST_S = 60


@dataclass(frozen=True)
class Series:
    """One line of a panel: times and values. A value that is not a number is None and draws as a gap."""

    name: str
    query: Query
    t: list[float]
    values: list[float | None]


@dataclass(frozen=True)
class Window:
    """The time that a board shows: a namespace from ``start`` to ``end``, epoch seconds, in steps of ``step`` seconds."""

    namespace: str
    start: float
    end: float
    step: int

    @classmethod
    def until(cls, namespace: str, end: float, seconds: float) -> Window:
        """The ``seconds`` before ``end``, on whole steps, so that points stay where they are between refreshes."""
        step = max(1, math.ceil(seconds / POINTS))
        last = math.ceil(end / step) * step
        return cls(namespace, last - math.ceil(seconds / step) * step, last, step)


Trials = Mapping[str, tuple[float, float]]


def window(known: Trials, minutes: float, namespace: str | None, now: float) -> Window | None:
    """The last ``minutes`` of ``namespace``, or of the newest of ``known``, up to its last sample; None when there is none."""
    chosen = namespace or max(known, key=lambda name: known[name][1], default=None)
    if chosen is None:
        return None
    first, newest = known.get(chosen, (now, now))
    end = now if now - newest < OVER_S else newest + MARGIN_S
    return Window.until(chosen, end, min(minutes * 60, max(end - first + 2 * MARGIN_S, SHORTEST_S)))


class Source:
    """Asks one Prometheus; every method raises :class:`LabFault` when it can't be asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._prometheus = PrometheusConnect(url=url.rstrip("/"), retry=Retry(0), timeout=TIMEOUT_S)

    def trials(self) -> Trials:
        """Namespaces of trials, each with the times of its first and newest sample, the newest first."""
        sampled = f"over_time(timestamp({NAMESPACES})[{LOOK_BACK}:5s])"
        first, newest = (
            {one["metric"]["namespace"]: float(one["value"][1]) for one in self._call(self._prometheus.custom_query, query)}
            for query in (f"{pick} by (namespace) ({pick}_{sampled})" for pick in ("min", "max"))
        )
        return {name: (first[name], at) for name, at in sorted(newest.items(), key=lambda item: -item[1]) if name in first}

    def panel(self, panel: Panel, window: Window) -> list[Series]:
        """The series of a panel's queries."""
        return [
            Series(_name(query.legend, one["metric"]), query, *_columns(one["values"]))
            for query in panel.queries
            for one in self._range(query.expr, window)
        ]

    def moments(self, mark: Mark, window: Window) -> list[float]:
        """The times at which ``mark`` happened, epoch seconds, in order."""
        return sorted({float(value) / 1000 for one in self._range(mark.expr, window) for _, value in one["values"]})

    def marks(self, window: Window) -> dict[Mark, list[float]]:
        """The moments of every mark."""
        return {mark: self.moments(mark, window) for mark in MARKS}

    def _range(self, expr: str, window: Window) -> list[dict[str, Any]]:
        query = filled(expr, window.namespace, window.step)
        start, end = (datetime.fromtimestamp(at, UTC) for at in (window.start, window.end))
        return self._call(self._prometheus.custom_query_range, query, start, end, str(window.step))

    def _call(self, ask: Callable[..., list[dict[str, Any]]], *given: object) -> list[dict[str, Any]]:
        try:
            return ask(*given)
        except (PrometheusApiClientException, RequestException, ValueError, KeyError) as error:
            said = isinstance(error, PrometheusApiClientException)
            reason = str(error).splitlines()[0][:200] if said else type(error).__name__
            raise LabFault(f"Prometheus at {self.url} does not answer: {reason}") from error


def _name(legend: str, labels: dict[str, str]) -> str:
    for label, value in labels.items():
        legend = legend.replace("{{" + label + "}}", value)
    return legend


def _columns(samples: list[list[Any]]) -> tuple[list[float], list[float | None]]:
    numbers = [float(value) for _, value in samples]
    return [float(t) for t, _ in samples], [value if math.isfinite(value) else None for value in numbers]
