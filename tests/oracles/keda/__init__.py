"""KEDA's own code as an oracle: cases go in as JSON, and the pinned KEDA's answers come out.

Brokers, API server and clock are fakes within the program; everything that counts or decides is KEDA's. The shapes of cases and
answers are in ``oracle_test.go``.
"""

from pathlib import Path

from lab.components import build
from tests.oracles.harness import Oracle

KEDA = Oracle(
    name="kedaoracle",
    module=build.KEDA_MODULE,
    folder=Path("pkg", "scalers"),
    files=(
        "scaler.go",
        "kafka_scaler.go",
        "apache_kafka_scaler.go",
        "prometheus_scaler.go",
        "cron_scaler.go",
        "cpu_memory_scaler.go",
        "external_scaler.go",
    ),
    drivers=Path(__file__).parent,
)
