"""Benchmarks: each prints a ratio against a peer measured in the same run. Run them on a quiet machine."""
