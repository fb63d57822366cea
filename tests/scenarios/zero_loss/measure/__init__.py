"""Measures of scenario zero loss."""
