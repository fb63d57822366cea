"""KEDA's ExternalScaler, complete: every answer is from memory. An unknown value is an error, on which KEDA and the HPA hold.

KEDA's use of it is in ``pkg/scalers/external_scaler.go`` of KEDA 2.21. It takes the float fields where they are above 0 and the
whole ones otherwise, so the scaler sends both. With TLS, the scaler answers only clients of the authority that it is given.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from lab.errors import InputError
from lab.inputs.triggers.common import ScalerError
from lab.inputs.triggers.persistent_lag import Settings
from lab.programs.lagscaler import externalscaler_pb2 as pb
from lab.programs.lagscaler.metrics import Metrics
from lab.programs.lagscaler.registry import Full, Registry, State

log = logging.getLogger("lab.programs.lagscaler")

NAME = "externalscaler.ExternalScaler"
# A new trigger may wait so long for its first reading. Otherwise KEDA would ask again only a pollingInterval later.
FIRST_READING_S = 2.0

Context = grpc.aio.ServicerContext[Any, Any]


class ExternalScaler:
    """The service's five methods, to be used on one event loop; :meth:`sampled` may be called from any thread."""

    def __init__(self, registry: Registry, metrics: Metrics) -> None:
        self._registry, self._metrics = registry, metrics
        self._loop = asyncio.get_running_loop()
        self._news: asyncio.Future[None] = self._loop.create_future()

    def handler(self) -> grpc.GenericRpcHandler:
        """The methods as gRPC serves them."""
        unary: dict[str, tuple[Callable[[Any], Awaitable[Any]], Any, Any]] = {
            "IsActive": (self._is_active, pb.ScaledObjectRef, pb.IsActiveResponse),
            "GetMetricSpec": (self._metric_spec, pb.ScaledObjectRef, pb.GetMetricSpecResponse),
            "GetMetrics": (self._metric_values, pb.GetMetricsRequest, pb.GetMetricsResponse),
        }
        streams: dict[str, tuple[Callable[[State], AsyncIterator[Any]], Any]] = {
            "StreamIsActive": (self._activity, pb.IsActiveResponse),
            "StreamMetricSpec": (self._specs, pb.GetMetricSpecResponse),
        }
        methods: dict[str, Any] = {}
        for method, (answer, asked, answered) in unary.items():
            methods[method] = grpc.unary_unary_rpc_method_handler(
                self._unary(method, answer), asked.FromString, answered.SerializeToString
            )
        for method, (stream, streamed) in streams.items():
            methods[method] = grpc.unary_stream_rpc_method_handler(
                self._stream(method, stream), pb.ScaledObjectRef.FromString, streamed.SerializeToString
            )
        return grpc.method_handlers_generic_handler(NAME, methods)

    def sampled(self) -> None:
        """Wake the calls that wait for new samples."""
        self._loop.call_soon_threadsafe(self._announce)

    def _announce(self) -> None:
        told, self._news = self._news, self._loop.create_future()
        told.set_result(None)

    def _state(self, reference: pb.ScaledObjectRef) -> State:
        return self._registry.state(reference.namespace, reference.name, reference.scalerMetadata)

    async def _known(self, reference: pb.ScaledObjectRef) -> State:
        """The state, after its first reading or after the longest wait for it."""
        state = self._state(reference)
        deadline = self._loop.time() + FIRST_READING_S
        while not state.tried and self._loop.time() < deadline:
            await asyncio.wait([self._news], timeout=deadline - self._loop.time())
        return state

    async def _metric_spec(self, reference: pb.ScaledObjectRef) -> pb.GetMetricSpecResponse:
        """The metric spec, from the metadata alone, so that an HPA exists even if Kafka does not answer."""
        return _spec(self._state(reference).settings)

    async def _metric_values(self, request: pb.GetMetricsRequest) -> pb.GetMetricsResponse:
        state = await self._known(request.scaledObjectRef)
        name = state.settings.metric
        if request.metricName != name:
            raise InputError("GetMetrics", "metricName", request.metricName, name)
        metric = state.read(self._registry.clock()).metric
        value = pb.MetricValue(metricName=name, metricValue=math.ceil(metric), metricValueFloat=metric)
        return pb.GetMetricsResponse(metricValues=[value])

    async def _is_active(self, reference: pb.ScaledObjectRef) -> pb.IsActiveResponse:
        state = await self._known(reference)
        return pb.IsActiveResponse(result=state.is_active(self._registry.clock()))

    async def _activity(self, state: State) -> AsyncIterator[pb.IsActiveResponse]:
        """Send the known activity at once, then every change as soon as it is sampled; send nothing while it is unknown.

        That there is work is said again after each sampling interval: KEDA drops it while a ScaledObject's status does not
        have the metric yet ("will retry on next activation").
        """
        said: bool | None = None
        said_at = -math.inf
        while True:
            news, now = self._news, self._registry.clock()
            with suppress(ScalerError):
                active = state.is_active(now)
                if active != said or (active and now - said_at >= state.settings.rule.interval_s):
                    said, said_at = active, now
                    yield pb.IsActiveResponse(result=said)
            await asyncio.wait([news])

    async def _specs(self, state: State) -> AsyncIterator[pb.GetMetricSpecResponse]:
        """At once, and then never again: metadata that changes is another trigger, for which KEDA opens another stream."""
        yield _spec(state.settings)
        await self._loop.create_future()

    def _unary(self, method: str, answer: Callable[[Any], Awaitable[Any]]) -> Callable[[Any, Context], Awaitable[Any]]:
        async def handle(request: Any, context: Context) -> Any:
            begun = time.perf_counter()
            try:
                given = await answer(request)
            except (InputError, ScalerError, Full) as error:
                code = _refused(error)
                self._metrics.answered(method, code.name, time.perf_counter() - begun)
                await context.abort(code, str(error))
            self._metrics.answered(method, grpc.StatusCode.OK.name, time.perf_counter() - begun)
            return given

        return handle

    def _stream(
        self, method: str, answers: Callable[[State], AsyncIterator[Any]]
    ) -> Callable[[pb.ScaledObjectRef, Context], AsyncIterator[Any]]:
        async def handle(reference: pb.ScaledObjectRef, context: Context) -> AsyncIterator[Any]:
            try:
                state = self._state(reference)
            except (InputError, Full) as error:
                self._metrics.answered(method, _refused(error).name, 0.0)
                await context.abort(_refused(error), str(error))
            state.streams += 1
            try:
                async for answer in answers(state):
                    yield answer
            finally:
                state.asked_at = self._registry.clock()  # first: without a stream it is what keeps the state
                state.streams -= 1

        return handle


def _spec(settings: Settings) -> pb.GetMetricSpecResponse:
    target = settings.rule.target
    spec = pb.MetricSpec(metricName=settings.metric, targetSize=math.ceil(target), targetSizeFloat=target)
    return pb.GetMetricSpecResponse(metricSpecs=[spec])


def _refused(error: Exception) -> grpc.StatusCode:
    """The status for the kind of error. A user's error is logged too, because KEDA quotes it only in its own log."""
    if isinstance(error, InputError):
        log.warning("%s", error)
        return grpc.StatusCode.INVALID_ARGUMENT
    return grpc.StatusCode.RESOURCE_EXHAUSTED if isinstance(error, Full) else grpc.StatusCode.UNAVAILABLE


_WHERE = "command line"


def credentials(cert: str, key: str, client_ca: str) -> grpc.ServerCredentials | None:
    """The server's credentials from PEM texts or files; None, for plaintext, where nothing is given.

    With ``client_ca`` a client must hold a certificate of that authority. Raises :class:`InputError` naming the flag.
    """
    if not (cert or key or client_ca):
        return None
    chain, public = _certificates("--tls-cert", cert)
    secret = _pem("--tls-key", key)
    try:
        matches = load_pem_private_key(secret, None).public_key() == public
    except (ValueError, TypeError):
        raise InputError(_WHERE, "--tls-key", "(not shown)", "a private key without a password, PEM") from None
    if not matches:
        raise InputError(_WHERE, "--tls-key", "(not shown)", "the key of --tls-cert")
    authority = _certificates("--tls-client-ca", client_ca)[0] if client_ca else None
    return grpc.ssl_server_credentials([(secret, chain)], authority, require_client_auth=authority is not None)


def _certificates(flag: str, value: str) -> tuple[bytes, Any]:
    """The certificates that ``value`` is or names, and the public key of the first."""
    pem = _pem(flag, value)
    try:
        return pem, x509.load_pem_x509_certificates(pem)[0].public_key()
    except ValueError:
        raise InputError(_WHERE, flag, value if len(value) < 100 else f"{value[:27]}...", "certificates, PEM") from None


def _pem(flag: str, value: str) -> bytes:
    if not value:
        raise InputError(_WHERE, flag, value, "PEM or a file of it, where another --tls flag is given")
    if value.lstrip().startswith("-----BEGIN"):
        return value.encode()
    try:
        return Path(value).read_bytes()
    except OSError as error:
        raise InputError(_WHERE, flag, value, f"PEM or a readable file of it ({error.strerror})") from None
