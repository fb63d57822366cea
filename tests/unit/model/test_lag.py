"""The lag of a topic counts as it does in KEDA: by partition, and under a cap."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


offsets = st.integers(0, 10**12)
partition = st.builds(Partition, end=st.none() | offsets, committed=st.none() | offsets, start=st.none() | offsets)
settings = st.fixed_dictionaries(
    {
        "lagThreshold": st.integers(1, 10**6).map(str),
        "offsetResetPolicy": st.sampled_from(["latest", "earliest"]),
        "excludePersistentLag": st.sampled_from(["true", "false"]),
        "scaleToZeroOnInvalidOffset": st.sampled_from(["true", "false"]),
    }
)
caps = st.sampled_from([{}, {"limitToPartitionsWithLag": "true"}, {"ensureEvenDistributionOfPartitions": "true"}])
events = st.dictionaries(st.integers(0, 50), partition, min_size=1, max_size=12)


@given(settings, caps, events)
def test_the_cap_never_leaves_more_than_a_bound_and_a_bit(plain, cap, found):
    """Less than (bound + 1) thresholds, with an even distribution at most P of them, and never below 0, as lag can be."""
    trigger = one(KAFKA, **plain, **cap)
    read = lag.read(trigger, {"events": found}, {})
    bound = read.lagging if trigger.limit_to_lagging else read.partitions
    assert 0 <= read.metric < (bound + 1) * trigger.lag_threshold
    if trigger.even:
        assert read.metric <= bound * trigger.lag_threshold
