"""A trial that was invalid is run once more: the machine may have been disturbed for that one time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

log = logging.getLogger("lab.trial")

P = ParamSpec("P")
R = TypeVar("R")


def once_more(execute: Callable[P, R], invalid: Callable[[R], str]) -> Callable[P, R]:
    """A function that executes a trial as ``execute`` does, and once more when ``invalid`` gives a reason for its result.

    It returns the second result, valid or not: a machine that disturbs two attempts disturbs the third. ``execute`` leaves
    every attempt a record of its own, so both stay in the session.
    """

    def executed(*given: P.args, **named: P.kwargs) -> R:
        result = execute(*given, **named)
        if why := invalid(result):
            log.warning("invalid, and run once more: %s", why)
            result = execute(*given, **named)
        return result

    return executed
