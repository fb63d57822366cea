"""The topic of each trigger on lag, among those that a group reads. Pure.

The lab's variables, TOPIC, TOPIC_2 and so on, are the first topic, the second and so on. Whatever else a trigger names is a
topic of the user's: these take the places that are left, in the order in which they appear.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from lab.errors import InputError
from lab.inputs.topics import MOST, variables
from lab.inputs.triggers.external import PersistentLag
from lab.inputs.triggers.kafka import Kafka
from lab.inputs.triggers.metadata import Named
from lab.inputs.triggers.parsing import Trigger


def named(trigger: Trigger) -> Named:
    """The topic as ``trigger`` names it: not at all where it reads every topic of the group, and where it reads no lag."""
    if isinstance(trigger, Kafka):
        return trigger.topic
    if isinstance(trigger, PersistentLag):
        return Named(trigger.metadata.get("topic", ""), trigger.metadata.get("topicFromEnv", ""))
    return Named("", "")


def places(triggers: Sequence[Trigger]) -> tuple[int | None, ...]:
    """By trigger, the place of its topic among those of the group, from 0; None for a trigger that names none."""
    words = [one.literal or f"${one.variable}" if one.given else "" for one in map(named, triggers)]
    own = {f"${variable}": place for place, variable in enumerate(variables(MOST))}
    taken = {own[word] for word in words if word in own}
    left = (place for place in itertools.count() if place not in taken)
    theirs = {word: next(left) for word in dict.fromkeys(words) if word and word not in own}
    return tuple((own | theirs)[word] if word else None for word in words)


def check(triggers: Sequence[Trigger], topics: int, where: object) -> None:
    """Raise :class:`InputError` for the first of ``triggers`` that reads a further topic than the ``topics`` of the group."""
    read = places(triggers)
    for index, (trigger, place) in enumerate(zip(triggers, read, strict=True)):
        if place is not None and place >= topics:
            topic = named(trigger)
            field, value = ("topic", topic.literal) if topic.literal else ("topicFromEnv", topic.variable)
            others = [named(one) for one, its in zip(triggers, read, strict=True) if its is not None and its < topics]
            there = dict.fromkeys(one.literal or one.variable for one in others) or variables(topics)
            allowed = f"{', '.join(there)}, or topics: {place + 1} in the workload (at most {MOST})"
            raise InputError(where, f"spec.triggers[{index}].metadata.{field}", value, allowed)
