"""Known behaviours of KEDA and the HPA, each with its public thread, on the real components (docs/known-behaviours.md)."""
