"""The ways a run can end: held, an objective that did not hold, bad input, or a fault of the lab itself; each an exit code."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")

HELD, BREACHED, BAD_INPUT, FAULT = 0, 1, 2, 3  # exit codes of a session and of every command (docs/decisions)


class Breach(AssertionError):
    """Objectives that did not hold, a line each: breached, or no data. The test failed; the lab did its work."""


class InputError(ValueError):
    """Something the user wrote can't be used. One line: where, which field, which value, what is allowed."""

    def __init__(self, where: object, field: str, value: object, allowed: str) -> None:
        self.where, self.field, self.value, self.allowed = str(where), field, value, allowed
        super().__init__(f"{where}: {field}: {value!r} is not allowed; allowed: {allowed}")


class LabFault(RuntimeError):
    """The lab could not do its work (a component died, a deadline passed): the trial is broken, not failed."""


class InvalidTrial(LabFault):
    """A trial that failed a gate of validity: no objective is judged by it, so the test is broken and not failed."""


class NoData(LookupError):
    """The record does not hold what a measure needs: "no data", never a pass."""


def known(value: T | None, what: str) -> T:
    """``value``, or :class:`NoData` saying ``what`` there is none of."""
    if value is None:
        raise NoData(f"no {what}")
    return value
