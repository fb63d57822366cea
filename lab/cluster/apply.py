"""The apiserver: a client that gives up on one that does not answer; objects applied, deleted and waited for.

They are applied as ``kubectl apply --server-side`` does it.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.client.rest import RESTClientObject
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError, NotFoundError
from urllib3 import Retry, exceptions

from lab.cluster.certs import Pair
from lab.errors import LabFault, NoAnswer, one_line
from lab.wait import until, within

MANAGER = "elastic-lab"
ANSWER_S = 30.0  # of one call; a webhook that it waits for has 10 s by default
AGAIN_S = 1.0  # after which a busy server is asked again at the latest: an apiserver itself says 1 s


class _Soon(Retry):
    """Asks again when the server says (Retry-After), but after AGAIN_S at most, or what is left of a wait."""

    def parse_retry_after(self, retry_after: str) -> float:
        """Seconds from now on. urllib3 sleeps as long, for up to 6 h, and no deadline ends that."""
        return min(within(AGAIN_S), super().parse_retry_after(retry_after))


class _Impatient(RESTClientObject):
    """Waits ANSWER_S for each answer, or what is left of a wait. It sends a request again only where a server says when."""

    def request(self, *arguments: Any, **named: Any) -> Any:
        """Send it. Raises :class:`NoAnswer`. A pair of time-outs, which a watch has, is left as it is."""
        send: Any = super().request
        limit = named.pop("_request_timeout", None) or ANSWER_S
        begun = time.monotonic()
        try:
            return send(*arguments, **named, _request_timeout=limit if isinstance(limit, tuple) else within(limit))
        except exceptions.HTTPError as error:
            cause = getattr(error, "reason", None) or error
            late = isinstance(cause, exceptions.TimeoutError) and not isinstance(cause, exceptions.NewConnectionError)
            why = f"no answer within {time.monotonic() - begun:.3g} s" if late else str(cause)
            method, url = arguments[:2]
            raise NoAnswer(one_line(f"{method} {url.partition('?')[0]}: {why}")) from error


def connect(kubeconfig: Path, context: str | None = None) -> client.ApiClient:
    """A new client of the apiserver in ``kubeconfig``, every call of which ends. Raises ``ConfigException``."""
    try:
        api: client.ApiClient = config.new_client_from_config(str(kubeconfig), context)
    except (
        AttributeError,
        KeyError,
        OSError,
        TypeError,
        ValueError,
        yaml.YAMLError,
    ) as error:  # it checks no type of what it reads
        raise config.ConfigException(f"not a kubeconfig that can be used: {one_line(str(error))}") from None
    # A busy apiserver says when to come again, and is asked; what fails otherwise is for the caller to try again.
    api.configuration.retries = _Soon(3, connect=0, read=0, other=0)
    api.rest_client = _Impatient(api.configuration)
    return api


def dynamic_client(api: client.ApiClient) -> DynamicClient:
    """A client for every kind that the apiserver of ``api`` has, which leaves no file of what it learned.

    The library would keep one in the temporary folder, by the server's address: another session's may be there, or another
    user's.
    """
    return DynamicClient(api, cache_file=str(Path(os.devnull, "none")))  # where no file can be


def objects(api: client.ApiClient, wanted: Iterable[Mapping[str, Any]], namespace: str | None = None) -> None:
    """Apply each object, in ``namespace`` unless it names its own. Raises :class:`LabFault` with the apiserver's reason."""
    known = dynamic_client(api)
    for item in wanted:
        resource = known.resources.get(api_version=item["apiVersion"], kind=item["kind"])
        name = item["metadata"]["name"]
        try:
            known.server_side_apply(
                resource,
                body=dict(item),
                name=name,
                namespace=item["metadata"].get("namespace", namespace),
                field_manager=MANAGER,
                force_conflicts=True,
            )
        except DynamicApiError as error:
            raise LabFault(f"{item['kind']} {name} could not be applied: {error.summary()}") from None


def create_namespace(api: client.ApiClient, name: str) -> None:
    """Create a namespace with the lab's label. Raises :class:`LabFault` where one of that name is there: it is someone's."""
    wanted = client.V1Namespace(metadata=client.V1ObjectMeta(name=name, labels={"created-by": MANAGER}))
    try:
        client.CoreV1Api(api).create_namespace(wanted)
    except ApiException as error:
        raise LabFault(f"Namespace {name} could not be created: {error.reason}") from None


def delete(api: client.ApiClient, unwanted: Iterable[Mapping[str, Any]], namespace: str) -> None:
    """Delete each object and its dependents, in the background; an object that is not there is no fault."""
    known = dynamic_client(api)
    for item in unwanted:
        resource = known.resources.get(api_version=item["apiVersion"], kind=item["kind"])
        body = {"propagationPolicy": "Background"}
        with contextlib.suppress(NotFoundError):
            known.delete(resource, name=item["metadata"]["name"], namespace=namespace, body=body)


def api_service(name: str, service: str, namespace: str, port: int, ca: Path) -> dict[str, Any]:
    """The APIService ``name`` ("v1beta1.metrics.k8s.io"), served by ``service``:``port`` with a certificate of ``ca``'s."""
    version, _, group = name.partition(".")
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "caBundle": base64.b64encode(ca.read_bytes()).decode(),
            "service": {"name": service, "namespace": namespace, "port": port},
        },
    }


def wait_for_apiserver(server: str, ca: Path, pair: Pair, deadline_s: float, check: Callable[[], None]) -> None:
    """Wait until ``/readyz`` answers; ``check`` raises when the apiserver has died."""
    context = ssl.create_default_context(cafile=str(ca))
    context.load_cert_chain(pair.cert, pair.key)
    until(lambda: answers(f"{server}/readyz", context), deadline_s, "kube-apiserver's /readyz", check)


def answers(url: str, context: ssl.SSLContext | None = None) -> bool:
    """Whether ``url`` answers with 200 within 5 s."""
    try:
        with urllib.request.urlopen(url, context=context, timeout=within(5)) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError, http.client.HTTPException):  # the last: it is no HTTP
        return False


def wait_for_api_service(api: client.ApiClient, name: str, deadline_s: float, check: Callable[[], None]) -> None:
    """Wait until the APIService ``name`` is Available, so that its metrics can be asked for."""
    registration = client.ApiregistrationV1Api(api)

    def available() -> bool:
        try:
            return _holds(registration.read_api_service(name), "Available")
        except ApiException:
            return False

    until(available, deadline_s, f"APIService {name}", check)


def wait_for_definitions(api: client.ApiClient, names: list[str], deadline_s: float, check: Callable[[], None]) -> None:
    """Wait until every CustomResourceDefinition in ``names`` is Established."""
    definitions = client.ApiextensionsV1Api(api)

    def all_established() -> bool:
        return all(_holds(definitions.read_custom_resource_definition_status(name), "Established") for name in names)

    until(all_established, deadline_s, "KEDA's CustomResourceDefinitions", check)


def _holds(found: Any, kind: str) -> bool:
    """Whether a condition of an object is true."""
    return any(one.type == kind and one.status == "True" for one in (found.status and found.status.conditions) or ())
