"""KEDA's client of an external scaler, as far as calls go."""

import grpc

from lab.programs.lagscaler import externalscaler_pb2 as pb
from lab.programs.lagscaler.service import NAME
from tests.unit.programs.lagscaler.fakes import METADATA

DEADLINE_S = 120  # of a call, and of a whole stream: it only ends what hangs


class Client:
    """Calls the five methods for one ScaledObject, of other metadata where it is given."""

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
