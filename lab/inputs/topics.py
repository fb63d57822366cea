"""The topics of a trial: their number, their names, and the variables that tell a program of them. Pure.

The first topic has the name and the variable that one topic has, ``events-RUN`` and ``TOPIC``. The others are ``events-RUN-2``
and ``TOPIC_2``, ``events-RUN-3`` and ``TOPIC_3``, and so on.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from lab.errors import InputError
from lab.flags import ANY, whole
from lab.inputs.settings import declared, setting
from lab.kafka.numbering import Numbering

MOST = 8
TOPIC, TOPICS, EACH = "TOPIC", "TOPICS", "TOPIC_PARTITIONS"  # variables of a program


@dataclass(frozen=True, kw_only=True)
class TrialSettings:
    """The settings of a trial's topics, as plain data."""

    topics: int = setting(
        1, whole(1, MOST), "topics that the partitions are spread over, as many on each; events go to all of them"
    )


@dataclass(frozen=True, kw_only=True)
class Settings(TrialSettings):
    """The settings by which a program knows the topics that it writes to or reads."""

    topic: str = setting("events", ANY, "the topic; of several the first: the others have its name and -2, -3 and so on")
    topic_partitions: int = setting(0, whole(0, 10_000), "partitions of each topic, where there are several")

    @cached_property
    def numbering(self) -> Numbering:
        """The numbers of the partitions. Raises :class:`InputError` where several topics have no ``topic_partitions``."""
        if self.topics > 1 and not self.topic_partitions:
            raise InputError("command line", "--topic-partitions", 0, f"1 to 10,000 with --topics {self.topics}")
        return Numbering(names(self.topic, self.topics), self.topic_partitions)


def settings(options: Namespace) -> Settings:
    """The settings among parsed flags."""
    return Settings(**{one.name: getattr(options, one.name) for one in declared(Settings)})


def names(first: str, count: int) -> tuple[str, ...]:
    """The names of ``count`` topics, of which the ``first`` has this one."""
    return (first, *(f"{first}-{number}" for number in range(2, count + 1)))


def variables(count: int) -> tuple[str, ...]:
    """The variables that ``count`` topics are in, by which a ScaledObject names them (topicFromEnv)."""
    return (TOPIC, *(f"{TOPIC}_{number}" for number in range(2, count + 1)))


def environment(first: str, count: int, partitions: int) -> dict[str, str]:
    """The variables of a trial's pods for its ``count`` topics, with ``partitions`` on all of them, beside :data:`TOPICS`."""
    found = dict(zip(variables(count), names(first, count), strict=True))
    return found | ({EACH: str(partitions // count)} if count > 1 else {})


def numbering(given: Mapping[str, str]) -> Numbering:
    """The numbers of the partitions of a trial whose pods have these variables: :func:`environment`, and :data:`TOPICS`."""
    return Numbering(tuple(given[name] for name in variables(int(given.get(TOPICS, 1)))), int(given.get(EACH, 0)))


def check(count: int, partitions: int, where: object) -> None:
    """Raise :class:`InputError` where ``partitions`` can't be spread evenly over ``count`` topics."""
    if partitions % count:
        fits = [str(number) for number in range(1, MOST + 1) if partitions % number == 0]
        raise InputError(where, "topics", count, f"{', '.join(fits)}: each topic has as many of the {partitions} partitions")
