"""Kafka: the broker as a local process, topics, consumer-group lag and its exporter."""
