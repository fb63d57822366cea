"""Elastic Lab: prove how a Kafka consumer group scales on lag, before production."""
