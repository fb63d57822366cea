"""The decision of the lab's own controller: its policy is :class:`lab.spec.controller.LagController`. Pure."""

from __future__ import annotations

from lab.model import hpa
from lab.model.hpa import Decision, State
from lab.spec.controller import LagController


def decide(policy: LagController, state: State, current_replicas: int, lag: int, now: float) -> tuple[Decision, State]:
    """One sync at ``now`` (s on any clock, never back): the next replicas for ``current_replicas`` at a total ``lag``
    (messages).

    A new controller's state is ``State()``. A Deployment at 0 stays there, as with the HPA. A sync that could not read its lag
    does not call this, and the state stays.
    """
    return hpa.decide(policy.spec, state, current_replicas, [hpa.external(lag)], now)
