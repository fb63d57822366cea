"""The consumer of the payments text, as it works with kafka-python 3.0.12: ``python working.py``. README.md has the changes.

It needs ``pip install kafka-python==3.0.12`` and the variables KAFKA_BROKERS, KAFKA_TOPIC, CONSUMER_GROUP. With KAFKA_USER and
KAFKA_PASSWORD it logs in by SASL PLAIN.
"""

import logging
import os
import signal

from kafka import KafkaConsumer, OffsetAndMetadata
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

logging.basicConfig(level=logging.INFO)


class GracefulKiller:
    """Notes SIGINT and SIGTERM: the loop ends with the messages in its hands."""

    kill_now = False

    def __init__(self) -> None:
        signal.signal(signal.SIGINT, self.exit_gracefully)
        signal.signal(signal.SIGTERM, self.exit_gracefully)

    def exit_gracefully(self, *_: object) -> None:
        """Ask the loop to end."""
        logging.info("Received shutdown signal, initiating graceful shutdown...")
        self.kill_now = True


def login() -> dict[str, str]:
    """The login in the environment; none without one."""
    if "KAFKA_USER" not in os.environ:
        return {}
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": os.environ["KAFKA_USER"],
        "sasl_plain_password": os.environ["KAFKA_PASSWORD"],
    }


def main() -> None:
    """Consume until SIGTERM."""
    killer = GracefulKiller()
    consumer = KafkaConsumer(
        os.environ["KAFKA_TOPIC"],
        bootstrap_servers=os.environ["KAFKA_BROKERS"].split(","),
        group_id=os.environ["CONSUMER_GROUP"],
        partition_assignment_strategy=[CooperativeStickyAssignor],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_interval_ms=300_000,
        **login(),
    )
    logging.info("Consumer started, waiting for messages...")
    while not killer.kill_now:
        for partition, messages in consumer.poll(timeout_ms=1000).items():
            for _ in messages:
                logging.info("Processing message from %s partition %s", partition.topic, partition.partition)
            consumer.commit({partition: OffsetAndMetadata(messages[-1].offset + 1, "", -1)})
    logging.info("Closing Kafka consumer...")
    consumer.close()
    logging.info("Shutdown complete.")


if __name__ == "__main__":
    main()
