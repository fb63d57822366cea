"""How long does each burst wait that finds a group at its floor? Hand-made groups of 4 pods on three bursts."""

from itertools import pairwise
from types import SimpleNamespace

import pandas as pd
import pytest

from lab.errors import NoData
from lab.measure.reaction.bursts import burst_reactions, bursts_at_floor, bursts_met, reactions
from lab.record.pods import Pod

from .built import Shown

STARTS = (100.0, 400.0, 700.0)


def made(*steps, pods=(), floor=4, syncs=()):
    """Three bursts of 120 s; ``steps`` are (t, wanted), and ``pods`` are (name, added, first receipt, and a later one)."""
    wanted = [(0.0, floor), *steps]
    receipts = pd.DataFrame([(name, end) for name, _, *ends in pods for end in ends], columns=["pod", "end"])
    return Shown(
        policy=SimpleNamespace(min_replicas=floor, hpa="keda-hpa-consumer" if syncs else None),
        hpa_syncs=[SimpleNamespace(at=t) for t in syncs],
        replicas=pd.DataFrame(wanted, columns=["t", "desired"]),
        scalings=[SimpleNamespace(t=t, before=old, after=new) for (_, old), (t, new) in pairwise(wanted)],
        phases=pd.DataFrame([(t, t + 120, "burst") for t in STARTS], columns=["start", "end", "label"]),
        pods={name: Pod(name, added, added=added) for name, added, *_ in pods},
        receipts=receipts,
    )


TWO = [("b", 113.0, 165.0, 166.0), ("a", 113.0, 161.0, 170.0), ("c", 715.0, 761.0, 762.0)]


def test_each_burst_that_began_at_the_floor_has_an_answer():
    """The first new pod is the one with the first receipt. The second burst found 24 pods, so it asked for none."""
    found = burst_reactions(made((112, 24), (520, 12), (580, 4), (714, 24), pods=TWO))
    assert [(one.burst.number, one.burst.step, one.at_work_s, one.pod) for one in found] == [
        (1, 112, 61, "a"),
        (3, 714, 61, "c"),
    ]
    group = made((112, 24), (520, 12), (580, 4), (714, 24), pods=[*TWO[:2], ("c", 715.0, 770.0, 780.0)])
    measured = reactions(group)
    assert (measured.fastest_s.number, measured.median_s.number, measured.slowest_s.number) == (61, 65.5, 70)
    assert (bursts_met(group).bursts.number, bursts_met(group).span_s.value) == (2, None)
    # The third one met 8 pods on their way down, and lag asked for more later.
    assert [one.number for one in bursts_at_floor(made((112, 24), (520, 8), (730, 24)))] == [1]
    assert "no burst that began at the floor" in reactions(made()).slowest_s.why


@pytest.mark.parametrize(("syncs", "since"), [((), None), ((85, 98, 113), 2), ((113,), None)])
def test_where_in_the_syncs_period_the_burst_came(syncs, since):
    """So long after the last sync before it; without an HPA, or without a sync before, that is not known."""
    (one,) = bursts_at_floor(made((112, 24), syncs=syncs))
    assert one.since_sync_s == since
    measured = bursts_met(made((112, 24), (520, 4), (714, 24), syncs=(*syncs, 690)))
    assert measured.span_s.value == {2: 8}.get(since, 0)


@pytest.mark.parametrize("pods", [[], [("a", 113.0, 405.0, 406.0)], [("a", 90.0, 95.0, 161.0)]])
def test_a_step_that_brings_no_pod_in_time_is_no_data(pods):
    """None was made, one had its first receipt in the next burst, one was there before: no reaction is made up or left out."""
    with pytest.raises(NoData, match=r"since the step up at 00:01:52 .* before the next burst"):
        burst_reactions(made((112, 24), pods=pods))
    assert reactions(made((112, 24), pods=pods)).slowest_s.value is None
