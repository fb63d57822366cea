"""Zero loss: a published promise that every message gets processed (docs/zero-loss.md)."""
