"""A kind cluster as one that someone already runs: reached by its kubeconfig, with the Kafka and KEDA in its containers."""

import allure
import pytest

from lab import yamlfile
from lab.cluster import existing
from tests.faults.test_existing import ORDERS, named, tried

pytestmark = [pytest.mark.kind, allure.epic("Runtimes"), allure.feature("An existing cluster")]

ASKED = {"bootstrapServers": "kafka-0.kafka.svc:9092", "consumerGroup": "orders", "topic": "orders", "lagThreshold": "2250"}


def test_a_trial_on_kind_as_a_cluster_that_is_there(ours, spark, tmp_path):
    """Its pods are containers of the named image; all is accounted for, what can't be seen has its reason, nothing is left."""
    orders = ORDERS | {"spec": ORDERS["spec"] | {"triggers": [{"type": "kafka", "metadata": ASKED}]}}
    record = tried(existing.up(named(ours, ours.state.pods)), orders, tmp_path, spark)
    assert "keda_scaler_metrics_value" in set(record.samples["metric"])
    pod = yamlfile.read(record.folder / "inputs" / "deployment-consumer.yaml")["spec"]["template"]["spec"]
    assert [one["image"] for one in pod["containers"]] == [ours.state.pods]
    assert "shareProcessNamespace" not in pod
