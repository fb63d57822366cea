"""The gRPC service as KEDA's client uses it: all five methods, both number fields, and the status of what can't be answered."""

import asyncio
import queue
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from confluent_kafka import KafkaError
from grpc_tools import protoc
from prometheus_client import CollectorRegistry, generate_latest

from lab.programs import lagscaler
from lab.programs.lagscaler import externalscaler_pb2 as pb
from lab.programs.lagscaler import service as program
from lab.programs.lagscaler.metrics import Metrics, Triggers
from lab.programs.lagscaler.service import NAME, ExternalScaler
from lab.wait import until
from tests.unit.programs.lagscaler.fakes import METADATA, Client, Scaled, error

HANG_S = 60  # for what takes milliseconds on a quiet machine: it only ends a test that hangs


class Served(Scaled):
    """The service on a loop of its own, over a Kafka that answers what it is told."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.registered = CollectorRegistry()
        self.registered.register(Triggers(self.registry))
        self._up: queue.Queue[int] = queue.Queue()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        self.address = f"127.0.0.1:{self._up.get(timeout=HANG_S)}"

    async def _serve(self):
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._scaler = ExternalScaler(self.registry, Metrics(self.registered))
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((self._scaler.handler(),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        self._up.put(port)
        await self._stop.wait()
        await server.stop(0)

    def after(self, seconds, times=1):
        """Let time pass, take what is due, and tell the service."""
        taken = super().after(seconds, times)
        self._scaler.sampled()
        return taken

    def stop(self):
        """End the service."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(HANG_S)


@pytest.fixture
def served():
    """A service of two triggers at most, of which one lags by 500, which has lasted; and a client of it."""
    service = Served(limit=2)
    service.kafka.lags(300, 200)
    service.state()
    service.after(10, 5)
    with Client(service.address) as client:
        yield service, client
    service.stop()


def test_the_metric_and_its_target_in_both_number_fields(served):
    """KEDA takes the float where it is above 0 and the whole number otherwise; the name is the same in all answers."""
    service, client = served
    spec = client.spec().metricSpecs[0]
    assert (spec.metricName, spec.targetSize, spec.targetSizeFloat) == ("persistent-lag-orders", 100, 100.0)
    assert client.stream_spec().metricSpecs[0] == spec  # pushed at once, so that KEDA has it when the scaler is away
    value = client.metrics().metricValues[0]
    assert (value.metricName, value.metricValue, value.metricValueFloat) == ("persistent-lag-orders", 500, 500.0)
    assert client.active().result is True
    service.kafka.lags(0, 0)
    service.after(10)
    value = client.metrics().metricValues[0]
    assert (value.metricValue, value.metricValueFloat) == (0, 0.0)
    assert client.active().result is False


def refused(code, call, *given, **named):
    """What the call is told that ends with this status."""
    with pytest.raises(grpc.RpcError) as told:
        call(*given, **named)
    assert told.value.code() == code
    return told.value.details()


def test_what_is_wrong_is_an_invalid_argument_that_names_the_field(served):
    """From every method, so that the ScaledObject is not Ready; nothing is remembered of it. Nor has it another's metric."""
    service, client = served
    for call in (client.spec, client.metrics, client.active, client.stream_active, client.stream_spec):
        said = refused(grpc.StatusCode.INVALID_ARGUMENT, call, METADATA | {"lagThreshold": "many"})
        assert said.startswith("ScaledObject shop/consumer: metadata.lagThreshold: 'many' is not allowed")
    assert len(service.registry.all()) == 1
    said = refused(grpc.StatusCode.INVALID_ARGUMENT, client.metrics, name="kafka-orders")
    assert "metricName: 'kafka-orders' is not allowed; allowed: persistent-lag-orders" in said
    assert client.spec(METADATA | {"topic": "payments"}).metricSpecs
    assert "2 triggers" in refused(grpc.StatusCode.RESOURCE_EXHAUSTED, client.spec, METADATA | {"topic": "refunds"})
    assert client.spec().metricSpecs


def test_what_is_not_known_is_unavailable_and_neither_zero_nor_inactive(served):
    """Of both calls, for as long as it is not known: on an error neither KEDA nor the HPA scales anything in."""
    service, client = served
    service.kafka.answers.clear()
    service.after(10, 4)
    for call in (client.metrics, client.active):
        assert "no sample for 40 s" in refused(grpc.StatusCode.UNAVAILABLE, call)
    assert client.spec().metricSpecs[0].targetSize == 100


def test_a_new_triggers_first_question_waits_for_its_first_reading(served, monkeypatch):
    """KEDA's next one would come a pollingInterval later."""
    service, client = served
    monkeypatch.setattr(program, "FIRST_READING_S", 60.0)  # its 2 s may be over on a busy machine before the reading below
    service.kafka.lags(0, topic="payments")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.metrics, METADATA | {"topic": "payments"}, "persistent-lag-payments")
        until(lambda: len(service.registry.all()) == 2, 30, "the question")
        with pytest.raises(TimeoutError):
            asked.result(timeout=0.2)
        service.after(10)
        assert asked.result(timeout=HANG_S).metricValues[0].metricValue == 0


def test_activity_is_pushed_when_it_is_sampled(served):
    """At once what is known, then each change, and work again with each sample; an open stream keeps its trigger.

    KEDA drops the activity of a ScaledObject that is new. That there is none is said once.
    """
    service, client = served
    stream = client.stream_active(wait=False)
    assert next(stream).result is True
    for lag, same in ((0, 3), (7, 0), (7, 0), (0, 2)):
        service.kafka.lags(lag, 0)
        service.after(10)
        assert next(stream).result is bool(lag)
        for _ in range(same):
            service.after(10)
            client.active()  # the loop has had its turn
    service.after(2000)
    ((_, _, state),) = service.registry.all()
    stream.cancel()
    until(lambda: not state.streams, HANG_S, "the stream to be over")
    service.after(2000)
    assert service.registry.all() == []


def test_activity_is_not_pushed_while_it_is_not_known(served):
    """A stream opened in an outage is not told what was true before it; it is told as soon as Kafka answers."""
    service, client = served
    service.kafka.lags(0, 0)
    service.after(10)
    service.kafka.down = error(KafkaError._TRANSPORT)
    service.after(10, 4)
    stream = client.stream_active(wait=False)
    until(lambda: service.state().streams, HANG_S, "the stream")
    with pytest.raises(grpc.RpcError):
        client.active()
    service.kafka.down = None
    service.kafka.lags(7, 0)
    service.after(10)
    assert next(stream).result is True
    stream.cancel()


def test_what_it_did_and_what_it_hands_over_are_metrics(served):
    """And what is not known has no value."""
    service, client = served
    client.metrics()
    labels = '{group="enrich",metric="persistent-lag-orders",namespace="shop",scaledobject="consumer",trigger="0"}'
    text = generate_latest(service.registered).decode()
    assert f"lagscaler_metric{labels} 500.0" in text
    assert f"lagscaler_lag{labels} 500.0" in text
    assert f"lagscaler_stretch_seconds{labels} 40.0" in text
    assert 'lagscaler_request_seconds_count{code="OK",method="GetMetrics"} 1.0' in text
    assert "lagscaler_triggers 1.0" in text
    service.state(lagThreshold="50")
    service.clock.now += 100
    text = generate_latest(service.registered).decode()
    assert "lagscaler_metric{" not in text
    assert "lagscaler_triggers 2.0" in text


def test_triggers_that_differ_in_a_threshold_alone_are_two_series(served):
    """The lower one is the first; what an edit replaced is none, once KEDA has asked for the other alone for a minute."""
    service, _ = served
    service.state(lagThreshold="400")
    text = generate_latest(service.registered).decode()
    for trigger, stretch in (("0", 40.0), ("1", 0.0)):
        assert f'scaledobject="consumer",trigger="{trigger}"}} {stretch}' in text
    service.clock.now += 61
    service.state(lagThreshold="400")
    text = generate_latest(service.registered).decode()
    assert 'scaledobject="consumer",trigger="0"} 0.0' in text
    assert 'trigger="1"' not in text


def test_the_service_is_the_protos_whole_one(served):
    """Every method of it, streams as streams."""
    handler = served[0]._scaler.handler()
    for method in pb.DESCRIPTOR.services_by_name["ExternalScaler"].methods:
        details = SimpleNamespace(method=f"/{NAME}/{method.name}", invocation_metadata=())
        assert handler.service(details).response_streaming == method.server_streaming


FOLDER = Path(lagscaler.__file__).parent
ROOT = FOLDER.parents[2]


# What differs by the version of the generator: the version itself, and whether a type stub says that a flag may be None.
OF_VERSION = re.compile(r"Version: [\d.]+|^    \d+,$|_Optional\[bool\]|\bbool\b", re.MULTILINE)


def test_the_generated_code_is_of_the_proto_file(tmp_path):
    """To change it: grpcio-tools 1.78's python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. FILE.proto, from the root.

    Code of a newer generator refuses the older protobuf that others in the environment may need.
    """
    source = FOLDER / "externalscaler.proto"
    flags = ["protoc", f"-I{ROOT}", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", str(source)]
    assert protoc.main(flags) == 0
    for name in ("externalscaler_pb2.py", "externalscaler_pb2.pyi"):
        again, committed = (folder / name for folder in (tmp_path / "lab" / "programs" / "lagscaler", FOLDER))
        assert OF_VERSION.sub("", again.read_text()) == OF_VERSION.sub("", committed.read_text())


def fields(message):
    """The names of a message's fields."""
    return sorted(field.name for field in message.DESCRIPTOR.fields)


def test_an_answer_has_no_timestamp():
    """The text's GetMetrics response has one beside name and value."""
    assert fields(pb.MetricValue) == ["metricName", "metricValue", "metricValueFloat"]


def test_a_scaler_is_told_of_no_replicas_and_of_no_scaling():
    """So a pause that begins with a scaling, as the text has it, is not a scaler's to keep."""
    assert fields(pb.ScaledObjectRef) == ["name", "namespace", "scalerMetadata"]
    assert fields(pb.GetMetricsRequest) == ["metricName", "scaledObjectRef"]
