"""The ladder of fixtures: each gives what it is named after, real and answering; a session's cluster at several scales."""

import pytest
from confluent_kafka.admin import AdminClient

from lab.cluster import Rescaled
from lab.inputs import scale as scales
from lab.wait import until


@pytest.mark.services
def test_prometheus_scrapes_the_cluster(prometheus):
    """It was asked and has samples, once it has scraped for the first time."""
    until(lambda: prometheus.custom_query("count(up)"), 60, "the first samples")


@pytest.mark.services
def test_kafka_is_a_broker_of_its_own(kafka, cluster):
    """It is not the cluster's."""
    assert kafka.bootstrap != cluster.bootstrap
    assert len(AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=30).brokers) == 1


class Stand:
    """A cluster that writes down what is done to it."""

    def __init__(self, scale, done):
        self.scale, self._done = scale, done
        done.append(f"up {scale.name}")

    def down(self):
        """End."""
        self._done.append(f"down {self.scale.name}")

    def keep(self):
        """Leave running."""
        self._done.append(f"keep {self.scale.name}")


def test_a_cluster_at_another_scale_takes_the_place_of_the_running_one():
    """One runs at a time, and the last is ended or left running."""
    done = []
    session = Rescaled(lambda scale: Stand(scale, done))
    quick, standard = scales.load("quick"), scales.load("standard")
    assert session.at(quick) is session.at(quick)
    session.at(standard)
    session.close(keep=True)
    session.close()
    assert done == ["up quick", "down quick", "up standard", "keep standard"]
