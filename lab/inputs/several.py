"""The things that a trial of several topics refuses. Pure."""

from __future__ import annotations

from lab.errors import InputError
from lab.inputs import topics
from lab.inputs.policy import PlainHpa, Policy
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers import topics as read


def check(count: int, partitions: int, policy: Policy, where: object, driver: str, producer: str) -> None:
    """Raise :class:`InputError` for the first thing that a trial of ``count`` topics with these ``partitions`` can't have.

    ``where`` is the file of the ``policy``. ``driver`` must be the lab's ``producer``: any other driver sends all traffic to
    the first topic. An HPA that is not KEDA's reads one external metric, which is the lag of one topic.
    """
    topics.check(count, partitions, "trial")
    if isinstance(policy, ScaledObject):
        read.check(policy.triggers, count, where)
    if count == 1:
        return
    if driver != producer:
        raise InputError("trial", "driver", driver, f"{producer} with topics {count}: any other sends to one topic")
    if isinstance(policy, PlainHpa) and policy.lag_threshold is not None:
        allowed = f"a ScaledObject, or a LagController, with topics {count}: an HPA on lag reads that of one topic"
        raise InputError(where, "spec.metrics", "External", allowed)
