"""Members of consumer groups that use Sarama, the Go client that KEDA itself asks Kafka with: a case in, what it consumed out.

Brokers are real, and each member joins, consumes and leaves as a pod of Go does. The shapes of cases and answers are in
``group_test.go``.
"""

from pathlib import Path

from tests.oracles.harness import Oracle

SARAMA = Oracle(name="saramaoracle", module="github.com/IBM/sarama", folder=Path(), files=(), drivers=Path(__file__).parent)
