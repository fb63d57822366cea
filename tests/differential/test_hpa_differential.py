"""The HPA model against the real controller in its real place: API server, KEDA, metrics adapter and Deployments around it.

What the compiled controller proves exactly under a fake clock is found here once more under a real one, with everything that
lies between a metric and a decision: KEDA's HPA, its number on the wire, the replicas of the moment, the log a record keeps.
"""

import logging
import random

import pytest

from lab.model import hpa
from tests.differential.real import Bench
from tests.differential.search import agree, draw, rescaled
from tests.thoroughness import examples

pytestmark = pytest.mark.services

log = logging.getLogger("lab.differential")

WALKS = examples(80)  # 80 are one batch; --walks N for a longer search
# Else a pass would say little. Draws differ: by the model, 20 walks rescale 10 to 55 times. So the seed is the one of several
# whose walks rescale most by the model, and the real controller must rescale at least half as often (a control, the lab's own).
LEAST_SYNCS, SEEDS, SHARE_OF_FORESEEN = 20, 8, 0.5
MOST_UNSURE = 0.1  # of the syncs: agreed on what was not the likeliest to be seen, or at an edge of the clock


def seed_that_rescales(count, controller):
    """Of several random seeds the one whose ``count`` walks rescale most by the model."""
    numbers = [random.SystemRandom().getrandbits(32) for _ in range(SEEDS)]
    return max(numbers, key=lambda number: rescaled(draw(count, number), controller))


def test_the_model_decides_as_the_real_controller_in_its_place(cluster, scale, tmp_path, request):
    """Random metrics, behaviors and bounds, dozens of HPAs at a time: every sync of each."""
    count = request.config.getoption("--walks", default=None) or WALKS
    given = request.config.getoption("--hypothesis-seed", default=None)
    controller = hpa.Controller(downscale_stabilization_s=scale.seconds(hpa.DEFAULTS.downscale_stabilization_s))
    number = seed_that_rescales(count, controller) if given is None else int(given)
    log.info("--walks=%d --hypothesis-seed=%d draws these walks again", count, number)
    chosen = draw(count, number)
    tally = agree(Bench(cluster, scale, tmp_path).play, chosen, controller)
    assert tally["walks"] == count
    assert tally["syncs"] >= LEAST_SYNCS * count
    foreseen = rescaled(chosen, controller)
    log.info("%d rescaled, %d foreseen", tally["rescaled"], foreseen)
    assert foreseen >= count
    assert tally["rescaled"] >= SHARE_OF_FORESEEN * foreseen
    assert tally["edges"] + tally["alternatives"] <= MOST_UNSURE * tally["syncs"]
