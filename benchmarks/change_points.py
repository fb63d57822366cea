"""What the judge of change points misses, and its false alarms: ``.tox/changes/bin/python -m benchmarks.change_points``.

20 series of nights have a change of 10 % amid them, 40 have none. A night is the median of three runs. Their spread is that of
a claim drawn from docs/evidence/verdicts.csv, whose interval is the range of repeated runs; its tails are heavier than a normal
distribution's (Student's t with 5 degrees of freedom).
"""

from __future__ import annotations

import csv
import math
import random
import statistics
from collections.abc import Iterator
from pathlib import Path

from lab.report import changes

PROJECT = Path(__file__).parents[1]
NIGHTS, CHANGED_AT, CHANGE, RUNS = 50, 30, 0.10, 3
CHANGED, UNCHANGED = 20, 40
NEAR = 2  # a change point this many nights off is the seeded one
RANGE = {3: 1.693, 5: 2.326, 6: 2.534}  # of n normal values, in standard deviations
CONFIRMED_AFTER = (1, 3, 5)  # nights from a change on until it is shown
GRID = [(p_value, magnitude) for p_value in (0.01, 0.001, 0.0001) for magnitude in (0.0, 0.05)]
SEED = 44


def spreads() -> list[float]:
    """The standard deviation of a run over the claim's value, for each claim of the table that has one."""
    with (PROJECT / "docs" / "evidence" / "verdicts.csv").open(newline="", encoding="utf-8") as table:
        rows = [row for row in csv.DictReader(table) if row["kind"] == "claim" and row["low"] and int(row["n"]) in RANGE]
    found = []
    for row in rows:
        value, width = float(row["value"]), float(row["high"]) - float(row["low"])
        if value > 0 and width > 0 and "first less second" not in row["quantity"]:
            found.append(width / RANGE[int(row["n"])] / value)
    return sorted(found)


def noise(random_: random.Random) -> float:
    """A value of Student's t with 5 degrees of freedom, of variance 1."""
    chi = sum(random_.gauss(0, 1) ** 2 for _ in range(5))
    return random_.gauss(0, 1) / math.sqrt(chi / 5) * math.sqrt(3 / 5)


def series(spread: float, change: float, random_: random.Random) -> list[float]:
    """The nights of one measure, 100 before the change."""
    means = [100 * (1 + change * (night >= CHANGED_AT)) for night in range(NIGHTS)]
    return [statistics.median(mean * (1 + spread * noise(random_)) for _ in range(RUNS)) for mean in means]


def alarms(values: list[float], p_value: float, magnitude: float) -> dict[int, dict[int, int]]:
    """By the nights that confirm it: each change point that is shown on any night, and how many nights had passed by then."""
    shown: dict[int, dict[int, int]] = {nights: {} for nights in CONFIRMED_AFTER}
    for end in range(changes.FEWEST, len(values) + 1):
        for index, _ in changes.points(values[:end], p_value, magnitude):
            for nights in CONFIRMED_AFTER:
                if end - index >= nights:
                    shown[nights].setdefault(index, end - CHANGED_AT)
    return shown


def score(p_value: float, magnitude: float, drawn: list[float]) -> Iterator[str]:
    """A line for each count of nights that confirm a change: what was missed or falsely shown, and how late one was shown."""
    random_ = random.Random(SEED)
    judged = []
    for place in range(CHANGED + UNCHANGED):
        change = CHANGE * random_.choice((-1, 1)) if place < CHANGED else 0.0
        judged.append((change, alarms(series(random_.choice(drawn), change, random_), p_value, magnitude)))
    for nights in CONFIRMED_AFTER:
        changed = [shown[nights] for change, shown in judged if change]
        near = [{index: at for index, at in shown.items() if abs(index - CHANGED_AT) <= NEAR} for shown in changed]
        waits = [min(found.values()) for found in near if found]
        beside = sum(len(shown) > len(found) for shown, found in zip(changed, near, strict=True))
        without = sum(bool(shown[nights]) for change, shown in judged if not change)
        late = f"{statistics.median(waits):.0f}" if waits else "-"
        yield f"{p_value:<8} {magnitude:<10} {nights:<7} {CHANGED - len(waits):<13} {beside:<13} {without:<12} {late}"


def main() -> None:
    """Print the spreads, and a line for each pair of a p-value and a minimum magnitude, and each count of confirming nights."""
    drawn = spreads()
    low, middle, high = statistics.quantiles(drawn, n=4)
    print(f"{len(drawn)} claims: a run's spread is {low:.1%}, {middle:.1%}, {high:.1%} of the value (quartiles)")
    steady = [one for one in drawn if one <= CHANGE]
    for name, given in (("all claims", drawn), (f"the {len(steady)} whose spread is at most {CHANGE:.0%}", steady)):
        print(f"\n{name}\np-value  magnitude  nights  missed of {CHANGED}  false beside  false of {UNCHANGED}  shown after")
        for p_value, magnitude in GRID:
            for line in score(p_value, magnitude, given):
                print(line, flush=True)


if __name__ == "__main__":
    main()
