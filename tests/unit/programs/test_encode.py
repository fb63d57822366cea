"""Events encoded together are those that are encoded one by one, and their payloads are those of the seed."""

import random
import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lab.kafka import event
from lab.programs.producer.send import Payloads, encode

u64 = st.integers(0, 2**64 - 1)
fields = st.lists(st.tuples(u64, st.integers(-(2**63), 2**63 - 1)), max_size=20)


@given(fields, st.integers(0, 2**40), st.binary(min_size=232, max_size=232) | st.just(bytes(232)))
def test_together_is_one_by_one(events, first, payload):
    """Keys and values are of :mod:`lab.kafka.event`, to the last zero byte."""
    ids, stamps = (np.array([one[field] for one in events], dtype=kind) for field, kind in ((0, np.uint64), (1, np.int64)))
    keys, values = encode(ids, first, stamps, payload)
    assert keys == [event.KEY.pack(entity) for entity, _ in events]
    assert values == [event.encode(entity, first + at, stamp, payload) for at, (entity, stamp) in enumerate(events)]


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=5), st.sampled_from([1, 116, 232]))
def test_a_payload_depends_on_the_seed_and_the_place_alone(counts, own):
    """However many are taken at a time, the same event has the same payload."""
    several, one = Payloads(7, own), Payloads(7, own)
    assert np.concatenate([several.take(count) for count in counts]).tolist() == one.take(sum(counts)).tolist()


@given(st.integers(0, 100))
def test_half_a_payload_of_its_own_does_not_compress_to_nothing(seed):
    """A batch of a thousand events keeps the random half of each, whatever compresses it."""
    ids = np.arange(1000, dtype=np.uint64)
    _, values = encode(ids, 0, np.arange(1000), Payloads(seed, 116).take(1000))
    assert 0.45 < len(zlib.compress(b"".join(values), 1)) / 256_000 < 0.6
    _, alike = encode(ids, 0, np.arange(1000), Payloads(seed).take(1000))
    assert len(zlib.compress(b"".join(alike), 1)) / 256_000 < 0.1


def test_a_payload_that_is_nobodys_own_is_as_it_always_was():
    """The events of a trial that says nothing of its payloads are byte by byte those of before."""
    assert zlib.crc32(Payloads(1).take(10)) == zlib.crc32(random.Random(1).randbytes(232))
