"""Payments: the advanced patterns of a published text (docs/payments.md)."""
