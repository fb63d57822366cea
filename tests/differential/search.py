"""Hypothesis draws the walks; a judge runs them for real in batches and sets what the model decides beside each sync.

A walk that disagrees is told with all that led to it. ``--walks`` and ``--hypothesis-seed``, which the log has, draw it again.
"""

import json
import logging
import math
from collections import Counter

from hypothesis import HealthCheck, Phase, given, seed, settings

from lab.model import hpa
from lab.model.hpa_log import Seen, Sync, replay
from tests.differential.walks import walks

log = logging.getLogger("lab.differential")

PARALLEL = 80  # walks of one batch; KEDA makes two HPAs a second (its client: 20 requests/s), and those walk on meanwhile
SYNC_S = 0.5
REAL = hpa.decide  # a test of the search puts a wrong model in its place
DRAWN = 1.5  # walks for each that is wanted, as some are drawn twice


def count(tally, syncs, found):
    """Add one walk to ``tally``: its ``syncs``, and the replay that was ``found``."""
    without = sum(sync.proposed is None and sync.current == sync.desired for sync in syncs)
    tally.update(walks=1, syncs=len(syncs), rescaled=found.rescaled, failed=without, edges=found.at_an_edge)
    tally.update(alternatives=found.alternatives, disagreements=len(found.disagreements))


def foreseen(walks, controller):
    """The syncs of each of ``walks`` on a cluster that decides as the model does, one value a sync."""
    return [list(_foreseen(walk, controller)) for walk in walks]


def _foreseen(walk, controller):
    spec, state, replicas = hpa.parse(walk.hpa(), walk), hpa.State(), walk.replicas
    for index, value in enumerate(walk.values):
        at = 1e9 + SYNC_S * index
        observed = (None if value is None else (value,),)
        decision, state = REAL(spec, state, replicas, observed, at, controller=controller)
        proposed = max((count for count in decision.proposals if count is not None), default=None)
        scaled_at = None if decision.desired == replicas else at
        yield Sync(at, spec, replicas, decision.desired, proposed, (Seen(replicas, observed),), scaled_at, at)
        replicas = decision.desired


def rescaled(walks, controller):
    """How often the model changes replicas over all ``walks``."""
    return sum(sync.current != sync.desired for syncs in foreseen(walks, controller) for sync in syncs)


def draw(most, number):
    """``most`` different walks; the same ``number`` draws the same ones."""
    drawn, examples = [], math.ceil(most * DRAWN)

    @seed(number)
    @settings(max_examples=examples, phases=(Phase.generate,), database=None, suppress_health_check=list(HealthCheck))
    @given(walks())
    def search(walk):
        drawn.append(walk)

    search()
    return list(dict.fromkeys(drawn))[:most]


def agree(play, chosen, controller, parallel=PARALLEL):
    """A Counter of the ``chosen`` walks, each run once, and what they are worth; ``play`` gives the syncs of each of a batch.

    The shortest walk that disagrees is told in an AssertionError.
    """
    tally, wrong = Counter(), []
    for first in range(0, len(chosen), parallel):
        batch = chosen[first : first + parallel]
        for walk, syncs in zip(batch, play(batch), strict=True):
            found = replay(syncs, controller)
            count(tally, syncs, found)
            if found.disagreements:
                wrong.append((walk, syncs, found.disagreements[0]))
        log.info("%s", dict(tally))
    if wrong:
        raise AssertionError(told(*min(wrong, key=lambda one: (len(one[0].values), len(one[0].behavior), repr(one[0])))))
    return tally


def told(walk, syncs, first):
    """The ``first`` disagreement of ``walk``, with the inputs and the syncs that lead to it."""
    lines = [f"{first}", f"  ScaledObject: {json.dumps(walk.scaled_object('walk', 'the source')['spec'])}"]
    lines += [f"  {walk.replicas} replicas at first; the source's values in thousandths: {walk.values}"]
    for index, sync in enumerate(syncs[: first.index + 1]):
        seen = ", or ".join(f"{one.observed} on {one.existing} replicas" for one in sync.seen)
        decided = f"{sync.current} -> {sync.desired} (proposed {sync.proposed})"
        lines.append(f"  sync {index} at {sync.at - syncs[0].at:.6f} s saw {seen}: {decided}")
    return "\n".join(lines)
