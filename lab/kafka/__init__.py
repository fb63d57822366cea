"""Kafka: topics, consumer-group lag, and the layouts of events, reports and dead letters."""
