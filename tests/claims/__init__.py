"""The register of claims: what the five texts and the public threads say, and what became of it (docs/claims)."""
