"""What the HPA reads between two commits: hand-made syncs over a lag that rises for 5 s and falls."""

from types import SimpleNamespace

import pandas as pd
import pytest

from lab.measure.reading import readings
from lab.model.hpa_log import Seen, Sync
from lab.spec.profile import Step

from .test_up_window import SPEC


def made(every_s, *, ready=24, read=True):
    """Three bursts of 120 s at 1,000/s: lag is 1,000 messages for each s since the last commit, which come every 5 s."""

    def lag(t):
        return 1000 * ((t + 2) % 5)

    steps = [Step(0.0, 100, "baseline"), *(Step(100.0 + 300 * n, 1000, "burst") for n in range(3))]
    times = [n / 2 for n in range(2000)]
    seen = [(n * every_s, lag(n * every_s)) for n in range(int(1000 / every_s))]
    return SimpleNamespace(
        policy=SimpleNamespace(max_replicas=24),
        replicas=pd.DataFrame([(0.0, ready)], columns=["t", "ready"]),
        lag=pd.DataFrame([(t, lag(t)) for t in times], columns=["t", "lag"]),
        hpa_syncs=[Sync(t, SPEC, 24, 24, 24, (Seen(24, ((round(value * 1000),),) if read else None),)) for t, value in seen],
        profile=SimpleNamespace(steps=steps),
        phases=pd.DataFrame([(100.0 + 300 * n, 220.0 + 300 * n, "burst") for n in range(3)], columns=["start", "end", "label"]),
    )


def test_syncs_in_step_with_commits_read_one_point():
    """Each sync 2 s after a commit: 2 s of traffic, and nothing of the 4.5 s by which lag goes up and down."""
    found = readings(made(15))
    assert (found.bursts.number, found.share.number, found.renewing_s.number) == (3, 0, 2)


def test_syncs_out_of_step_read_nearly_all():
    """13 s are three commits less two s: the syncs read each whole second since a commit, up to 4 s."""
    found = readings(made(13))
    assert found.share.number == pytest.approx(4 / 4.5)
    assert found.renewing_s.number == 4


@pytest.mark.parametrize("lacking", [{"ready": 12}, {"read": False}])
def test_without_all_pods_or_without_readings_there_is_no_data(lacking):
    """A burst with a backlog shows no commits, and an HPA whose input is not known shows nothing."""
    assert "no burst" in readings(made(15, **lacking)).share.why
