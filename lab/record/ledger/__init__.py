"""The ledger: what was produced and what was processed, message by message, ingested and reconciled with Spark."""
