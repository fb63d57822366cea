"""The ladder of fixtures: each gives what it is named after, real and answering; a session's cluster at several scales."""

import itertools
import json
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import AdminClient
from prometheus_api_client import PrometheusConnect

from lab.__main__ import main
from lab.cluster import Rescaled, metrics
from lab.components import build
from lab.errors import LabFault
from lab.host import processes
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


@pytest.fixture
def scraped(tmp_path):
    """A function that starts a Prometheus alone and has it scrape a page of this text; it gives its URL."""
    left = []

    def start(text):
        class Page(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        page = HTTPServer(("127.0.0.1", 0), Page)
        threading.Thread(target=page.serve_forever, daemon=True).start()
        left.extend([page.server_close, page.shutdown])
        jobs = [{"job_name": "exporter", "static_configs": [{"targets": [f"127.0.0.1:{page.server_port}"]}]}]
        content = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(content))
        url = f"127.0.0.1:{processes.free_ports(1)[0]}"
        flags = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data", "--log.level=error"]
        program = subprocess.Popen([build.ensure().binary("prometheus"), *flags, f"--web.listen-address={url}"])
        left.append(lambda: (program.terminate(), program.wait(60)))
        until(lambda: metrics.prometheus_ready(f"http://{url}"), 60, "Prometheus's /-/ready")
        return f"http://{url}"

    yield start
    for end in reversed(left):
        end()


@pytest.mark.services
def test_a_prometheus_tells_profile_the_traffic_that_was(scraped, capsys):
    """Half an hour of two partitions, told with their times: by raw samples of their ends, and by an expression's answers."""
    rates = [100] * 60 + [900] * 8 + [100] * 50
    counts, name = [0, *itertools.accumulate(15 * rate for rate in rates)], "kafka_topic_partition_current_offset"
    begin = int(time.time() - 15 * len(rates)) * 1000
    samples = itertools.product((0, 1), enumerate(counts))
    lines = [f'{name}{{topic="orders",partition="{part}"}} {count} {begin + 15_000 * n}\n' for part, (n, count) in samples]
    url = scraped(f"# TYPE {name} counter\n{''.join(lines)}")
    client = PrometheusConnect(url=url)
    until(lambda: client.custom_query(f"{name}[1h]"), 60, "the exporter's samples")
    for query in (name, f"sum(rate({name}[1m]))"):
        assert main(["profile", f"--prometheus={url}", f"--query={query}", "--range=40m", "--json"]) == 0
        content = json.loads(capsys.readouterr().out)
        assert content["kept"]["peak_rate"]["seen"] == pytest.approx(1_800, rel=0.01)
        assert [one["phase"] for one in content["phases"]] == ["baseline", "spike", "drain"]
        assert content["kept"]["burst_s"]["steps"] == pytest.approx(120, abs=60)


class Stand:
    """A cluster that writes down what is done to it."""

    def __init__(self, scale, done):
        self.scale, self.died, self.spoiled, self._done = scale, "", "", done
        done.append(f"up {scale.name}")

    def check(self):
        """Say what died."""
        if self.died:
            raise LabFault(self.died)

    def down(self):
        """End."""
        self._done.append(f"down {self.scale.name}")

    def keep(self):
        """Leave running."""
        self._done.append(f"keep {self.scale.name}")


def test_a_cluster_at_another_scale_takes_the_place_of_the_running_one():
    """So does one that of a cluster that lost a component, or is spoiled. One runs at a time; the last is ended or left."""
    done = []
    session = Rescaled(lambda scale: Stand(scale, done))
    quick, standard = scales.load("quick"), scales.load("standard")
    assert session.at(quick) is session.at(quick)
    broken: Any = session.at(quick)
    broken.died = "keda-operator ended"
    assert session.at(quick) is session.at(quick)
    left: Any = session.at(quick)
    left.spoiled = "a fault could not be taken back"
    assert session.at(quick) is not left
    session.at(standard)
    session.close(keep=True)
    session.close()
    assert done == ["up quick", "down quick"] * 3 + ["up standard", "keep standard"]
