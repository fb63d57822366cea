"""Measures: pure functions from a record to a small dataclass with units."""
