"""Traffic: the schedule is exact, ordered and keeps its shape under compression; entities and their partitions go by seed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab import paths
from lab.inputs import scale as scales
from lab.inputs.keys import BLOCK, Entities, partitions_of, shares
from lab.inputs.profile import Profile, Step, build, load
from tests.thoroughness import examples
from tests.unit.inputs.written import refused

rates = st.floats(0.5, 5_000)
lengths = st.floats(0.05, 20)


@st.composite
def profiles(draw, rate=rates):
    """Profiles of one to six steps."""
    spans = draw(st.lists(st.tuples(lengths, rate), min_size=1, max_size=6))
    at, steps = 0.0, []
    for number, (length, value) in enumerate(spans):
        steps.append(Step(at, value, f"phase-{number % 3}"))
        at += length
    return Profile(tuple(steps), at)


@given(profiles())
def test_times_and_counts_are_inverse(profile):
    """Event i is not due before its time and is due at it."""
    chosen = sorted({0, profile.total // 2, profile.total - 1} & set(range(profile.total)))
    for index in chosen:
        when = float(profile.times(index, index + 1)[0])
        little = 2e-6 / min(step.rate for step in profile.steps)
        assert profile.due(when + little) > index
        assert when < little or profile.due(when - little) <= index


def test_a_single_event_is_due_when_its_step_begins():
    """One event a second is not due a second later: the producer would send it late by as much."""
    single = Profile((Step(0, 0, "baseline"), Step(5, 1, "spike"), Step(6, 0, "drain")), 40)
    assert [single.due(at) for at in (0, 4.99, 5, 5.5, 6, 40)] == [0, 0, 1, 1, 1, 1]


@given(profiles(rate=st.one_of(st.just(0.0), rates)), st.integers(1, 999))
def test_times_are_ordered_within_the_profile_and_the_same_in_parts(profile, cut):
    """The schedule never runs backwards, starts at or after 0 and ends by the profile's end, also across silent steps."""
    total = min(profile.total, 50_000)
    times, cut = profile.times(0, total), min(cut, total)
    assert np.all(np.diff(times) >= -1e-9)
    assert np.all((times >= 0) & (times <= profile.duration + 1e-6))
    assert np.array_equal(times, np.concatenate((profile.times(0, cut), profile.times(cut, total))))


@given(profiles(), st.sampled_from([1.0, 2.0, 6.0, 30.0]))
def test_compression_keeps_rates_and_divides_times(profile, factor):
    """So the number of events is divided too. What a pod is given as YAML is the profile that was read."""
    small = profile.compressed(factor, 1)
    assert small.total == pytest.approx(profile.total / factor, abs=1.01)
    assert [step.rate for step in small.steps] == [step.rate for step in profile.steps]
    assert small.duration == pytest.approx(profile.duration / factor)
    assert build(profile.to_dict(), "test") == profile


def test_events_get_as_old_as_the_backlog_lasts():
    """A backlog of 600 is left after two bursts with too little time between them, and 300 a second are done."""
    each = {0: 100, 10: 400, 14: 250, 18: 500, 20: 0}
    profile = Profile(tuple(Step(at, rate, "step") for at, rate in each.items()), 60)
    assert profile.oldest_s(300) == pytest.approx(600 / 300)
    assert profile.oldest_s(500) == 0


@pytest.mark.parametrize("kind", ["bursty", "sawtooth"])
def test_repeating_profiles_build(kind):
    """Bursty and sawtooth rise and fall as often as asked."""
    profile = build({"kind": kind, "rate": 10, "duration": 3600, "baseline": 10, "spike_hold": 20, "bursts": 3}, "test")
    peaks = [step for step in profile.steps if step.rate == 100]
    assert len(peaks) == 3


GOOD = {"kind": "step", "rate": 100, "baseline": 60, "spike_hold": 60, "duration": 300}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"spike": 3}, "my.yaml: spike: 3 | did you mean spike_mult?"),
        ({"rate": -1}, "my.yaml: rate: -1 | a number from 0 to 1000000 messages/s"),
        ({"rate": float("nan")}, "my.yaml: rate: nan |"),
        ({"spike_hold": 400}, "my.yaml: spike_hold: 400 | a profile that fits its duration of 300 s"),
        ({"kind": "spiky"}, "my.yaml: kind: 'spiky' | steady, step, bursty, sawtooth or steps"),
        ({"rate": "fast"}, "my.yaml: rate: 'fast' |"),
        ({"rate": 900_000}, "my.yaml: rate x spike_mult: 9000000.0 |"),
    ],
)
def test_a_bad_profile_is_one_clear_line(change, line):
    """File, field, value and what is allowed, on one line."""
    assert refused(build, GOOD | change, "my.yaml").startswith(line)


@pytest.mark.parametrize("scale", scales.declared(), ids=lambda scale: scale.name)
def test_an_event_after_an_idle_time_is_due_when_that_is_over(scale):
    """At every scale: a float's last digits once left the first event of a burst behind, at the end of the burst before."""
    given = load(paths.PROFILES / "idle-times.yaml").compressed(scale.time, scale.rate)
    times = given.times(0, given.total)
    begun = {phase: [start for start, _, name in given.phases() if name == phase] for phase in ("arrival", "drip", "surge")}
    assert {phase: len(starts) for phase, starts in begun.items()} == {"arrival": 22, "drip": 1, "surge": 1}
    for start in (one for starts in begun.values() for one in starts):
        assert np.abs(times - start).min() < 1e-6


def test_arrivals_are_spread_over_the_poll_and_the_sync():
    """Whatever the phase of a pollingInterval of 30 s, or of a sync period of 15 s: no gap of an eighth of it."""
    given = load(paths.PROFILES / "idle-times.yaml")
    starts = np.array([start for start, _, phase in given.phases() if phase == "arrival"])
    for period in (30, 15):
        shares = np.sort(starts % period) / period
        assert np.diff([*shares, shares[0] + 1]).max() < 1 / 8
    assert np.diff(starts).min() >= 258


@settings(max_examples=examples(20))
@given(st.integers(0, 2**32), st.lists(st.integers(0, 5_000), min_size=1, max_size=8))
def test_ids_do_not_depend_on_the_sizes_asked_for(seed, sizes):
    """The n-th id is a function of seed and n alone."""
    whole = Entities(seed, entities=1000).take(sum(sizes))
    source = Entities(seed, entities=1000)
    assert np.array_equal(whole, np.concatenate([source.take(size) for size in sizes]))


@settings(max_examples=examples(20))
@given(st.integers(0, 2**32), st.integers(1, 2000))
def test_ranks_are_spread_one_to_one(seed, entities):
    """Every rank has an id of its own, within range."""
    ids = Entities(seed, entities=entities).ids_of_ranks(np.arange(entities))
    assert sorted(ids.tolist()) == list(range(entities))


def test_the_hottest_entity_has_its_share():
    """With s = 1.1 over 1000 entities the hottest draws 1 / sum k^-1.1 of all events."""
    source = Entities(7, entities=1000)
    hottest = source.ids_of_ranks(np.array([0]))[0]
    share = 1 / np.sum(np.arange(1, 1001) ** -1.1)
    drawn = np.mean(source.take(200_000) == hottest)
    assert abs(drawn - share) < 0.005


def murmur2(data):
    """``Utils.murmur2`` of Kafka's Java client, line by line."""
    mask = 0xFFFFFFFF
    m, h = 0x5BD1E995, (0x9747B28C ^ len(data)) & mask
    for at in range(0, len(data) // 4 * 4, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        k = (k ^ (k >> 24)) * m & mask
        h = (h * m & mask) ^ k
    h = (h ^ (h >> 13)) * m & mask
    return h ^ (h >> 15)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20), st.integers(1, 1000))
def test_keys_are_placed_as_murmur2_says(ids, count):
    """The same partition as the reference, for any 8 bytes."""
    expected = [(murmur2(one.to_bytes(8, "big")) & 0x7FFFFFFF) % count for one in ids]
    assert partitions_of(np.array(ids, dtype=np.uint64), count).tolist() == expected


@pytest.mark.parametrize("zipf", [0.0, 1.1])
def test_shares_are_those_of_the_seed(zipf):
    """They sum to 1, depend on the seed, and are even only where keys are."""
    traffic = Profile((Step(0, 2000, "baseline"),), 50.0, zipf)
    found = shares(traffic, 1, 24, 100_000)
    counts = np.bincount(partitions_of(Entities(1, 100_000, zipf).take(traffic.total), 24))
    assert found.tolist() == (counts / counts.sum()).tolist()
    assert (found != shares(traffic, 2, 24, 100_000)).any()
    assert (found.max() > 2 / 24) is np.bool_(zipf > 1)


@pytest.mark.parametrize("sizes", [(10, 100_000, 70_000), (200_000, 3, BLOCK)])
def test_shares_do_not_depend_on_what_was_asked_before(sizes):
    """Fewer, more and as many events as before: the keys are the first of the same."""
    for events in sizes:
        counts = np.bincount(partitions_of(Entities(sizes[0], 1000).take(events), 24), minlength=24)
        found = shares(Profile((Step(0, events, "baseline"),), 1.0), sizes[0], 24, 1000)
        assert found.tolist() == (counts / counts.sum()).tolist()


def test_ids_are_in_the_order_of_their_draws():
    """The inverse of the cumulative weights, whatever the order in which it is looked up: the same seed gives the same keys."""
    source, random = Entities(7, 1000, 1.1), np.random.Generator(np.random.PCG64(7))
    random.integers(1000), random.integers(1, 1000, size=1000)  # how ranks are spread over the ids
    cumulative = np.cumsum(np.arange(1, 1001) ** -1.1)
    ranks = np.searchsorted(cumulative / cumulative[-1], random.random(50))
    assert source.take(50).tolist() == source.ids_of_ranks(ranks).tolist()
