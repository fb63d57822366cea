"""The consumer of group ``enrich``: process, then a durable receipt, then commit."""
