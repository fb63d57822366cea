"""What every known behaviour is shown on: one cluster and one broker of the session, and targets that go with their test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lab.cluster import Cluster
from tests.defects.target import Target, Trigger
from tests.defects.topic import Topic


@pytest.fixture
def target(cluster: Cluster) -> Iterator[Callable[..., Target]]:
    """Makes a :class:`Target` for triggers and settings; all are deleted after the test."""
    made: list[Target] = []

    def make(*triggers: Trigger, **settings: Any) -> Target:
        made.append(Target(cluster, *triggers, **settings))
        return made[-1]

    yield make
    for one in made:
        one.delete()


@pytest.fixture
def topic(bootstrap: str) -> Callable[..., Topic]:
    """Makes a :class:`Topic` on the session's broker."""

    def make(partitions: int = 10, **settings: Any) -> Topic:
        return Topic(bootstrap, partitions, **settings)

    return make
