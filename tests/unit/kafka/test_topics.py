"""The identity of a topic, on a real broker."""

import uuid

import pytest

from lab.errors import LabFault
from lab.kafka import topics
from lab.wait import until

pytestmark = pytest.mark.services


def test_a_topic_that_is_made_anew_has_another_id(bootstrap):
    """The same one has the same id, whatever is added to it; one that is not there has none."""
    name = f"events-{uuid.uuid4().hex[:8]}"
    topics.create(bootstrap, {name: 1})
    first = topics.identity(bootstrap, name)
    topics.grow(bootstrap, name, 2)
    assert topics.identity(bootstrap, name) == first
    topics.delete(bootstrap, [name])
    faults = []

    def gone():
        try:
            topics.identity(bootstrap, name)
        except LabFault as fault:
            faults.append(str(fault))
        return bool(faults)

    until(gone, 120, "the topic is gone")
    assert name in faults[0]
    topics.create(bootstrap, {name: 1})
    assert topics.identity(bootstrap, name) != first
