"""What the experiments' policies apply at quick is what it was before a scale compressed lags: no number of a lag has moved."""

import pytest

from lab import paths
from lab.inputs import fidelity
from lab.inputs import policy as policies
from lab.inputs import scale as scales

# lagThreshold by policy as it is written, and as it was applied at quick by the file of before.
WRITTEN = {
    "lag": (45_000, 1500),
    "capped": (9_000, 300),
    "past-p": (450, 15),
    "grow": (4_500, 150),
    "backlog": (20_000, 667),  # runs at real time, for which it was written
    **dict.fromkeys(("controller-4500", "controller-4500-held"), (4_500, 150)),
}
WITHOUT_LAG = {"lasting-30s", "arrivals-170"}
STEMS = sorted(path.stem for kind in ("scaledobjects", "controllers") for path in (paths.MANIFESTS / kind).glob("*.yaml"))


def test_every_policy_has_a_place_here():
    """One that is named by its threshold of 4,500 needs none; one in seconds, or on arrivals, has no lag."""
    assert set(WRITTEN) <= set(STEMS)
    others = {stem for stem in STEMS if "-4500" not in stem and stem != "recommended"} - set(WRITTEN)
    assert others == WITHOUT_LAG


@pytest.mark.parametrize("stem", STEMS)
def test_at_quick_the_same_lag_is_applied_as_before(stem):
    """A thirtieth of what is written, to the message; so is activation, which is 0 but for the group that scales to zero."""
    (file,) = (
        paths.MANIFESTS / kind / f"{stem}.yaml"
        for kind in ("scaledobjects", "controllers")
        if (paths.MANIFESTS / kind / f"{stem}.yaml").exists()
    )
    found = {one.field.rpartition(".")[2]: one for one in fidelity.lags(policies.load(file), scales.load("quick"))}
    if stem in WITHOUT_LAG:
        assert found == {}
        return
    threshold = found.pop("lagThreshold")
    assert (threshold.written, threshold.applied) == WRITTEN.get(stem, (4_500, 150))
    activation = (150, 5) if stem == "zero-4500" else (0, 0)
    assert {(one.written, one.applied) for one in found.values()} <= {activation}
