"""What a rule of the audit is, and what it says where it fires. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.audit.objects import Item, Path

ERROR, WARNING, INFORMATION = "error", "warning", "information"
SEVERITIES = (ERROR, WARNING, INFORMATION)  # it won't do what it says; it costs money or time; a thing to know
REMOVED = object()  # in place of a value: the field goes
CAP, LAG, ZERO, TIMES = (f"tests/defects/test_{name}.py" for name in ("cap", "lag", "zero", "times"))
TRIGGERS, OUTAGE, MANY = (f"tests/defects/test_{name}.py" for name in ("triggers", "outage", "many"))


@dataclass(frozen=True)
class Hit:
    """Where a rule fires: the field, a sentence on what it does here, and the number that shows it, None where there is none.

    ``changes`` are the cure by path, with :data:`REMOVED` for a field that goes. ``severity`` and ``cure`` replace the rule's,
    and ``item`` is the object that has the field where that is not the ScaledObject.
    """

    at: Path
    sentence: str
    number: float | None = None
    changes: Mapping[Path, Any] = field(default_factory=dict)
    severity: str = ""
    cure: str = ""
    item: Item | None = None


@dataclass(frozen=True)
class Rule:
    """A rule: ``check`` is asked of each ScaledObject (:class:`lab.audit.scaledobject.Scaled`), or once of the fleet.

    ``condition`` and ``cure`` are in the words of docs/audit.md. ``threads`` are public ones. ``test`` is the project's test
    that shows the behaviour on the real control plane; "" where it was read in the source alone. ``needs`` is the flag without
    which it can't be told.
    """

    id: str
    severity: str
    condition: str
    cure: str
    threads: tuple[str, ...]
    test: str
    needs: str
    of_fleet: bool
    check: Callable[[Any], Iterator[Hit]]

    def __call__(self, here: Any) -> list[Hit]:
        """Where it fires."""
        return list(self.check(here))


def rule(
    id: str,
    severity: str,
    condition: str,
    cure: str,
    *threads: str,
    test: str = "",
    needs: str = "",
    of_fleet: bool = False,
) -> Callable[[Callable[[Any], Iterator[Hit]]], Rule]:
    """Makes a :class:`Rule` of a function. A thread such as "keda#4483" is one of kedacore."""
    names = tuple(one if "/" in one else f"kedacore/{one}" for one in threads)

    def made(check: Callable[[Any], Iterator[Hit]]) -> Rule:
        return Rule(id, severity, condition, cure, names, test, needs, of_fleet, check)

    return made


def link(thread: str) -> str:
    """The address of a ``thread`` such as "kedacore/keda#4483"."""
    name, _, number = thread.partition("#")
    return f"https://github.com/{name}/issues/{number}"
