"""The consumer of group ``enrich``: it processes a batch, makes a receipt durable, and then commits."""
