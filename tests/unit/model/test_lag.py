"""The lag of a topic counts as it does in KEDA; :mod:`tests.unit.model.test_keda_oracle` compares it case by case."""

import pytest

from lab.inputs.triggers.common import ScalerError
from lab.model import lag
from lab.model.lag import Partition
from tests.unit.inputs.written import KAFKA, one


def topic(*lags):
    """A topic whose partitions have these lags."""
    return {"events": {number: Partition(1000 + value, 1000) for number, value in enumerate(lags)}}


def test_persistent_lag_is_told_by_the_previous_call_whoever_made_it():
    """The second of two calls within one commit interval finds every partition stuck; activation still sees the lag."""
    trigger = one(KAFKA, excludePersistentLag="true", allowIdleConsumers="true")
    first = lag.read(trigger, topic(50, 70), {})
    second = lag.read(trigger, topic(50, 70), first.previous)
    assert (first.metric, first.active) == (120, True)
    assert (second.metric, second.active, second.activation_lag) == (0, True, 120)
    assert "and 120 persistent" in second.reasons[0]


def test_a_partition_that_cannot_be_answered_for_fails_the_query():
    """And a limitation that leaves no partition."""
    with pytest.raises(ScalerError, match="not a coordinator"):
        lag.read(one(KAFKA), {"events": {0: Partition(10, 5, error="not a coordinator")}}, {})
    with pytest.raises(ScalerError, match="no partition of topic events"):
        lag.read(one(KAFKA, partitionLimitation="7-9"), topic(1, 2), {})


def test_only_the_partitions_that_are_wanted_and_answered_count():
    """In the lag and in the cap: KEDA counts the partitions of the answer, not those of the topic."""
    answered = topic(100, 100, 100, 100, 100)
    answered["events"][3] = Partition(None, 5)
    found = lag.read(one(KAFKA, partitionLimitation="0,2-3", lagThreshold="10"), answered, {})
    assert (found.lag, found.partitions, found.metric) == (200, 2, 20)
