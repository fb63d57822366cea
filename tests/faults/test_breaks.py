"""What breaks during a trial, and who notices: each of these shows that an assertion of experiment 2 can fail."""

import pytest
from kubernetes import client
from kubernetes.dynamic import DynamicClient

from lab.errors import NoData
from lab.measure.flips import stability
from lab.measure.integrity import integrity
from lab.measure.reaction import reaction
from lab.record.ledger.ingest import read
from lab.record.ledger.reconcile import reconcile
from lab.spec import inputs
from lab.spec import scale as scales
from lab.spec.workload import Workload
from lab.trial import runner

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def broken(cluster, spark, tmp_path_factory):
    """Runs a short step with a disturbance once the producer has started; returns the record."""

    def run(workload, disturb, seed):
        chosen = inputs.read("short-step", "lag", workload, seed, scales.load("quick"), "binary")
        return runner.run(cluster, chosen, tmp_path_factory.mktemp("results"), spark, disturb)

    return run


def kill_a_busy_pod(stage):
    """Delete, in the middle of the spike, a consumer that owns partitions; without drain SIGTERM ends it where it stands."""
    stage.transitions.wait(lambda: stage.reports.last("phase", phase="spike") is not None, 60, "spike began", stage.check)
    busy = max(stage.reports.owned().items(), key=lambda item: item[1])[0]
    client.CoreV1Api(stage.api).delete_namespaced_pod(busy, stage.namespace)


def pause_keda(stage):
    """Pause the ScaledObject before the spike, as an operator might and forget."""
    dynamic = DynamicClient(stage.api)
    resource = dynamic.resources.get(api_version="keda.sh/v1alpha1", kind="ScaledObject")
    body = {"metadata": {"name": stage.inputs.policy.name, "annotations": {"autoscaling.keda.sh/paused": "true"}}}
    dynamic.patch(resource, body=body, namespace=stage.namespace, content_type="application/merge-patch+json")


@pytest.fixture(scope="module")
def undrained(broken):
    """A trial whose consumers don't drain, with one of them killed while busy."""
    return broken(Workload(drain="off"), kill_a_busy_pod, seed=2)


def test_without_drain_a_killed_pod_doubles_work(undrained):
    """Work done and not committed is done again by another pod: the ledger names the range and both pods."""
    found = integrity(undrained)
    assert found.doubled > 0
    named = [item for item in undrained.reconciliation["doubled"] if len(item["pods"]) > 1]
    assert named, found.named
    assert found.lost == 0


def test_a_dropped_receipt_is_named_as_lost(undrained, spark):
    """Taking one receipt out of the store leaves its range lost, named with the pods beside the gap."""
    session = spark()
    events = read(session, undrained.folder / "ledger", "events")
    receipts = undrained.receipts
    doubled = {item["partition"] for item in undrained.reconciliation["doubled"]}
    clean = receipts[~receipts["partition"].isin(doubled)].sort_values(["partition", "first"])
    dropped = clean.iloc[len(clean) // 2]
    kept = session.createDataFrame(receipts.drop(index=dropped.name))
    verdict = reconcile(events, kept)
    assert verdict.lost_messages == dropped["count"]
    (gap,) = verdict.lost
    assert (gap.partition, gap.first, gap.last) == (dropped["partition"], dropped["first"], dropped["last"])
    assert gap.pods


def test_a_paused_keda_is_no_reaction_and_no_hang(broken):
    """The trial ends, the reaction has no data, and no data is not a pass."""
    record = broken(Workload(), pause_keda, seed=3)
    assert record.trial.ended != "running"
    assert stability(record).scale_ups == 0
    with pytest.raises(NoData, match="never asked for more replicas"):
        reaction(record)
    assert record.offsets
