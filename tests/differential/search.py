"""Hypothesis draws the walks; a judge runs them for real in batches and sets what the model decides beside each sync.

A walk that disagrees is told with all that led to it. ``--walks`` and ``--hypothesis-seed``, which the log has, draw it again.
"""

import json
import logging
import math
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, seed, settings

from lab.model.hpa_log import Replay, replay
from tests.differential.walks import walks

log = logging.getLogger("lab.differential")

PARALLEL = 80  # walks of one batch; KEDA makes two HPAs a second (its client: 20 requests/s), and those walk on meanwhile
DRAWN = 1.5  # walks for each that is wanted, as some are drawn twice


@dataclass(frozen=True)
class Verdict:
    """A walk's syncs, and what the model makes of them."""

    syncs: tuple
    replay: Replay


@dataclass(frozen=True)
class Tally:
    """Counts over walks: what a pass is worth."""

    walks: int
    syncs: int
    rescaled: int
    failed: int
    edges: int
    alternatives: int
    disagreements: int

    @classmethod
    def of(cls, verdicts):
        """The sums over ``verdicts``."""
        replays = [verdict.replay for verdict in verdicts]
        syncs = [sync for verdict in verdicts for sync in verdict.syncs]
        return cls(
            len(replays),
            len(syncs),
            sum(one.rescaled for one in replays),
            sum(sync.proposed is None and sync.current == sync.desired for sync in syncs),
            sum(one.at_an_edge for one in replays),
            sum(one.alternatives for one in replays),
            sum(len(one.disagreements) for one in replays),
        )

    def __str__(self):
        return (
            f"{self.walks} walks, {self.syncs} syncs, {self.rescaled} rescaled, {self.failed} without a metric: "
            f"{self.disagreements} disagree; {self.edges} agree at an edge of the clock, "
            f"{self.alternatives} while the replicas changed"
        )


def draw(count, number):
    """``count`` different walks; the same ``number`` draws the same ones."""
    drawn = []

    @seed(number)
    @settings(
        max_examples=math.ceil(count * DRAWN), phases=(Phase.generate,), database=None, suppress_health_check=list(HealthCheck)
    )
    @given(walks())
    def search(walk):
        drawn.append(walk)

    search()
    return list(dict.fromkeys(drawn))[:count]


def agree(play, chosen, controller, parallel=PARALLEL):
    """The tally of the ``chosen`` walks, each run once; ``play`` gives the syncs of each of a batch.

    The shortest walk that disagrees is told in an AssertionError.
    """
    verdicts = {}
    for first in range(0, len(chosen), parallel):
        batch = chosen[first : first + parallel]
        for walk, syncs in zip(batch, play(batch), strict=True):
            verdicts[walk] = Verdict(tuple(syncs), replay(syncs, controller))
        log.info("%s", Tally.of(verdicts.values()))
    wrong = [one for one in verdicts.items() if one[1].replay.disagreements]
    if wrong:
        raise AssertionError(told(*min(wrong, key=lambda one: (len(one[0].values), len(one[0].behavior), repr(one[0])))))
    return Tally.of(verdicts.values())


def told(walk, verdict):
    """The first disagreement of ``walk``, with the inputs and the syncs that lead to it."""
    first = verdict.replay.disagreements[0]
    lines = [f"{first}", f"  ScaledObject: {json.dumps(walk.scaled_object('walk', 'the source')['spec'])}"]
    lines += [f"  {walk.replicas} replicas at first; the source's values in thousandths: {walk.values}"]
    begun = verdict.syncs[0].at
    for index, sync in enumerate(verdict.syncs[: first.index + 1]):
        seen = ", or ".join(f"{one.observed} on {one.existing} replicas" for one in sync.seen)
        decided = f"{sync.current} -> {sync.desired} (proposed {sync.proposed})"
        lines.append(f"  sync {index} at {sync.at - begun:.6f} s saw {seen}: {decided}")
    return "\n".join(lines)
