"""The real HPA controller as an oracle for the model: its own Go files, run on cases under a fake clock.

``horizontal.go`` and ``replica_calculator.go`` of the pinned Kubernetes are copied out of the Go module at build time, never
committed, and compiled with ``driver_test.go`` into one program. What runs of the real code is ``reconcileAutoscaler`` whole,
with everything it calls but the clients, behind the API server's own defaulting and validation of the HPA.
"""

from tests.oracles.hpa.build import ensure
from tests.oracles.hpa.cases import Case, Step, Sync
from tests.oracles.hpa.process import Oracle, Refused

__all__ = ["Case", "Oracle", "Refused", "Step", "Sync", "ensure"]
