"""A group that has committed nothing is never at zero to KEDA: its own examples end in verdicts, and say where they began."""

from pathlib import Path

import pytest
import yaml

from lab.inputs import duet, inputs
from lab.inputs import scale as scales
from lab.inputs.inputs import REPLAYED
from lab.measure.delivery import delivery
from lab.trial import runner
from tests.experiments.workloads import slim

pytestmark = [pytest.mark.services, pytest.mark.nightly]

EXAMPLES = Path(__file__).parent.parent / "unit" / "inputs" / "data" / "keda-examples.yaml"
TRAFFIC = {"kind": "steps", "duration": 90, "steps": [{"at": 0, "rate": 60, "phase": "baseline"}]}  # 6 s at medium scale


# Each with its lagThreshold, and the replicas that a lag of 24 asks for: 150 are KEDA's default of 10 at medium.
TRIED = {"apache-kafka.md example 6": ("750", 1), "apache-kafka-go.md example 5": ("150", 3)}


def test_kedas_own_examples_are_tried(cluster, spark, tmp_path):
    """No minReplicaCount, offsetResetPolicy latest, a new group: KEDA wakes it, and the trial begins where KEDA takes it.

    The two are the sides of a duet. The second is of the apache-kafka scaler on MSK.
    """
    documented = {row["source"].rpartition("/")[2]: row["scaledobject"] for row in yaml.safe_load(EXAMPLES.read_text())}
    traffic = tmp_path / "traffic.yaml"
    traffic.write_text(yaml.safe_dump(TRAFFIC))
    chosen = []
    for number, (example, (threshold, _)) in enumerate(TRIED.items()):
        content, policy = documented[example], tmp_path / f"example-{number}.yaml"
        content["spec"]["triggers"][0]["metadata"]["lagThreshold"] = threshold
        policy.write_text(yaml.safe_dump(content))
        chosen.append(inputs.read(traffic, policy, slim(), 1, scales.load("medium"), "binary", until=REPLAYED))
    for record, (_, replicas) in zip(runner.run(cluster, duet.sides(*chosen), tmp_path, spark), TRIED.values(), strict=True):
        assert record.trial.ended == "complete"
        assert record.trial.baseline.replicas == replicas
        assert "lag 24 on 24 of 24 partitions" in record.trial.baseline.why
        found = delivery(record)
        assert found.processed.number == found.stored.number > 0
