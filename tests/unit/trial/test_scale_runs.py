"""The runs at several scales: they share one folder of results, and each goes on after an interruption."""

import pytest

from lab.errors import LabFault
from lab.inputs import scale as scales
from lab.record import store
from lab.trial.trials import Trials, resumed
from tests.scale.test_scale import PROFILES, plan

from .test_trials import Session


def run(results, scale, session, repeat):
    """The duets of a session at ``scale`` as ``pytest -m scale --resume`` runs them, executed by ``session``."""
    trials = Trials(scales.load(scale), "binary", resumed(results, session), repeat=repeat)
    return {profile: trials.duet(plan(profile), plan(profile)) for profile in PROFILES}


@pytest.mark.parametrize("scale", ["quick", "real"])
def test_a_session_at_a_scale_goes_on(tmp_path, scale):
    """The duet that a power cut ended is run again; those before it are not, and nothing is after it."""
    with pytest.raises(LabFault):
        run(tmp_path, scale, Session(tmp_path, fails_at=4), 2)
    rest = Session(tmp_path)
    found = run(tmp_path, scale, rest, 2)
    assert len(rest.asked) == 2 * len(PROFILES) - 3
    assert all(len(one) == len(other) == 2 for one, other in found.values())
    again = Session(tmp_path)
    run(tmp_path, scale, again, 2)
    assert again.asked == []


def test_more_repeats_run_only_what_is_new(tmp_path):
    """A session of six goes on from one of two: hours of machine time can be spread."""
    run(tmp_path, "real", Session(tmp_path), 2)
    more = Session(tmp_path)
    run(tmp_path, "real", more, 3)
    assert len(more.asked) == len(PROFILES)


def test_sessions_of_several_scales_share_a_folder(tmp_path):
    """A scale is part of a trial's identity, so none takes another's record for its own."""
    for scale in ("quick", "medium", "real"):
        session = Session(tmp_path)
        run(tmp_path, scale, session, 1)
        assert len(session.asked) == len(PROFILES)
    found = [store.Record(folder).scale.name for folder in store.stored(tmp_path).values()]
    assert {name: found.count(name) for name in found} == dict.fromkeys(("quick", "medium", "real"), 2 * len(PROFILES))
