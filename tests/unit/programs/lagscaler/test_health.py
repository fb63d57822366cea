"""What the program says of its own health when a sampling thread has died, on both ways of asking."""

import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lab.host import processes
from lab.programs.lagscaler.service import NAME
from lab.wait import until
from tests.unit.programs.lagscaler.client import Client

END_S = 90  # some seconds on a quiet machine
# The program as it is, with a sampler whose thread ends at once.
DYING = """
import sys
from lab.programs.lagscaler import __main__, sampler
sampler.Sampler._run = lambda self: None
sys.exit(__main__.main())
"""


def healthz(port):
    """The status of /healthz."""
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10).status
    except urllib.error.HTTPError as error:
        return error.code


def test_a_dead_sampling_thread_is_not_healthy_whoever_asks():
    """A liveness probe, of HTTP or of gRPC, starts the pod anew."""
    answer = health_pb2.HealthCheckResponse
    (metrics,) = processes.free_ports(1)
    command = [sys.executable, "-c", DYING, "--grpc-port=0", f"--metrics-port={metrics}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            address = next(line for line in process.stderr if "serving on" in line).split("serving on ")[1].split(",")[0]
            with grpc.insecure_channel(address) as channel, Client(address) as client:
                stub: Any = health_pb2_grpc.HealthStub(channel)

                def served():
                    return {stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=10).status for name in ("", NAME)}

                assert (healthz(metrics), served()) == (200, {answer.SERVING})
                assert client.spec().metricSpecs
                until(lambda: served() == {answer.NOT_SERVING}, END_S, "gRPC's health service to say so")
                assert healthz(metrics) == 503
            process.terminate()
            assert process.wait(END_S) == 0
        finally:
            process.kill()
