"""The store's settings: the capacity of the downstream that all pods of a trial share, and what connects its program."""

from __future__ import annotations

from dataclasses import dataclass

from lab.flags import ANY, Flags, whole
from lab.inputs import settings as declarations
from lab.inputs.settings import setting

PORT = 7092
ADDRESS = "STORE_ADDRESS"  # the variable by which a pod finds the store
LOGIN = "trial-login"  # the Secret of the token that a trial's pods have in common: a service of the trial's takes it too
TOKEN = {"name": "STORE_TOKEN", "valueFrom": {"secretKeyRef": {"name": LOGIN, "key": "token"}}}


@dataclass(frozen=True, kw_only=True)
class TrialSettings:
    """What a trial sets of the store that its consumers share, as plain data."""

    store_slots: int = setting(
        0, whole(0, 1000), "writes that a store shared by all pods works on at a time; 0: each pod has a store of its own"
    )
    store_contention: int = setting(
        0,
        whole(0, 1000),
        "how much longer a write to the shared store takes for each store_slots of writes that wait",
        "percent",
    )


@dataclass(frozen=True, kw_only=True)
class Settings(TrialSettings):
    """All that a store is given."""

    pod_ip: str
    metrics_port: int
    store_token: str = setting("", ANY, "what each write of a pod begins with")


def flags() -> Flags:
    """The store's flags."""
    return declarations.program(Settings, "store", __doc__, 9090, kafka=False)
