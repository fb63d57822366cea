"""What the simulator costs: a day of 10,000 partitions, 1,000 policies, how both grow; the peer is a loop in plain Python."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol
from unittest.mock import patch

import altair as alt
import numpy as np

from lab import paths
from lab.charts import drawing
from lab.foresee import simulate as run
from lab.foresee import variants
from lab.foresee.curve import Curve
from lab.foresee.group import NOBODY, Consumers, Group
from lab.foresee.simulate import simulate, simulate_many
from lab.foresee.situation import Situation
from lab.inputs import policy
from lab.inputs.profile import Profile, Step, load
from lab.inputs.scaledobject import ScaledObject

DAY, HOUR = 86_400.0, 3600.0
RATE = 100.0  # messages/s of a pod
PARTITIONS = (10, 100, 1_000, 10_000)
POLICIES = (1, 10, 100, 1_000)
PEER_PARTITIONS = (10, 100, 1_000)  # a loop over more takes minutes
FEW = 24
PROFILE = "plateau"
CHART = paths.PROJECT / "docs" / "img" / "simulate-growth.svg"


class Show(Protocol):
    """How a figure is printed beside its peer's."""

    def __call__(self, what: str, ours: float, peer: float, unit: str, peer_name: str) -> None: ...  # noqa: D102


class PlainGroup(Group):
    """The same group, stepped by a loop over its partitions."""

    def step(self, seconds: float, rate: float) -> None:
        """What :meth:`Group.step` does, one partition after the other."""
        most = self._consumers.rate * seconds
        throughput = np.zeros(len(self.owner))
        for index, (owners, backlog, processed) in enumerate(zip(self.owner, self.backlog, self.processed, strict=True)):
            wanted: list[float] = []
            by_pod: dict[int, float] = {}
            for owner, left, share in zip(owners.tolist(), backlog.tolist(), self._shares.tolist(), strict=True):
                wanted.append(0.0 if owner == NOBODY else min(left + share * rate * seconds, most))
                by_pod[owner] = by_pod.get(owner, 0.0) + wanted[-1]
            total = 0.0
            for number, owner in enumerate(owners.tolist()):
                served = wanted[number] * min(1.0, most / max(by_pod[owner], 1e-9))
                backlog[number] += self._shares[number] * rate * seconds - served
                processed[number] += served
                total += served
            throughput[index] = total / seconds
        self._remember(seconds, throughput)


def day(partitions: int) -> Situation:
    """A day in 24 steps, quiet at night and four times as much at noon, when half of the pods that could work are needed."""
    pods = min(partitions, 100)
    rates = [pods * RATE / 2 * (0.625 - 0.375 * math.cos(2 * math.pi * hour / 24)) for hour in range(24)]
    steps = tuple(Step(hour * HOUR, rate, "baseline" if hour < 6 else "day") for hour, rate in enumerate(rates))
    return Situation(Profile(steps, DAY), np.full(partitions, 1 / partitions), Consumers(RATE, 3.0))


def scaled(partitions: int, threshold: int = 150) -> ScaledObject:
    """Policy lag-4500 with as many pods as could work, and another lagThreshold."""
    content = policy.load(paths.MANIFESTS / "scaledobjects" / "lag-4500.yaml")
    assert isinstance(content, ScaledObject)
    changes: variants.Changes = {variants.THRESHOLD: threshold, variants.MOST: max(content.min_replicas, min(partitions, 100))}
    return variants.with_changes(content, changes).scaled


def seconds(work: Callable[[], object], times: int = 2) -> float:
    """How long ``work`` takes, s: the best of ``times``, for what else runs only ever adds."""
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def _simulated(count: int) -> Curve:
    return simulate(day(count), scaled(count))


def _collected(count: int, curves: list[Curve]) -> None:
    curves.append(_simulated(count))


def by_partitions() -> dict[int, float]:
    """Seconds that a day takes, by the number of partitions."""
    return {count: seconds(partial(_simulated, count)) for count in PARTITIONS}


def plain() -> dict[int, float]:
    """The same with the loop in plain Python. Its curve is checked to be the same one."""
    found = {}
    for count in PEER_PARTITIONS:
        curves: list[Curve] = []
        with patch.object(run, "Group", PlainGroup):
            found[count] = seconds(partial(_collected, count, curves), 1)
        ours = simulate(day(count), scaled(count))
        assert np.array_equal(ours.replicas, curves[0].replicas)
        assert np.abs(ours.lag - curves[0].lag).max() <= count  # each partition's lag is rounded down
    return found


def by_policies() -> dict[int, float]:
    """Seconds for so many policies at once on the committed step, by their number."""
    traffic = load(paths.PROFILES / f"{PROFILE}.yaml")
    situation = Situation(traffic, np.full(FEW, 1 / FEW), Consumers(RATE, 3.0))
    every = [scaled(FEW, 50 + number) for number in range(max(POLICIES))]
    return {count: seconds(partial(simulate_many, situation, every[:count])) for count in POLICIES}


def chart(partitions: dict[int, float], peer: dict[int, float], policies: dict[int, float], file: Path) -> None:
    """Both growths, on logarithmic axes, into ``file``."""
    panels = []
    series = {"numpy": (drawing.DELIVERED, partitions), "a loop in plain Python": (drawing.ASKED, peer)}
    for title, unit, drawn in (
        ("A day, one policy", "partitions", series),
        (f"Profile {PROFILE}, {FEW} partitions", "policies at once", {"numpy": (drawing.DELIVERED, policies)}),
    ):
        rows = [{"n": n, "s": round(s, 4), "series": name} for name, (_, found) in drawn.items() for n, s in found.items()]
        colour = alt.Scale(domain=list(drawn), range=[colour for colour, _ in drawn.values()])
        line = alt.Chart(drawing.inline(rows), title=title).mark_line(point=True)
        x = alt.X("n:Q", title=unit, scale=alt.Scale(type="log"), axis=alt.Axis(format="~s", values=[1, *PARTITIONS]))
        y = alt.Y("s:Q", title="seconds", scale=alt.Scale(type="log"), axis=alt.Axis(format="~g", tickCount=5))
        panels.append(
            line.encode(x=x, y=y, color=alt.Color("series:N", scale=colour, title=None)).properties(width=330, height=230)
        )
    whole = alt.vconcat(alt.hconcat(*panels, spacing=40).resolve_scale(color="independent"))
    whole.title = alt.TitleParams("What a simulation takes", subtitle="one core; both axes logarithmic", anchor="start")
    file.write_text(drawing.svg(drawing.styled(whole)))


def main(show: Show) -> None:
    """Measure, print, and draw the growth into docs/img."""
    partitions, peer, policies = by_partitions(), plain(), by_policies()
    for count in PEER_PARTITIONS:
        show(f"a day of {count:,} partitions", partitions[count], peer[count], "s", "a loop in plain Python")
    print(f"a day by partitions: {', '.join(f'{count:,}: {s:.2f} s' for count, s in partitions.items())}")
    print(f"{PROFILE} by policies: {', '.join(f'{count:,}: {s:.2f} s' for count, s in policies.items())}", flush=True)
    most = max(POLICIES)
    show(f"a policy of {most:,}", policies[most] / most * 1000, policies[1] * 1000, "ms", "one alone")
    chart(partitions, peer, policies, CHART)
    print(CHART.relative_to(paths.PROJECT))
