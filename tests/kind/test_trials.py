"""Trials in containers: on another client of Kafka, and on a kind cluster that stands for one that someone already runs."""

import allure
import pytest

from lab import yamlfile
from lab.cluster import existing
from lab.components import clients as programs
from lab.inputs import inputs
from lab.inputs.clients import FRANZ_GO, JAVA
from lab.inputs.inputs import REPLAYED
from lab.trial import runner
from tests.experiments.workloads import slim
from tests.faults.test_existing import ORDERS, named, tried

from .test_kind import scale_of

pytestmark = [pytest.mark.kind, allure.epic("Runtimes")]

ASKED = {"bootstrapServers": "kafka-0.kafka.svc:9092", "consumerGroup": "orders", "topic": "orders", "lagThreshold": "2250"}
TRAFFIC = "kind: steady\nrate: 200\nduration: 150\n"


@allure.feature("An existing cluster")
def test_a_trial_on_kind_as_a_cluster_that_is_there(kind_cluster, spark, tmp_path):
    """Its pods are containers of the named image; all is accounted for, what can't be seen has its reason, nothing is left."""
    orders = ORDERS | {"spec": ORDERS["spec"] | {"triggers": [{"type": "kafka", "metadata": ASKED}]}}
    record = tried(existing.up(named(kind_cluster, kind_cluster.state.pods)), orders, tmp_path, spark)
    assert "keda_scaler_metrics_value" in set(record.samples["metric"])
    pod = yamlfile.read(record.folder / "inputs" / "deployment-consumer.yaml")["spec"]["template"]["spec"]
    assert [one["image"] for one in pod["containers"]] == [kind_cluster.state.pods]
    assert "shareProcessNamespace" not in pod


@allure.feature("kind")
@pytest.mark.parametrize("client", [FRANZ_GO, JAVA])
def test_a_trial_on_another_client_runs_in_containers(kind_cluster, spark, tmp_path, client):
    """Three pods take all messages once; their metrics are scraped, and they report what they own."""
    (tmp_path / "traffic.yaml").write_text(TRAFFIC)
    wanted = (tmp_path / "traffic.yaml", "three-pods", slim(client=client), 1, scale_of(kind_cluster), "kind")
    (record,) = runner.run(kind_cluster, [inputs.read(*wanted, until=REPLAYED, partitions=6)], tmp_path, spark)
    assert record.trial.ended == "complete"
    assert record.reconciliation.lost_messages == record.reconciliation.phantom_messages == 0
    assert len({one.pod for one in record.handovers}) == 3
    assert "messages_processed_total" in set(record.samples["metric"])
    assert programs.ensure(client).items() <= record.trial.versions.items()
    pod = yamlfile.read(record.folder / "inputs" / "deployment-consumer.yaml")["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"].startswith(f"elastic-lab/clients/{client}:")
