"""Measures of scenario payments."""
