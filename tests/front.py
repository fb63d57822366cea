"""``python -m tests.front``: the two tables of the handbook that are the model's, filled in.

The front has policies for pods that start in 45 s, by the requirements of tests/policies.py. The remedies are for pods that
start in 60 s. No number of either is a trial's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from lab import paths
from lab.foresee.situation import POINTS
from lab.inputs import profile, scaledobject
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.variant import TRIGGER, Variant
from lab.report.tables import Table
from tests.handbook import PAGE
from tests.policies import ACCEPTANCE, BOUNDS, FLYING, PRICES, Run, figures, oldest, read, refuted

FILE = paths.MANIFESTS / "scaledobjects" / "lag-4500.yaml"
TRANSIENT = profile.load(paths.PROFILES / "transient.yaml")
LULLS_S, RATES = (120, 240, 360, 900), (300, 850, 1250, 1500, 1800)  # few, so that a test is short
Changes = tuple[tuple[str, Any], ...]  # of FILE, by name


def arrivals(per_pod: float, above: float = 0.0) -> tuple[str, Any]:
    """One more trigger: a pod for each ``per_pod`` events/s that arrive, where that is more than ``above``."""
    query = 'sum(rate(kafka_topic_partition_current_offset{namespace="enrich"}[2s]))' + (f" > {above:g}" if above else "")
    metadata = {"serverAddress": "http://prometheus.monitoring:9090", "query": query, "threshold": f"{per_pod:g}"}
    return TRIGGER, {"type": "prometheus", "metadata": metadata}


WHOLE: Changes = (arrivals(70), arrivals(44, above=1050))  # 13 to 23 pods on 24 partitions do no more than 12
ONE_STEP = ("scale_up", "600%/30s")
FRONT: dict[str, Changes] = {
    "lag at 4,500": (),
    "the same, window of 900 s": (("scale_down_window", 900),),
    "lag at 3,000; tolerance down 0.94": (("lag_threshold", 3000), ("scale_down_tolerance", 0.94)),
    "lag at 3,000; arrivals at 70/s a pod; 600 % in 15 s": (("lag_threshold", 3000), arrivals(70), ("scale_up", "600%/15s")),
    "lag; arrivals at 85/s a pod": (arrivals(85),),
    "lag; arrivals at 60/s a pod": (arrivals(60),),
    "lag; arrivals at 70/s a pod; all 24 above 1,050/s": WHOLE,
    "the same, in one step": (*WHOLE, ONE_STEP),
}
FRONT_HEAD = (
    "policy, by the model",
    "flips, acceptance and spike",
    "reaction, s",
    "pods above the floor",
    "early flips, ten bursts",
    "flips, an hour",
    "oldest at rest, s",
    "oldest, acceptance, s",
    "pod-minutes",
    "oldest, spike from the floor, s",
)


@dataclass(frozen=True)
class Remedy:
    """``changes`` of FILE, and a pod's start, s."""

    changes: Changes = ()
    start_s: float = 60.0


REMEDIES = {
    "lag at 4,500": Remedy(),
    "arrivals at 85/s a pod, in one step": Remedy((arrivals(85), ONE_STEP)),
    "twice the pods: arrivals at 50/s a pod": Remedy((arrivals(50),)),
    "a floor of 6": Remedy((("min_replicas", 6),)),
    "a start of 30 s": Remedy(start_s=30.0),
}
TRAFFIC = {"transient": TRANSIENT, "acceptance": ACCEPTANCE}
REMEDIES_HEAD = (
    "pods of 60 s, by the model",
    *(f"{name}: {what}" for name in TRAFFIC for what in ("reaction, s", "oldest, s", "pod-minutes")),
)


def changed(changes: Changes) -> ScaledObject:
    """The policy of FILE with ``changes``."""
    return scaledobject.parse(Variant("lag-4500", changes).applied(read(FILE).content, FILE), FILE)


@cache
def worst(name: str) -> Mapping[str, float]:
    """What one of FRONT does at few lulls and rates, at worst."""
    return figures(changed(FRONT[name]), LULLS_S, RATES)


def front_row(name: str) -> list[str]:
    """The :func:`worst` of one of FRONT; ✘ at what refutes it."""
    found = worst(name)
    beyond = refuted(found)
    return [name, *(f"{'✘ ' if one in beyond else ''}{found[one]:,.0f}" for one in (*BOUNDS, *PRICES))]


def remedy_row(name: str) -> list[str]:
    """On each of TRAFFIC: the reaction to the first burst at points of a sync, and the worst of the others."""
    one, cells = REMEDIES[name], [name]
    for traffic in TRAFFIC.values():
        runs = [Run(changed(one.changes), traffic, FLYING.mean_s, one.start_s, point) for point in POINTS]
        reactions = [run.reaction_s for run in runs]
        asked = math.isfinite(max(reactions))
        cells.append(f"{min(reactions):.0f} to {max(reactions):.0f}" if asked else "no pod is asked for")
        cells += [f"{oldest(runs):.0f}", f"{max(run.curve.pod_minutes for run in runs):,.0f}"]
    return cells


def lines(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table of the handbook: its head, what is below it, and a line a row."""
    return Table(head, body, frozenset(range(1, len(head)))).markdown.strip().splitlines()


def filled(page: str, table: Sequence[str]) -> str:
    """``page`` with ``table`` in the place of the one that has its head. Raises ValueError where there is not one."""
    written = "".join(f"{line}\n" for line in table)
    text, count = re.subn(rf"^{re.escape(table[0])}\n(?:\|.*\n)*", lambda _: written, page, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"the page has {count} tables with the head {table[0]!r}")
    return text


def main() -> None:
    """Fill in both tables of the handbook."""
    text = filled(PAGE.read_text(encoding="utf-8"), lines(FRONT_HEAD, [front_row(name) for name in FRONT]))
    PAGE.write_text(filled(text, lines(REMEDIES_HEAD, [remedy_row(name) for name in REMEDIES])), encoding="utf-8")


if __name__ == "__main__":
    main()
