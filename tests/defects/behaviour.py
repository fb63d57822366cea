"""What a test says of a known behaviour, as data: docs/known-behaviours.md is made from it, and a test is held against it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
Test = TypeVar("Test", bound=Callable[..., object])


@dataclass(frozen=True)
class Behaviour:
    """A question that users ask, and its answer at the pinned version; every text is a part of a page.

    ``threads`` are public ones ("kedacore/keda#4483"), or a name such as "KIP-1327". ``reported`` is what users say there,
    ``shown`` what the test sees, ``cure`` what to set instead and ``price`` what that costs. ``seen`` is False for a report
    that the pinned version does not show; ``shown`` then says what was tried.
    """

    question: str
    threads: tuple[str, ...]
    reported: str
    shown: str
    cure: str
    price: str
    seen: bool = True

    def __post_init__(self) -> None:
        """Refuse a behaviour of which a text is missing."""
        for field in fields(self):
            if getattr(self, field.name) in ("", ()):
                raise ValueError(f"a behaviour without {field.name}: {self.question or self.threads}")


def behaviour(**texts: Any) -> Callable[[Test], Test]:
    """Mark a test as the one that shows the :class:`Behaviour` of these ``texts``. ``ValueError`` when one is missing."""
    known = Behaviour(**texts)

    def mark(test: Test) -> Test:
        marked: Test = pytest.mark.live(pytest.mark.defects(pytest.mark.behaviour(known=known)(test)))
        return marked

    return mark


def of(test: object) -> Behaviour | None:
    """The behaviour that a test is marked with; None for any other object."""
    marks = getattr(test, "pytestmark", ())
    return next((mark.kwargs["known"] for mark in marks if getattr(mark, "name", "") == "behaviour"), None)


def judge(found: T, *, known: T, cured: T) -> None:
    """Fail unless ``found`` is the ``known`` behaviour; with "cured upstream" where it is what users asked for, ``cured``."""
    if found == cured:
        pytest.fail(f"cured upstream: {found!r} instead of {known!r}; the test's metadata and the page are out of date")
    assert found == known, f"neither the known behaviour ({known!r}) nor its cure ({cured!r}): {found!r}"
