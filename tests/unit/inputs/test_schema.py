"""The fields that each trigger takes against KEDA's own list of them: the schema in the pinned module."""

import json

import pytest

from lab.components import build
from lab.errors import InputError
from lab.inputs.triggers import common, cron, external, kafka, parsing, prometheus, resource

pytestmark = pytest.mark.services  # the module comes with what a cluster is built of

FIELDS = {
    "kafka": (kafka.FIELDS["kafka"], kafka.REFUSALS["kafka"]),
    "apache-kafka": (kafka.FIELDS["apache-kafka"], kafka.REFUSALS["apache-kafka"]),
    "prometheus": (prometheus.FIELDS, prometheus.REFUSALS),
    "cron": (cron.FIELDS, {}),
    "cpu": (resource.FIELDS, resource.REFUSALS),
    "memory": (resource.FIELDS, resource.REFUSALS),
    "external": (external.FIELDS, external.REFUSALS),
}


# KEDA's code asks the metadata for these by name, besides what its schema lists: the file under pkg/scalers that does.
AWS = ("identityOwner", "awsAccessKeyID", "awsAccessKeyIDFromEnv", "awsSecretAccessKeyFromEnv")
BY_HAND = {
    **dict.fromkeys(AWS, "aws/aws_common.go"),
    "cloud": "azure/azure_cloud_environment.go",
    "azureManagedPrometheusResourceURL": "azure/azure_managed_prometheus_http_round_tripper.go",
    "credentialsFromEnv": "gcp/gcp_common.go",
    "credentialsFromEnvFile": "gcp/gcp_common.go",
}


@pytest.fixture(scope="module")
def keda():
    """The folder of the pinned module."""
    return build.source(build.KEDA_MODULE, "kubernetes")


@pytest.fixture(scope="module")
def parameters(keda):
    """By trigger type, its parameters: name and where KEDA reads it."""
    schema = json.loads((keda / "schema" / "generated" / "scalers-schema.json").read_text())
    return {scaler["type"]: scaler["parameters"] for scaler in schema["scalers"]}


def test_every_type_that_is_read_is_one_of_kedas(parameters):
    """And none is missing here."""
    assert FIELDS.keys() == parsing.TYPES.keys() <= parameters.keys()


@pytest.mark.parametrize("kind", FIELDS)
def test_kedas_fields_are_taken_or_refused_with_a_reason_and_no_others(kind, parameters):
    """In metadata KEDA reads some fields, by FromEnv fewer, and others from a TriggerAuthentication alone."""
    taken, refused = FIELDS[kind]
    written = {one["name"] for one in parameters[kind] if one.get("metadataVariableReadable")}
    written |= {f"{one['name']}FromEnv" for one in parameters[kind] if one.get("envVariableReadable")}
    elsewhere = {one["name"] for one in parameters[kind]} - written
    gone = {one["name"] for one in parameters[kind] if one.get("deprecated")}
    assert set(taken) - (BY_HAND.keys() - written) == written - gone
    assert set(refused) == elsewhere | gone
    assert all(refused.values())


@pytest.mark.parametrize(("field", "file"), BY_HAND.items())
def test_what_the_schema_leaves_out_is_read_by_name(field, file, keda):
    """KEDA's code asks the metadata for it."""
    assert f'"{field}"' in (keda / "pkg" / "scalers" / file).read_text()


@pytest.mark.parametrize("kind", FIELDS)
def test_a_refused_field_is_named_with_its_reason(kind):
    """By the parser itself, whatever else the trigger says, and without what may be a secret."""
    for field, reason in FIELDS[kind][1].items():
        with pytest.raises(InputError) as error:
            parsing.parse([{"type": kind, "metricType": "AverageValue", "metadata": {field: "s3cret"}}], "my.yaml")
        assert (error.value.field, error.value.allowed) == (f"spec.triggers[0].metadata.{field}", reason)
        assert ("s3cret" in str(error.value)) == (reason != common.FROM_REFERENCE)
