"""Sources of three triggers' metrics, which fail slowly when they are not well."""

from __future__ import annotations

import contextlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc

from lab.programs.lagscaler import externalscaler_pb2 as pb
from lab.programs.lagscaler.service import NAME
from tests.defects.target import Trigger

VALUE, TARGET = 30, 10
SILENT_S = 4  # longer than KEDA waits for an HTTP answer (KEDA_HTTP_DEFAULT_TIMEOUT, 3 s)


class Sources:
    """Serves metrics-api, prometheus and external triggers on loopback; after ``fail()`` each answer is late, or an error.

    ``value`` is what the first two say.
    """

    def __init__(self) -> None:
        self.value = VALUE
        self._over, self._well = threading.Event(), True
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, name="sources", daemon=True).start()
        self._grpc = grpc.server(ThreadPoolExecutor(8))
        self._grpc.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, self._methods()),))
        self._port = self._grpc.add_insecure_port("127.0.0.1:0")
        self._grpc.start()

    def fail(self) -> None:
        """From now on there is no answer, or an error after SILENT_S."""
        self._well = False

    def recover(self) -> None:
        """From now on there are answers."""
        self._well = True

    def close(self) -> None:
        """Stop serving: from now on connections are refused."""
        self._over.set()
        self._http.shutdown()
        self._http.server_close()
        self._grpc.stop(0).wait()

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._over.is_set()

    def silence(self) -> bool:
        """Whether to fail; by then SILENT_S have passed."""
        if self._well:
            return False
        self._over.wait(SILENT_S)
        return True

    def triggers(self) -> dict[str, Trigger]:
        """A trigger for each kind of source, by its type."""
        url = f"http://127.0.0.1:{self._http.server_port}"
        metadata = {
            "metrics-api": {"targetValue": str(TARGET), "url": f"{url}/value", "valueLocation": "value"},
            "prometheus": {"threshold": str(TARGET), "serverAddress": url, "query": "lag"},
            "external": {"scalerAddress": f"127.0.0.1:{self._port}"},
        }
        return {kind: {"type": kind, "metadata": fields} for kind, fields in metadata.items()}

    def _methods(self) -> dict[str, Any]:
        def handler(asked: Any, answer: Any, fails: bool = True) -> Any:
            def method(request: Any, context: grpc.ServicerContext) -> Any:
                if fails and self.silence():
                    context.abort(grpc.StatusCode.UNAVAILABLE, "the source does not answer")
                return answer

            return grpc.unary_unary_rpc_method_handler(method, asked.FromString, type(answer).SerializeToString)

        spec = pb.GetMetricSpecResponse(metricSpecs=[pb.MetricSpec(metricName="lag", targetSize=TARGET)])
        values = pb.GetMetricsResponse(metricValues=[pb.MetricValue(metricName="lag", metricValue=VALUE)])
        return {
            "GetMetricSpec": handler(pb.ScaledObjectRef, spec, fails=False),
            "IsActive": handler(pb.ScaledObjectRef, pb.IsActiveResponse(result=True)),
            "GetMetrics": handler(pb.GetMetricsRequest, values),
        }


def _handler(sources: Sources) -> type[BaseHTTPRequestHandler]:
    """Answers both triggers' requests: JSON with a value, and Prometheus' form of one."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self) -> None:
            with contextlib.suppress(ConnectionError):  # KEDA has given up waiting
                super().handle()

        def do_GET(self) -> None:
            failed = sources.silence()
            if sources.closed:  # a connection that KEDA keeps outlives the server
                self.close_connection = True
                return
            sample = {"metric": {}, "value": [0, str(sources.value)]}
            prometheus = {"status": "success", "data": {"resultType": "vector", "result": [sample]}}
            content = json.dumps({"value": sources.value} if self.path.startswith("/value") else prometheus).encode()
            self.send_response(503 if failed else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    return Handler
