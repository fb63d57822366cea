"""The ways a run can end: held, an objective that did not hold, bad input, or a fault of the lab itself; each an exit code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")

HELD, BREACHED, BAD_INPUT, FAULT = 0, 1, 2, 3  # exit codes of a session and of every command (docs/decisions)
LONGEST = 286  # characters of a line that says what is wrong: with a command's name before it, 300
_SHOWN = 80  # characters of a value in it
_MOST = 40  # lines that are said of one file
_LONGEST_WORD = 60  # that is compared with others


class Breach(AssertionError):
    """Objectives that did not hold, a line each: breached, or no data. The test failed; the lab did its work."""


class InputError(ValueError):
    """Something the user wrote can't be used. One line: where, which field, which value, what is allowed.

    A ``where`` that knows the lines of its fields (:class:`lab.yamltext.Source`) adds the line, and one that knows what they
    are called in its file names them so. ``meant`` is what was probably meant. A value of None is one that is missing.
    """

    more = 0  # errors that are not among those that it stands for

    def __init__(self, where: object, field: str, value: object, allowed: str, meant: str = "") -> None:
        field = getattr(where, "field", str)(field)
        self.where, self.field, self.value, self.allowed, self.meant = str(where), field, value, allowed, meant
        self.line: int | None = getattr(where, "line", lambda _: None)(field)
        said = "missing" if value is None else f"{shown(value)} is not allowed"
        hints = [f"did you mean {meant}?"] if meant else []
        hints += [f"allowed: {allowed}"] if allowed else []
        super().__init__(one_line(f"{_place(where, self.line)}: {field}: {said}; {' '.join(hints)}"))

    @property
    def each(self) -> tuple[InputError, ...]:
        """The errors that it stands for: itself."""
        return (self,)


class Unusable(InputError):
    """A file, or a part of it, that can't be read at all: ``why`` says so in words. ``line`` is its line, from 1."""

    def __init__(self, where: object, why: str, line: int | None = None) -> None:
        super().__init__(where, "", why, "")
        self.line = line
        self.args = (one_line(f"{_place(where, line)}: {why}"),)


class InputErrors(InputError):
    """Several at once, a line each; where, field, value and what is allowed are those of the first."""

    def __init__(self, errors: Iterable[InputError], more: int = 0) -> None:
        self._each, self.more = tuple(errors), more
        first = self._each[0]
        super().__init__(first.where, first.field, first.value, first.allowed)
        lines = [str(error) for error in self._each] + ([f"{first.where}: and {more:,} more like these"] if more else [])
        self.args = ("\n".join(lines),)

    @property
    def each(self) -> tuple[InputError, ...]:
        """The errors that it stands for."""
        return self._each


def _place(where: object, line: int | None) -> str:
    return f"{where}:{line}" if line else str(where)


def one_line(text: str) -> str:
    """``text`` as one line that a terminal shows as it is, of at most :data:`LONGEST` characters."""
    return shortened(printable(text[: 2 * LONGEST]), LONGEST)


def printable(text: str) -> str:
    """``text`` as one line that a terminal shows as it is."""
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def shown(value: object) -> str:
    """``value`` as a line shows it."""
    return shortened(repr(value), _SHOWN)


def shortened(text: str, most: int) -> str:
    """``text``, or its beginning and an ellipsis where it has more than ``most`` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


@dataclass
class _Found:
    """The errors of one text, and the places that they make useless: what follows from an error is not said."""

    errors: list[InputError] = field(default_factory=list)
    more: int = 0
    places: set[tuple[str, str]] = field(default_factory=set)

    def take(self, error: InputError, also: Iterable[str] = ()) -> None:
        """Keep all that ``error`` stands for."""
        self.more += error.more
        for one in error.each:
            self._add(one, also)

    def _add(self, error: InputError, also: Iterable[str]) -> None:
        if not self.touches(error.where, error.field):
            if len(self.errors) < _MOST:
                self.errors.append(error)
            else:
                self.more += 1
        self.places |= {(error.where, place) for place in (error.field, *also) if place}

    def touches(self, where: str, place: str) -> bool:
        """Whether ``place``, or what it lies in, was refused."""
        ends = [n for n, letter in enumerate(place) if letter in ".["]
        return any((where, place[:end]) in self.places for end in (*ends, len(place)))

    def within(self, where: str, place: str) -> bool:
        """Whether a part of ``place`` was refused."""
        return any(source == where and one.startswith((f"{place}.", f"{place}[")) for source, one in self.places)


_FOUND: ContextVar[_Found | None] = ContextVar("found", default=None)


def report(error: InputError, *also: str) -> None:
    """Keep ``error`` for the end of the block of :func:`together` around it; raise it where there is none.

    ``also`` are further fields that can't be read because of it. What follows from an earlier error is dropped.
    """
    found = _FOUND.get()
    if found is None:
        raise error
    found.take(error, also)


def refused(where: object, *fields: str) -> bool:
    """Whether one of ``fields``, or a part of it, was refused already, so that what is compared with it means nothing."""
    found = _FOUND.get()
    return found is not None and any(found.touches(str(where), one) or found.within(str(where), one) for one in fields)


@contextmanager
def together() -> Iterator[None]:
    """Raise all errors that are reported, or raised, within the block at its end, as one :class:`InputError`.

    Until then what reads a field goes on with a value in place of a wrong one, so nothing that the block makes is used.
    """
    found = _Found()
    token = _FOUND.set(found)
    try:
        yield
    except InputError as error:
        found.take(error)
    finally:
        _FOUND.reset(token)
    files = [error.where for error in found.errors]
    found.errors.sort(key=lambda error: (files.index(error.where), error.line or 0))
    if found.errors:
        raise found.errors[0] if len(found.errors) == 1 else InputErrors(found.errors, found.more)


@contextmanager
def step() -> Iterator[None]:
    """Report the error that ends the block; what comes after the block is still read."""
    try:
        yield
    except InputError as error:
        report(error)


def closest(word: object, choices: Iterable[object]) -> str:
    """The one of ``choices`` that a misspelt ``word`` probably means; "" where none is like it."""
    from difflib import get_close_matches  # a pod that starts needs none

    if not isinstance(word, str) or len(word) > _LONGEST_WORD:
        return ""
    known = {str(one).lower(): str(one) for one in choices}
    found = get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    return known[found[0]] if found else ""


class LabFault(RuntimeError):
    """The lab could not do its work (a component died, a deadline passed): the trial is broken, not failed."""


class NoAnswer(LabFault):
    """A server can't be reached, or has not answered in time: it may the next time."""


class InvalidTrial(LabFault):
    """A trial that failed a gate of validity: no objective is judged by it, so the test is broken and not failed."""


class NoData(LookupError):
    """The record does not hold what a measure needs: "no data", never a pass."""


def known(value: T | None, what: str) -> T:
    """``value``, or :class:`NoData` saying ``what`` there is none of."""
    if value is None:
        raise NoData(f"no {what}")
    return value
