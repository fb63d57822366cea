"""Judging: measured numbers against bounds, and what is said of them."""
