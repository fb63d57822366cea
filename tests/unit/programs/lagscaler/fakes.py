"""What stands in: a clock that is set, a Kafka that answers as told, the DNS of a headless Service, and KEDA's client."""

import contextlib
import socket
import socketserver
import struct
import threading

import grpc
import pytest
from confluent_kafka import KafkaError, KafkaException

from lab.inputs.triggers.common import ScalerError
from lab.kafka.lag import PartitionLag
from lab.programs.lagscaler import externalscaler_pb2 as pb
from lab.programs.lagscaler.registry import Registry
from lab.programs.lagscaler.sampler import Sampler
from lab.programs.lagscaler.service import NAME

METADATA = {
    "bootstrapServers": "b:9092",
    "consumerGroup": "enrich",
    "topic": "orders",
    "lagThreshold": "100",
    "sustainSeconds": "30",
    "offsetResetPolicy": "earliest",
    "allowIdleConsumers": "true",
}


class Clock:
    """Monotonic and wall time, moved apart where a test steps the wall."""

    def __init__(self):
        self.now, self.step = 1000.0, 1e9

    def __call__(self):
        """Monotonic s."""
        return self.now

    def wall(self):
        """Epoch s."""
        return self.now + self.step


class Kafka:
    """Answers by (group, topic): lags by partition, or an exception; ``down`` is that of the whole cluster."""

    def __init__(self):
        self.answers, self.down, self.asked, self.starts = {}, None, [], []

    def lags(self, *lags, topic="orders"):
        """Set the lag of each partition; an error for None."""
        parts = [None if lag is None else PartitionLag(10_000 + lag, 10_000) for lag in lags]
        self.partitions(*(part or error(KafkaError.LEADER_NOT_AVAILABLE) for part in parts), topic=topic)

    def partitions(self, *parts, topic="orders"):
        """Set the answer for each partition."""
        self.answers["enrich", topic] = dict(enumerate(parts))

    def read(self, wanted, starts=()):
        """As the reader does, in batches of one topic."""
        self.asked.append(list(wanted))
        self.starts.append(list(starts))
        gone = error(KafkaError.UNKNOWN_TOPIC_OR_PART, "topic orders is not there")
        for topic in sorted({topic for _, topic in wanted}):
            if self.down:
                raise self.down
            yield {pair: self.answers.get(pair, gone) for pair in wanted if pair[1] == topic}

    def close(self):
        """As the reader does."""


def error(code, text=None):
    """An error of Kafka's."""
    return KafkaException(KafkaError(code, text))


class Scaled:
    """One process without its threads: a registry, and a sampler that samples when told."""

    def __init__(self, limit=10, forget_s=900, clusters=(), sampled=lambda *_: None):
        self.clock, self.kafka, self.connected, self._sampled = Clock(), Kafka(), 0, sampled
        self.registry = Registry(limit, forget_s, self.clock, clusters)
        self.sampler = self.sampling()

    def sampling(self):
        """A sampler of this Kafka, which is connected to anew when it asks for that."""

        def connect(servers):
            self.connected += 1
            return self.kafka

        return Sampler("b:9092", self.registry, connect, self._sampled, self.clock.wall)

    def state(self, name="consumer", **changes):
        """The state of a trigger whose metadata is the usual with ``changes``."""
        return self.registry.state("shop", name, METADATA | changes)

    def in_seconds(self, **changes):
        """The state of a trigger whose threshold is an age, 5 s unless told otherwise."""
        given = {key: value for key, value in METADATA.items() if key != "lagThreshold"}
        return self.registry.state("shop", "consumer", given | {"lagSeconds": "5"} | changes)

    def after(self, seconds, times=1):
        """Let time pass, then take what is due, and do so again; returns how many triggers were due at last."""
        for _ in range(times):
            self.clock.now += seconds
            every = self.registry.of("b:9092")
            due = [state for state in every if state.due(self.clock.wall())]
            if due:
                self.sampler.sample(due, min(state.settings.rule.interval_s for state in every))
        return len(due)

    def metric(self, state):
        """What KEDA would be handed now."""
        return state.read(self.clock()).metric

    def unknown(self, state):
        """Why KEDA would be handed nothing now."""
        with pytest.raises(ScalerError) as told:
            state.read(self.clock())
        return str(told.value)

    def active(self, state):
        """Whether KEDA would be told of work now."""
        return state.is_active(self.clock())


ANSWERED = b"\x81\x80"  # a response, with recursion, without an error
ADDRESS = b"\x00\x01"  # type A


@contextlib.contextmanager
def named(*addresses):
    """Serve ``addresses`` under every name, as a cluster's DNS does; yields the server's HOST:PORT, for gRPC's ``dns://``."""

    class Question(socketserver.BaseRequestHandler):
        def handle(self):
            """Answer the one question of a request, whatever name it asks for; it has no other records than addresses."""
            asked, back = self.request
            end = asked.index(b"\0", 12) + 5  # the name, then type and class
            known = addresses if asked[end - 4 : end - 2] == ADDRESS else ()
            answer = asked[:2] + ANSWERED + struct.pack(">4H", 1, len(known), 0, 0) + asked[12:end]
            for address in known:
                answer += struct.pack(">3HIH", 0xC00C, 1, 1, 0, 4) + socket.inet_aton(address)
            back.sendto(answer, self.client_address)

    with socketserver.ThreadingUDPServer(("127.0.0.1", 0), Question) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


DEADLINE_S = 120  # of a call, and of a whole stream: it only ends what hangs


class Client:
    """Calls the five methods as KEDA does for one ScaledObject, of other metadata where it is given."""

    def __init__(self, address, credentials=None):
        self._channel = grpc.secure_channel(address, credentials) if credentials else grpc.insecure_channel(address)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._channel.close()

    def _unary(self, method, request, answer):
        call = self._channel.unary_unary(f"/{NAME}/{method}", type(request).SerializeToString, answer.FromString)
        return call(request, timeout=DEADLINE_S, wait_for_ready=True)

    def _stream(self, method, metadata, answer, wait):
        call = self._channel.unary_stream(f"/{NAME}/{method}", pb.ScaledObjectRef.SerializeToString, answer.FromString)
        stream = call(self.reference(metadata), timeout=DEADLINE_S)
        return next(stream) if wait else stream

    @staticmethod
    def reference(metadata=None):
        """The ScaledObject as KEDA names it."""
        return pb.ScaledObjectRef(name="consumer", namespace="shop", scalerMetadata=metadata or METADATA)

    def spec(self, metadata=None):
        """GetMetricSpec."""
        return self._unary("GetMetricSpec", self.reference(metadata), pb.GetMetricSpecResponse)

    def metrics(self, metadata=None, name="persistent-lag-orders"):
        """GetMetrics."""
        request = pb.GetMetricsRequest(scaledObjectRef=self.reference(metadata), metricName=name)
        return self._unary("GetMetrics", request, pb.GetMetricsResponse)

    def active(self, metadata=None):
        """IsActive."""
        return self._unary("IsActive", self.reference(metadata), pb.IsActiveResponse)

    def stream_active(self, metadata=None, wait=True):
        """StreamIsActive: its first answer, or the stream."""
        return self._stream("StreamIsActive", metadata, pb.IsActiveResponse, wait)

    def stream_spec(self, metadata=None, wait=True):
        """StreamMetricSpec: its first answer, or the stream."""
        return self._stream("StreamMetricSpec", metadata, pb.GetMetricSpecResponse, wait)


def known(ask):
    """What ``ask`` gives, and ""; or None, and the error's text, which must be the one that holds everything."""
    try:
        return ask(), ""
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.UNAVAILABLE:
            raise
        return None, error.details()
