"""A kind cluster as one that someone already runs: reached by its kubeconfig, with the Kafka and KEDA in its containers."""

import copy
from typing import Any

import allure
import pytest
import yaml

from lab import yamlfile
from lab.cluster import existing
from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.inputs import REPLAYED
from lab.trial import runner
from tests.experiments.workloads import slim
from tests.faults.test_existing import ORDERS, TRAFFIC, context, settled, standing

pytestmark = [pytest.mark.kind, allure.epic("Runtimes"), allure.feature("An existing cluster")]

ASKED = {"bootstrapServers": "kafka-0.kafka.svc:9092", "consumerGroup": "orders", "topic": "orders", "lagThreshold": "2250"}


def test_a_trial_on_kind_as_a_cluster_that_is_there(ours, spark, tmp_path):
    """Its pods are containers of the named image; all is accounted for, what can't be seen has its reason, nothing is left."""
    there = existing.up(
        existing.Access(
            kubeconfig=ours.run / "kubeconfig",
            context=context(ours.run / "kubeconfig"),
            bootstrap=ours.bootstrap,
            pod_bootstrap=ours.pod_bootstrap,
            kafka_settings=ours.kafka_settings,
            prometheus=ours.prometheus_url,
            image=ours.state.pods,
        )
    )
    before = standing(there.access)
    orders: dict[str, Any] = copy.deepcopy(ORDERS)
    orders["spec"]["triggers"] = [{"type": "kafka", "metadata": ASKED}]
    (tmp_path / "traffic.yaml").write_text(yaml.safe_dump(TRAFFIC))
    (tmp_path / "orders.yaml").write_text(yaml.safe_dump(orders))
    wanted = (tmp_path / "traffic.yaml", tmp_path / "orders.yaml", slim(), 1, scales.load("real"), there.runtime)
    (record,) = runner.run(there, [inputs.read(*wanted, until=REPLAYED, partitions=6)], tmp_path, spark)

    assert settled(there.access, before) == before
    assert record.trial.ended == "complete"
    assert record.trial.missing.keys() == {"hpa.log"}
    assert record.reconciliation.produced == 1_000
    assert record.reconciliation.lost_messages == record.reconciliation.phantom_messages == 0
    assert {"kafka_consumergroup_lag_sum", "keda_scaler_metrics_value"} <= set(record.samples["metric"])
    pod = yamlfile.read(record.folder / "inputs" / "deployment-consumer.yaml")["spec"]["template"]["spec"]
    assert [one["image"] for one in pod["containers"]] == [ours.state.pods]
    assert "shareProcessNamespace" not in pod
