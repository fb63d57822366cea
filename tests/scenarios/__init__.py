"""Scenarios: systems as their authors describe them, run whole."""
