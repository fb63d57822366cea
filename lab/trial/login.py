"""How what runs in a trial's namespace logs in to Kafka: a Secret for its pods, and for KEDA what points to it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lab.kafka import login

NAME = "kafka-login"


def objects(settings: Mapping[str, str], servers: str) -> list[dict[str, Any]]:
    """The Secret and the TriggerAuthentication of a login to the brokers ``servers``; none without ``settings``.

    Of the Secret pods read ``settings`` and ``clusters`` (:mod:`lab.lagscaler`), and KEDA the rest.
    """
    if not settings:
        return []
    parameters = login.keda(settings)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": NAME},
        "stringData": {"settings": json.dumps(dict(settings)), "clusters": servers, **parameters},
    }
    reference = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "TriggerAuthentication",
        "metadata": {"name": NAME},
        "spec": {"secretTargetRef": [{"parameter": name, "name": NAME, "key": name} for name in parameters]},
    }
    return [secret, reference]
