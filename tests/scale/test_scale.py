"""The same trials at one scale; sessions at several scales show what a scale keeps.

Question. Does a compressed trial give the numbers of real time? ``python -m tests.scale`` compares what these sessions leave.

Method. Each profile as an A/A duet: two sides of the same plan on one topic. Their difference is the noise, and each block
adds a run. A session has one scale. Sessions at several scales share one folder, as a trial's identity has its scale:

    pytest -m scale --scale=quick --results=results-scale --repeat=6 --resume
    pytest -m scale --scale=real --results=results-scale --repeat=2 --resume

``-k plateau`` runs one profile, and a later session the next. ``step-10x`` is left out: it takes most of an hour at real time.

Asserted. The invariant of delivery. The other numbers are compared and not judged: none has a bound here.
"""

import allure
import pytest

from lab.inputs.inputs import REPLAYED
from tests.experiments.workloads import slim

pytestmark = [pytest.mark.scale, allure.epic("The lab itself"), allure.feature("Scale")]

PROFILES = ("plateau", "bursty", "transient")
START_S = 60.0  # at real time: an image that is pulled and a JVM that warms up


def plan(profile):
    """The plan of both sides: 24 pods at most, so that two cores carry both.

    A pod's start takes some 1 s of its own at every scale. A declared start covers it, and a scale divides that: 2 s at quick.
    """
    return {"profile": profile, "policy": "lag-4500", "workload": slim(start_s=START_S), "until": REPLAYED}


@pytest.mark.parametrize("profile", PROFILES)
@allure.story("The same trial at several scales")
def test_a_duet_of_a_plan_with_itself(trials, evidence, profile):
    """Both sides get every event exactly once, at this scale as well."""
    one, other = trials.duet(plan(profile), plan(profile))

    with evidence.of({"a": one, "b": other}):
        pass
