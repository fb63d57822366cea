"""How a trigger logs in to what it asks: fields that mean nothing on a broker and a Prometheus of the lab's own."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit, urlunsplit

AWS = ("awsRegion", "identityOwner", "awsAccessKeyID", "awsAccessKeyIDFromEnv", "awsSecretAccessKeyFromEnv")
CLOUDS = (*AWS, "cloud", "azureManagedPrometheusResourceURL", "credentialsFromEnv", "credentialsFromEnvFile")
HTTP = ("authModes", "authMode", "apiKey", "method", "keyParamName", "customHeaders")
KAFKA = ("sasl", "tls", "unsafeSsl", "saslTokenProvider")
GRPC = ("enableTLS", "unsafeSsl")
FIELDS = tuple(dict.fromkeys((*KAFKA, *GRPC, *HTTP, *CLOUDS)))
# KEDA's code asks the metadata for these by name, besides what its schema lists: the file under pkg/scalers that does.
BY_HAND = {
    "identityOwner": "aws/aws_common.go",
    "awsAccessKeyID": "aws/aws_common.go",
    "awsAccessKeyIDFromEnv": "aws/aws_common.go",
    "awsSecretAccessKeyFromEnv": "aws/aws_common.go",
    "cloud": "azure/azure_cloud_environment.go",
    "azureManagedPrometheusResourceURL": "azure/azure_managed_prometheus_http_round_tripper.go",
    "credentialsFromEnv": "gcp/gcp_common.go",
    "credentialsFromEnvFile": "gcp/gcp_common.go",
}
FROM_REFERENCE = "nothing: KEDA takes it from the TriggerAuthentication of an authenticationRef, and not from here"
MASK = "(not shown)"
_SECRETS = ("apiKey", "awsAccessKeyID", "customHeaders")


def of_reference(*fields: str) -> dict[str, str]:
    """Why each of ``fields`` is refused in metadata: only a TriggerAuthentication has it."""
    return dict.fromkeys(fields, FROM_REFERENCE)


def printable(field: str, value: object, secrets: Iterable[str] = _SECRETS) -> object:
    """``value`` as it may be printed and kept; what may be a secret is neither."""
    return MASK if value is not None and field in secrets else value


def without_login(url: str) -> str:
    """``url`` without user, password, query and fragment, any of which may be a secret; one that has none as it is.

    What can't be taken apart is cut before its last "@", so that nothing of a login is left.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for one that is no number
    except ValueError:
        return url.rpartition("@")[2].partition("?")[0].partition("#")[0]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
