"""``python -m lab.programs.lagscaler``: KEDA's external scaler on lag that lasts, with /metrics and probes."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from prometheus_client import REGISTRY

from lab.errors import InputError
from lab.flags import Flags, number, whole
from lab.inputs.triggers.persistent_lag import cluster
from lab.kafka.lag import GroupsProcess
from lab.kafka.login import client_settings
from lab.programs.lagscaler import service
from lab.programs.lagscaler.metrics import Metrics, Triggers
from lab.programs.lagscaler.registry import Registry
from lab.programs.lagscaler.sampler import Sampler
from lab.programs.telemetry import serve

log = logging.getLogger("lab.programs.lagscaler")
HEALTH_S = 1.0  # how often gRPC's health service is updated
MOST_BYTES = 65_536  # of a question; the metadata of a ScaledObject is some hundred
GRACE_S = 2.0  # for calls in progress at the end; streams last for ever and don't count
# A reading keeps a core busy all the time. An answer must get its turn within less than Python's 5 ms.
SWITCH_S = 0.0001


def flags() -> Flags:
    """The scaler's flags. Each ScaledObject names its own cluster, topic and group."""
    parser = Flags(prog="python -m lab.programs.lagscaler", description=__doc__)
    parser.flag("pod-ip", str, "127.0.0.1", "address to serve on")
    parser.flag("grpc-port", whole(0, 65_535), 6000, "port to serve KEDA on; 0 picks one", "0 to 65,535")
    parser.flag("metrics-port", whole(0, 65_535), 9090, "port to serve /metrics on; 0 picks one", "0 to 65,535")
    parser.flag("tls-cert", str, "", "the server's certificate: PEM, or a file of it; without it plaintext is served")
    parser.flag("tls-key", str, "", "its private key: PEM, or a file of it")
    parser.flag("tls-client-ca", str, "", "authority whose certificate a client must hold: PEM, or a file of it")
    text = "TLS and SASL settings of Kafka's client library, a JSON object of strings, for every cluster; needs --clusters"
    parser.flag("kafka-settings", str, "", text)
    text = "the only clusters ScaledObjects may name: their bootstrapServers, a space between two clusters; empty for any"
    parser.flag("clusters", str, "", text)
    parser.flag("limit", whole(1, 100_000), 2_000, "most triggers to serve", "1 to 100,000")
    text = "seconds without a question after which a ScaledObject is gone; more than any pollingInterval"
    parser.flag("forget-after", number(30, 86_400), 900, text, "30 to 86,400")
    return parser


def kafka_settings(text: str, clusters: str) -> dict[str, str]:
    """The client settings in ``text``. With credentials the clusters must be named, or they could be sent anywhere.

    Raises :class:`InputError`, which shows none of their values, where they can't be used.
    """
    if not text:
        return {}
    if not clusters:
        raise InputError("command line", "--clusters", clusters, "the clusters that --kafka-settings may be used for")
    return client_settings(text)


def settle() -> None:
    """Take all existing objects out of the collector's rounds, which would delay an answer by 13 ms with 1,000 triggers."""
    gc.collect(1)
    gc.freeze()


async def tell(checks: health.aio.HealthServicer, healthy: bool) -> None:
    """Give gRPC's health service the state of /healthz."""
    answer = health_pb2.HealthCheckResponse
    for name in ("", service.NAME):
        await checks.set(name, answer.SERVING if healthy else answer.NOT_SERVING)


async def run(
    options: argparse.Namespace, parser: Flags, credentials: grpc.ServerCredentials | None, settings: Mapping[str, str]
) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for end in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(end, stop.set)
    clusters = {cluster(servers) for servers in options.clusters.split()}
    registry, metrics = Registry(options.limit, options.forget_after, clusters=clusters), Metrics()
    scaler = service.ExternalScaler(registry, metrics)

    def sampled(seconds: float, triggers: int, failed: int, new: int) -> None:
        metrics.read(seconds, triggers, failed)
        scaler.sampled()
        if new:
            settle()

    def start(servers: str) -> Sampler:
        sampler = Sampler(servers, registry, lambda servers: GroupsProcess(servers, settings), sampled)
        sampler.start()
        return sampler

    registry.sampled_by(start)
    REGISTRY.register(Triggers(registry))
    # Without this option a second process could bind the same port, and half the calls would reach it.
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", MOST_BYTES)])
    server.add_generic_rpc_handlers((scaler.handler(),))
    checks = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    await tell(checks, registry.healthy())
    address = f"[{options.pod_ip}]:{options.grpc_port}" if ":" in options.pod_ip else f"{options.pod_ip}:{options.grpc_port}"
    try:
        port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    except RuntimeError:
        parser.error(f"argument --grpc-port: {options.grpc_port} is not allowed; allowed: a free port of --pod-ip")
    serving = False
    with parser.listening(options.metrics_port):
        serve(options.pod_ip, options.metrics_port, lambda: serving, registry.healthy)
    await server.start()
    serving = True
    log.info("serving on %s:%d, %s", options.pod_ip, port, "TLS" if credentials else "plaintext")
    while not stop.is_set():
        await tell(checks, registry.healthy())
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), HEALTH_S)
    serving = False
    await checks.enter_graceful_shutdown()
    await server.stop(GRACE_S)
    registry.stop()


def main() -> int:
    """Serve until told to end; exit 2 on bad input."""
    parser = flags()
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        credentials = service.credentials(options.tls_cert, options.tls_key, options.tls_client_ca)
        settings = kafka_settings(options.kafka_settings, options.clusters)
    except InputError as error:
        parser.error(str(error))
    sys.setswitchinterval(SWITCH_S)
    asyncio.run(run(options, parser, credentials, settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
