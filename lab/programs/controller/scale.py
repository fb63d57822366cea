"""The scale subresource of one Deployment, over the Kubernetes API as a pod reaches it.

Two requests on one path: the Kubernetes client and all it depends on would make up most of the image and of the pod's start.
"""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any

from lab.errors import LabFault

PATCH = "application/merge-patch+json"
TIMEOUT_S = 5.0  # 5 ms on a quiet machine


class DeploymentScale:
    """Reads and patches the replicas of Deployment ``name`` with a service account's ``token``.

    ``ca`` are the certificates, as PEM, of whom the API's must be. ``ValueError`` or ``SSLError`` when they are none.
    """

    def __init__(self, host: str, port: int, token: str, ca: str, namespace: str, name: str) -> None:
        self._path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"
        self._token = token
        trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # and no one of the machine's own, as a default context would
        trusted.load_verify_locations(cadata=ca)
        self._connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=trusted)

    def read(self) -> int:
        """The replicas asked for. Raises :class:`LabFault` when the API can't be asked or refuses."""
        return int((self._ask("GET").get("spec") or {}).get("replicas", 0))  # a Scale leaves a 0 out

    def write(self, replicas: int) -> None:
        """Ask for ``replicas``. Raises :class:`LabFault` like :meth:`read`."""
        self._ask("PATCH", {"spec": {"replicas": replicas}})

    def _ask(self, method: str, body: dict[str, Any] | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", "Content-Type": PATCH}
        try:
            self._connection.request(method, self._path, None if body is None else json.dumps(body), headers)
            answer = self._connection.getresponse()
            text = answer.read()
            content = json.loads(text)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._connection.close()  # the next request opens it again
            raise LabFault(f"{method} {self._path}: no answer: {str(error) or type(error).__name__}") from None
        if answer.status != http.client.OK:
            raise LabFault(f"{method} {self._path}: {answer.status}: {content.get('message', text)}")
        return content
