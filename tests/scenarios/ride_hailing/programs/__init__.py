"""The ride-hailing scenario's programs: ingestion, traffic, analytics, matching and the riders' API."""
