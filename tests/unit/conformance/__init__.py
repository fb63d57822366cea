"""The contract of a consumer: one that keeps it, and broken ones of which each breaks one rule."""
