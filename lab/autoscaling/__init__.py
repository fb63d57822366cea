"""Policies: what a ScaledObject says, read strictly, and what a scale makes of it."""
