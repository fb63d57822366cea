"""How what runs in a trial's namespace logs in to Kafka: Secrets for its pods, and for KEDA what points to one. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lab.kafka import forms

NAME = "kafka-login"
SCALER = "lag-scaler-kafka"  # the name by which manifests/lagscaler asks for its own


def objects(settings: Mapping[str, str], servers: str) -> list[dict[str, Any]]:
    """Two Secrets and a TriggerAuthentication of a login to the brokers ``servers``; none without ``settings``.

    Of the one Secret pods read ``settings``, and KEDA the rest. The other is the persistent-lag scaler's.
    """
    if not settings:
        return []
    parameters, own = forms.keda(settings), {"settings": json.dumps(dict(settings))}
    reference = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "TriggerAuthentication",
        "metadata": {"name": NAME},
        "spec": {"secretTargetRef": [{"parameter": name, "name": NAME, "key": name} for name in parameters]},
    }
    return [_secret(NAME, own | parameters), _secret(SCALER, own | {"clusters": servers}), reference]


def _secret(name: str, data: Mapping[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": dict(data)}
