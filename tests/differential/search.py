"""Hypothesis draws the walks; real runs, which take seconds, are taken ahead of it in batches and kept.

Drawing the same walks a second time, from the same seed, it finds every verdict there. Where one is a disagreement it goes on
to shrink that walk: each candidate it tries is run for real together with the simpler ones it is likely to try next, and a
verdict once had stands, so that a clock that never ticks the same way twice can't make it doubt its own example. The number of
real runs bounds the time; told is the simplest of all walks that disagreed.
"""

import contextlib
import json
import logging
import math
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, Phase, assume, given, seed, settings

from lab.model.hpa_log import Replay, replay
from tests.differential.walks import walks

log = logging.getLogger("lab.differential")

PARALLEL = 80  # walks of one batch; KEDA makes two HPAs a second (its client: 20 requests/s), and those walk on meanwhile
SHRINKING_PARALLEL = 16
SHRINKING_RUNS = 12  # of some 20 s each
DRAWN = 1.5  # walks for each that is wanted, as some are drawn twice


class Enough(BaseException):
    """No run is left to shrink with; an Exception would be one more counterexample to Hypothesis."""


@dataclass(frozen=True)
class Verdict:
    """A walk's syncs, and what the model makes of them."""

    syncs: tuple
    replay: Replay


class Judge:
    """Verdicts on walks, each from one real run; ``play`` gives the syncs of each of a batch of walks.

    ``verdicts`` holds all of them so far, by walk.
    """

    def __init__(self, play, controller, parallel=PARALLEL):
        self._play, self._controller, self._parallel = play, controller, parallel
        self._left = SHRINKING_RUNS
        self.verdicts = {}

    def run(self, chosen):
        """Run those of ``chosen`` that have no verdict yet."""
        new = [walk for walk in dict.fromkeys(chosen) if walk not in self.verdicts]
        for first in range(0, len(new), self._parallel):
            batch = new[first : first + self._parallel]
            for walk, syncs in zip(batch, self._play(batch), strict=True):
                verdict = self.verdicts[walk] = Verdict(tuple(syncs), replay(syncs, self._controller))
                if verdict.replay.disagreements:
                    log.info("a disagreement, to be shrunk: %s", told(walk, verdict))
            log.info("%s", self.tally())

    def shrinking(self, walk):
        """The verdict on ``walk``, for which it is run together with simpler ones. Raises Enough when no run is left for it."""
        if walk not in self.verdicts:
            if not self._left:
                raise Enough
            self._left -= 1
            self.run([walk, *simpler(walk)][:SHRINKING_PARALLEL])
        return self.verdicts[walk]

    def simplest(self):
        """The simplest walk that disagrees, with its verdict; None when all agree."""
        wrong = [one for one in self.verdicts.items() if one[1].replay.disagreements]
        return min(wrong, key=lambda one: (len(one[0].values), len(one[0].behavior), repr(one[0])), default=None)

    def tally(self):
        """Counts over all walks so far."""
        return Tally.of(self.verdicts.values())


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
    """``count`` different walks from the seed ``number``."""
    drawn = []
    _search(math.ceil(count * DRAWN), number, drawn.append, (Phase.generate,))
    return list(dict.fromkeys(drawn))[:count]


def agree(judge, count, number):
    """Judge the ``count`` walks of the seed ``number``; a walk that disagrees is shrunk, and told in an AssertionError."""
    judge.run(draw(count, number))
    if judge.simplest() is None:
        return
    found = False

    def check(walk):
        nonlocal found
        verdict = judge.shrinking(walk) if found else judge.verdicts.get(walk)
        assume(verdict is not None)
        found = found or bool(verdict.replay.disagreements)
        assert not verdict.replay.disagreements

    with contextlib.suppress(AssertionError, Enough):
        _search(math.ceil(count * DRAWN), number, check, (Phase.generate, Phase.shrink))
    raise AssertionError(told(*judge.simplest()))


def _search(examples, number, check, phases):
    """Call ``check`` with each of so many walks; the same ``number`` draws the same ones."""

    @seed(number)
    @settings(
        max_examples=examples,
        phases=phases,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(walks())
    def search(walk):
        check(walk)

    search()


def simpler(walk):
    """``walk`` with one thing less."""
    length = len(walk.steps)
    for part in (length // 2, 1):
        kept = [walk.steps[:at] + walk.steps[at + part :] for at in range(0, length, part)] if part else []
        yield from (replace(walk, steps=steps) for steps in kept if steps)
    for at, (value, times) in enumerate(walk.steps):
        if times > 1:
            yield replace(walk, steps=(*walk.steps[:at], (value, 1), *walk.steps[at + 1 :]))
    behavior = json.loads(walk.behavior)
    if behavior is not None:
        yield replace(walk, behavior="null")
        for direction in behavior:
            rest = {other: rules for other, rules in behavior.items() if other != direction}
            yield replace(walk, behavior=json.dumps(rest))
            for rule in behavior[direction]:
                rules = {other: value for other, value in behavior[direction].items() if other != rule}
                yield replace(walk, behavior=json.dumps(behavior | {direction: rules}))


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
