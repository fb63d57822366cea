"""The two ways a run can end other than with verdicts: bad input, or a fault of the lab itself.

A breached objective is neither: it is an ``AssertionError`` raised by :mod:`lab.objective`.
"""

from __future__ import annotations


class InputError(ValueError):
    """Something the user wrote can't be used. One line: where, which field, which value, what is allowed."""

    def __init__(self, where: object, field: str, value: object, allowed: str) -> None:
        self.where, self.field, self.value, self.allowed = str(where), field, value, allowed
        super().__init__(f"{where}: {field}: {value!r} is not allowed; allowed: {allowed}")


class LabFault(RuntimeError):
    """The lab could not do its work (a component died, a deadline passed): the trial is broken, not failed."""
