"""The HPA model against the real controller in its real place: API server, KEDA, metrics adapter and Deployments around it.

What the compiled controller proves exactly under a fake clock is found here once more under a real one, with everything that
lies between a metric and a decision: KEDA's HPA, its number on the wire, the replicas of the moment, the log a record keeps.
"""

import logging
import random

import pytest

from lab.model import hpa
from tests.differential.real import Bench
from tests.differential.search import Judge, agree
from tests.thoroughness import examples

pytestmark = pytest.mark.services

log = logging.getLogger("lab.differential")

WALKS = examples(80)  # 80 are one batch; --walks N for a longer search
# A walk, on average: else a pass would say little. Draws differ: 80 walks of one seed rescaled 150 times, of another 307.
LEAST_SYNCS, LEAST_RESCALED = 20, 1
MOST_UNSURE = 0.1  # of the syncs: agreed on what was not the likeliest to be seen, or at an edge of the clock


def test_the_model_decides_as_the_real_controller_in_its_place(cluster, scale, tmp_path, request):
    """Random metrics, behaviors and bounds, dozens of HPAs at a time: every sync of each."""
    count = request.config.getoption("--walks", default=None) or WALKS
    given = request.config.getoption("--hypothesis-seed", default=None)
    number = random.SystemRandom().getrandbits(32) if given is None else int(given)
    log.info("--walks=%d --hypothesis-seed=%d draws these walks again", count, number)
    controller = hpa.Controller(downscale_stabilization_s=scale.seconds(hpa.DEFAULTS.downscale_stabilization_s))
    judge = Judge(Bench(cluster, scale, tmp_path).play, controller)
    agree(judge, count, number)
    tally = judge.tally()
    assert tally.walks == count
    assert tally.disagreements == 0
    assert tally.syncs >= LEAST_SYNCS * count
    assert tally.rescaled >= LEAST_RESCALED * count
    assert tally.edges + tally.alternatives <= MOST_UNSURE * tally.syncs
