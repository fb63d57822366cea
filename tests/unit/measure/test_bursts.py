"""How long does each burst wait that finds a group at its floor? Hand-made groups of 4 pods on three bursts."""

from itertools import pairwise
from types import SimpleNamespace

import pandas as pd
import pytest

from lab.errors import NoData
from lab.measure.reaction.bursts import burst_reactions, reactions
from lab.record.pods import Pod

from .built import Shown

STARTS = (100.0, 400.0, 700.0)


def made(*steps, pods=(), floor=4, syncs=()):
    """Three bursts of 120 s; ``steps`` are (t, wanted), and ``pods`` are (name, added, Ready, assigned)."""
    wanted = [(0.0, floor), *steps]
    told = [("started", 0.0, 0), ("subscribed", 0.0, 0), ("assigned", 0.0, 1)]
    rows = [
        (name, event, owning if event == "assigned" else added, owned)
        for name, added, _, owning in pods
        for event, _, owned in told
    ]
    events = pd.DataFrame(rows, columns=["pod", "event", "t", "owned"])
    return Shown(
        policy=SimpleNamespace(min_replicas=floor, hpa="keda-hpa-consumer" if syncs else None),
        hpa_syncs=[SimpleNamespace(at=t) for t in syncs],
        replicas=pd.DataFrame(wanted, columns=["t", "desired"]),
        scalings=[SimpleNamespace(t=t, before=old, after=new) for (_, old), (t, new) in pairwise(wanted)],
        phases=pd.DataFrame([(t, t + 120, "burst") for t in STARTS], columns=["start", "end", "label"]),
        pods={name: Pod(name, added, added=added, ready=ready) for name, added, ready, _ in pods},
        group_events=events.assign(created=events["t"]),
    )


TWO = [("a", 113.0, 160.0, 161.0), ("b", 113.0, 159.0, 165.0), ("c", 715.0, 761.0, 760.0)]


def test_each_burst_that_began_at_the_floor_has_an_answer():
    """The first new pod is the first to be both Ready and assigned. The second burst found 24 pods, so it asked for none."""
    found = burst_reactions(made((112, 24), (520, 12), (580, 4), (714, 24), pods=TWO))
    assert [(one.number, one.decided_s, one.at_work_s, one.pod) for one in found] == [(1, 12, 61, "a"), (3, 14, 61, "c")]
    measured = reactions(made((112, 24), (520, 12), (580, 4), (714, 24), pods=[*TWO[:2], ("c", 715.0, 770.0, 760.0)]))
    assert (measured.bursts.number, measured.median_s.number, measured.slowest_s.number) == (2, 65.5, 70)
    assert (measured.fastest_s.number, measured.span_s.value) == (61, None)
    # The third one met 8 pods on their way down, and lag asked for more later.
    assert [one.number for one in burst_reactions(made((112, 24), (520, 8), (730, 24), pods=TWO[:2]))] == [1]
    assert "no burst that began at the floor" in reactions(made()).slowest_s.why


@pytest.mark.parametrize(("syncs", "since"), [((), None), ((85, 98, 113), 2), ((113,), None)])
def test_where_in_the_syncs_period_the_burst_came(syncs, since):
    """So long after the last sync before it; without an HPA, or without a sync before, that is not known."""
    (one,) = burst_reactions(made((112, 24), pods=TWO[:2], syncs=syncs))
    assert one.since_sync_s == since
    measured = reactions(made((112, 24), (520, 4), (714, 24), pods=TWO, syncs=(*syncs, 690)))
    assert measured.span_s.value == {2: 8}.get(since, 0)


@pytest.mark.parametrize("pods", [[], [("a", 113.0, 405.0, 161.0)], [("a", 90.0, 95.0, 96.0)]])
def test_a_step_that_brings_no_pod_in_time_is_no_data(pods):
    """None was made, one was Ready in the next burst, one was there before: no reaction is made up or left out."""
    with pytest.raises(NoData, match=r"since the step up at 00:01:52 .* before the next burst"):
        burst_reactions(made((112, 24), pods=pods))
    assert reactions(made((112, 24), pods=pods)).slowest_s.value is None
