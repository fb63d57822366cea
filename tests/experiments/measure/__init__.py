"""Measures of single experiments."""
