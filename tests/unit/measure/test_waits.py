"""The wait for KEDA and the HPA, split at syncs of which every line is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import NoData
from lab.measure.reaction.step import POLICY, reaction
from lab.measure.reaction.waits import decision, split
from lab.model.hpa_log import KEPT, PROPOSED, RESCALED, Line, Logged
from lab.record.store import Record
from tests.records import FOLDER


def sync(at, proposed, before, after):
    """A sync that read its metrics at ``at`` and wrote 10 ms later."""
    words = RESCALED if after != before else KEPT
    outcome = Line(at + 0.01, words, {"currentReplicas": before, "desiredReplicas": after})
    return Logged(
        Line(at, PROPOSED, {"desiredReplicas": proposed}), outcome, float("-inf"), float("inf"), lost=False, wrote=True
    )


@pytest.mark.parametrize(
    ("syncs", "crossed", "stepped", "parts"),
    [
        # A sync at 10.5 sees an older lag, one at 11.0 asks and is held, one at 11.5 rescales, which is seen at 11.53.
        (
            [(10.0, 4, 4, 4), (10.5, 4, 4, 4), (11.0, 12, 4, 4), (11.5, 12, 4, 12), (12.0, 24, 12, 24)],
            *(10.2, 11.53, (0.3, 0.5, 0.5, 0.03)),
        ),
        # Nothing older, nothing held. A watch may see the step before the controller has logged it.
        ([(10.0, 4, 4, 4), (10.5, 12, 4, 12)], 10.2, 10.505, (0.3, 0, 0, 0.005)),
        # Decided before the crossing that the samples show: the rest is the write.
        ([(10.0, 12, 4, 12)], 10.1, 10.15, (0, 0, 0, 0.05)),
        # A burst long before had a step of its own; the sync that took this one is the nearest to it.
        ([(1.0, 8, 4, 8), (10.5, 24, 8, 24)], 10.2, 10.53, (0.3, 0, 0, 0.03)),
    ],
)
def test_each_part_ends_at_its_sync(syncs, crossed, stepped, parts):
    """A sync is (when, proposed, before, after)."""
    assert split([sync(*one) for one in syncs], crossed, stepped) == pytest.approx(parts)


def test_a_step_that_no_sync_took_is_no_data():
    """The log has a step down, and a step up ten seconds later."""
    with pytest.raises(NoData, match="no sync"):
        split([sync(10.0, 2, 4, 2), sync(20.0, 12, 2, 12)], 9.0, 10.0)


@given(st.lists(st.integers(0, 400), min_size=1, max_size=8, unique=True), st.integers(0, 400), st.integers(0, 400))
def test_the_parts_are_never_negative_and_sum_to_the_wait(times, crossed, wait):
    """Whatever the log holds, the reaction's part is neither longer nor shorter than the parts that it is split into."""
    syncs = [sync(time / 100, 12, 4, 12 if number == len(times) - 1 else 4) for number, time in enumerate(sorted(times))]
    begun, stepped = crossed / 100, crossed / 100 + wait / 100
    try:
        parts = split(syncs, begun, stepped)
    except NoData:
        return
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(stepped - begun)


def test_of_a_real_reaction_the_parts_sum_to_the_policys():
    """The committed record of a 10x spike: two thirds of a period until the next sync, which saw the lag and took the step."""
    record = Record(FOLDER / "records" / "plateau-lag-4500-d6cad871")
    found = decision(record)
    parts = (found.wait_s, found.older_s, found.held_s, found.write_s)
    assert sum(one.number for one in parts) == pytest.approx(reaction(record).parts[POLICY])
    assert [one.value for one in parts[:3]] == pytest.approx([0.327, 0, 0], abs=0.001)
    assert found.phase.value == pytest.approx(0.655, abs=0.001)
    # Of the pod with the first receipt: 1.2 s until it subscribed, and 0.3 s until it owned partitions.
    told = reaction(record).parts
    assert (told["subscribed"], told["partitions owned"]) == pytest.approx((1.246, 0.316), abs=0.001)
