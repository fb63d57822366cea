"""The ladder of fixtures: each gives what it is named after, real and answering."""

import pytest
from confluent_kafka.admin import AdminClient

from lab.wait import until

pytestmark = pytest.mark.services


def test_prometheus_scrapes_the_cluster(prometheus):
    """It was asked and has samples, once it has scraped for the first time."""
    until(lambda: prometheus.custom_query("count(up)"), 60, "the first samples")


def test_kafka_is_a_broker_of_its_own(kafka, cluster):
    """It is not the cluster's."""
    assert kafka.bootstrap != cluster.bootstrap
    assert len(AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=30).brokers) == 1
