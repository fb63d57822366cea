"""Errors that a consumer is given in the place of a message, and after which librdkafka goes on by itself."""

from __future__ import annotations

from confluent_kafka import KafkaError

QUIET = {KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART}  # they are no news
# librdkafka calls none of what a poll returns retriable.
PASSING = QUIET | {
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._WAIT_COORD,
    KafkaError._MAX_POLL_EXCEEDED,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}
