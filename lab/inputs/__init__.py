"""A trial's inputs as people write them: profiles, scales, workloads, policies and triggers, read strictly and typed."""
