"""Walks as the model plays them: what a draw will ask of the real controller is known before it is run."""

from lab.model import hpa
from lab.model.hpa_log import Seen, Sync, replay

SYNC_S = 0.5
REAL = hpa.decide  # a test of the search puts a wrong model in its place


def play(walks, controller):
    """The syncs of each of ``walks`` on a cluster that decides as the model does, one value a sync."""
    return [list(_syncs(walk, controller)) for walk in walks]


def _syncs(walk, controller):
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
    return sum(replay(syncs, controller).rescaled for syncs in play(walks, controller))
