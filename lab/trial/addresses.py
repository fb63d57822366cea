"""Where a ScaledObject finds what it asks, and how a trial's parts log in to each other: known only when it is applied."""

from __future__ import annotations

import copy
import json
import re
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.cluster.certs import Authority
from lab.errors import InputError
from lab.inputs import store
from lab.inputs.triggers.kafka import APACHE, KAFKA
from lab.kafka import forms
from lab.kubelet.environment import expand

SCALER_PORT = 6000
LOGIN = "kafka-login"
SCALER_LOGIN = "lag-scaler-kafka"  # the names by which manifests/lagscaler asks for its own
SCALER_TLS = "lag-scaler-tls"
KEDA_TLS = "lag-scaler-client"
_NAMESPACE = re.compile(r"""\bnamespace\s*=\s*(["'`])[^"'`]*\1""")


def asks_scaler(item: Mapping[str, Any]) -> bool:
    """Whether ``item`` is a ScaledObject with an external trigger, whose scaler must be there before it."""
    return item["kind"] == "ScaledObject" and any(one["type"] == "external" for one in item["spec"]["triggers"])


def asks_store(item: Mapping[str, Any]) -> bool:
    """Whether the pods of ``item`` write to the shared store, which must be there before them."""
    return bool(_store_variables(item))


def located(
    item: Mapping[str, Any],
    namespace: str,
    prometheus: str,
    scaler: str,
    login: str | None = None,
    shared: str = "",
    names: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """``item`` as it is applied in ``namespace``: a ScaledObject's triggers get the URL ``prometheus`` and the IP ``scaler``.

    Pods that write to the shared store get its IP, ``shared``. Queries ask for this namespace, and ``$(NAME)`` in one is the
    group or the topic of ``names``. Triggers that ask Kafka log in with the TriggerAuthentication ``login``, if there is one,
    and those that ask the scaler with a certificate. KEDA asks it for none that names its address, which no one knows before
    its pod is there. Pure.
    """
    placed = copy.deepcopy(dict(item))
    placed["metadata"].pop("namespace", None)
    for variable in _store_variables(placed):
        variable["value"] = f"{shared}:{store.PORT}"
    if placed["kind"] != "ScaledObject":
        return placed
    for trigger in placed["spec"]["triggers"]:
        metadata = trigger["metadata"]
        if trigger["type"] == "prometheus":
            if not prometheus:
                raise InputError(
                    "command line", "--lab-prometheus", None, "the address that the policy's prometheus trigger asks"
                )
            metadata["serverAddress"] = prometheus
            metadata["query"] = expand(_NAMESPACE.sub(f'namespace="{namespace}"', metadata["query"]), names or {})
        elif trigger["type"] == "external":
            metadata |= {"scalerAddress": f"{scaler}:{SCALER_PORT}", "unsafeSsl": "true"}
            trigger["authenticationRef"] = {"name": KEDA_TLS}
        elif trigger["type"] in (KAFKA, APACHE) and login is not None:
            trigger["authenticationRef"] = {"name": login}
    return placed


def _store_variables(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The variables of the pods of ``item`` that are left open for the shared store's address."""
    return [one for one in _variables(item) if one == {"name": store.ADDRESS, "value": ""}]


def _variables(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The variables of the pods of ``item``."""
    containers = item.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])
    return [one for container in containers for one in container.get("env", [])]


def _asks_token(item: Mapping[str, Any]) -> bool:
    """Whether the pods of ``item`` are given the trial's token."""
    sources = (one.get("valueFrom", {}).get("secretKeyRef", {}) for one in _variables(item))
    return any(one.get("name") == store.LOGIN for one in sources)


def login_objects(settings: Mapping[str, str], servers: str) -> list[dict[str, Any]]:
    """Two Secrets and a TriggerAuthentication of a login to the brokers ``servers``; none without ``settings``.

    Of the one Secret pods read ``settings``, and KEDA the rest. The other is the persistent-lag scaler's.
    """
    if not settings:
        return []
    parameters, own = forms.keda(settings), {"settings": json.dumps(dict(settings))}
    return [_secret(LOGIN, own | parameters), _secret(SCALER_LOGIN, own | {"clusters": servers}), _for_keda(LOGIN, parameters)]


def own_logins(applied: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the parts of a trial need to log in to each other, by what is ``applied``: made anew with each call.

    Pods have a token in common with the shared store and the services that they send to. KEDA and the lag scaler have a
    certificate of one authority, whose key is forgotten.
    """
    made = []
    if any(map(_asks_token, applied)):
        made.append(_secret(store.LOGIN, {"token": secrets.token_urlsafe(32)}))
    if any(map(asks_scaler, applied)):
        with tempfile.TemporaryDirectory(prefix="elastic-lab-") as folder:
            authority = Authority(Path(folder))
            pair = authority.issue("lag-scaler", "lag-scaler")
            cert, key, ca = (file.read_text() for file in (pair.cert, pair.key, authority.cert))
        parameters = {"tlsClientCert": cert, "tlsClientKey": key}
        made += [_secret(SCALER_TLS, {"tls.crt": cert, "tls.key": key, "ca.crt": ca}), _secret(KEDA_TLS, parameters)]
        made.append(_for_keda(KEDA_TLS, parameters))
    return made


def _for_keda(name: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    """The TriggerAuthentication ``name``, whose ``parameters`` are in the Secret of its name."""
    targets = [{"parameter": one, "name": name, "key": one} for one in parameters]
    shown = {"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": {"name": name}}
    return shown | {"spec": {"secretTargetRef": targets}}


def _secret(name: str, data: Mapping[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": dict(data)}
