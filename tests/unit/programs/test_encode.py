"""Events encoded together are those that are encoded one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lab.kafka import event
from lab.programs.producer.send import encode

u64 = st.integers(0, 2**64 - 1)
fields = st.lists(st.tuples(u64, st.integers(-(2**63), 2**63 - 1)), max_size=20)


@given(fields, st.integers(0, 2**40), st.binary(min_size=232, max_size=232) | st.just(bytes(232)))
def test_together_is_one_by_one(events, first, payload):
    """Keys and values are of :mod:`lab.kafka.event`, to the last zero byte."""
    ids, stamps = (np.array([one[field] for one in events], dtype=kind) for field, kind in ((0, np.uint64), (1, np.int64)))
    keys, values = encode(ids, first, stamps, payload)
    assert keys == [event.KEY.pack(entity) for entity, _ in events]
    assert values == [event.encode(entity, first + at, stamp, payload) for at, (entity, stamp) in enumerate(events)]
