"""Which tests' records are kept: of each experiment and scenario the one that adds least. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

MOST_BYTES = 6_000_000


@dataclass(frozen=True)
class Choice:
    """The tests that are kept, the records they need, and why an experiment has none."""

    tests: Sequence[str]
    records: Set[str]
    without: Mapping[str, str]


def choose(needs: Mapping[str, Set[str]], sizes: Mapping[str, int], most: int = MOST_BYTES) -> Choice:
    """Of each :func:`subject` in ``needs`` (records by test id) the test whose records add the fewest bytes to ``sizes``' sum.

    They come cheapest first, so that where ``most`` bytes don't do, the dearest is left out. Equal inputs, equal choice.
    """
    tests: list[str] = []
    records: set[str] = set()
    left = set(map(subject, needs))
    total = 0
    while left:
        adds = {
            test: sum(sizes[record] for record in needed - records) for test, needed in needs.items() if subject(test) in left
        }
        best = min(adds, key=lambda test: (adds[test], test))
        if total + adds[best] > most:
            without = dict.fromkeys(left, f"its smallest records would make {total + adds[best]:,} bytes of {most:,}")
            return Choice(sorted(tests), records, without)
        tests.append(best)
        records |= needs[best]
        total += adds[best]
        left.remove(subject(best))
    return Choice(sorted(tests), records, {})


def subject(test: str) -> str:
    """What the test with this id is about: a scenario, whose tests are in a folder, or an experiment, whose are in a module."""
    module = test.partition("::")[0]
    return module.rpartition("/")[0] if module.startswith("tests/scenarios/") else module
