"""Bounds that several tests or commands share, each with the text or the rule that it comes from."""

from __future__ import annotations

from lab.judge.quantity import Bound

REACTION_S = Bound(90, "text 1, section 5: scale-out reaction time < 90 s")
DIP = Bound(0.2, "text 1, section 5: rebalance throughput dip < 20 %")
CEILING_S = Bound(REACTION_S, "the lab's own: as long as an event may wait for the first new pod")
RECOVERY_S = Bound(5, "text 1, section 5: the consume rate recovers within < 5 s")
TIME_BEHIND_S = Bound(2, "the lab's own: the oldest age that an event may reach, from which lagThreshold is computed")
DRAIN_OVER_BEST = Bound(1.5, "the lab's own: text 1, section 5 asks for a bounded drain, and skew bounds the best one")
MEMORY_AN_HOUR = Bound(1 / 24, "the lab's own: what a day's trial adds must fit into the machine's memory")


def compressed(bound: Bound, time: float) -> Bound:
    """The ``bound`` on a time, s, at a scale that divides times by ``time``: for what such a scale divides whole."""
    return Bound(bound / time, bound.source)
