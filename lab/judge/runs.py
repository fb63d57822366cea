"""The runs of one trial. A measure takes them like a single record, and measures each.

cpu = trials.blocks({"CPU": …})["CPU"]        # six records
claim(hold(cpu).growth > 500, "…")            # held only where it holds in each of the six
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Runs(tuple[T, ...]):
    """What each run left, in the order of the blocks: records, or what was measured of them."""


def each(compute: Callable[..., T], given: Sequence[Any], named: Mapping[str, Any]) -> list[T]:
    """What ``compute`` returns for each run of the arguments that are :class:`Runs`; a single result where none is.

    Raises ``ValueError`` for runs that are not as many in each.
    """
    lengths = {len(one) for one in (*given, *named.values()) if isinstance(one, Runs)}
    if len(lengths) > 1 or 0 in lengths:
        raise ValueError(f"the runs to measure are {' and '.join(map(str, sorted(lengths)))} in number: they must be as many")

    def of(value: Any, number: int) -> Any:
        return value[number] if isinstance(value, Runs) else value

    return [
        compute(*(of(value, number) for value in given), **{name: of(value, number) for name, value in named.items()})
        for number in range(next(iter(lengths), 1))
    ]
