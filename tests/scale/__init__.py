"""Runs of the same trials at several scales, which docs/scale.md compares; ``pytest -m scale`` runs them."""
