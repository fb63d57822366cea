"""Follows the sides of a duet at the same time, each in a thread of its own; one that can't go on ends the other too."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from lab.errors import LabFault
from lab.trial.stage import Stage

T = TypeVar("T")
Meet = Callable[[], None]

MEET_S = 180.0  # by which a side may come later to an event: a step may take 90 s to settle, and is then observed
GIVEN_UP_S = 30.0  # a wait asks each second whether it is to end
LOOK_S = 0.5


def together(follow: Callable[[Stage, Meet], T], stages: Sequence[Stage]) -> list[T]:
    """What ``follow`` returns for each of ``stages``, in their order. A single one is followed in this thread.

    ``follow`` is given a function that returns when every side has called it, and raises :class:`LabFault` when one has not
    within MEET_S. Raises what the first side raised that could not go on, and ``KeyboardInterrupt``; the others have then been
    told to end.
    """
    if len(stages) == 1:
        return [follow(stages[0], lambda: None)]
    barrier, failed = threading.Barrier(len(stages)), list[BaseException]()
    results: dict[int, T] = {}

    def meet() -> None:
        try:
            barrier.wait(MEET_S)
        except threading.BrokenBarrierError:
            raise LabFault(f"the sides of the duet did not come to their event together: not within {MEET_S:g} s") from None

    def give_up() -> None:
        for stage in stages:
            stage.stop.set()
        barrier.abort()

    def side(number: int) -> None:
        try:
            results[number] = follow(stages[number], meet)
        except BaseException as error:
            failed.append(error)
            give_up()

    threads = [threading.Thread(target=side, args=(n,), name=f"side-{n}", daemon=True) for n in range(len(stages))]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(LOOK_S)
    except KeyboardInterrupt:
        give_up()
        for thread in threads:
            thread.join(GIVEN_UP_S)
        raise
    if failed:
        raise failed[0]
    return [results[number] for number in range(len(stages))]
