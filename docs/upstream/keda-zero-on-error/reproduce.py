#!/usr/bin/env python3
"""KEDA scales to zero while a trigger's source answers nothing but errors.

Deployments with minReplicaCount 0 follow a metrics-api trigger each. Its source says 30 until all have 3 replicas, then fails:
at once with a 503 for half of them, by not answering for the other half. Printed is who was scaled to zero, and when. None
should be. Needs this repository's components; the pods are never scheduled.
"""

import argparse
import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kubernetes import client

from lab.cluster import apply, binary
from lab.inputs.scale import HPA_SYNC_S, Scale
from lab.wait import until

NAMESPACE, SILENT_S = "zero-on-error", 20  # longer than KEDA waits for an answer


class Source(BaseHTTPRequestHandler):
    """Says 30 while ``healthy``; then 503, or nothing for names that begin with "silent"."""

    healthy = True
    protocol_version = "HTTP/1.1"

    def handle(self):
        """Answer."""
        with contextlib.suppress(ConnectionError):  # KEDA has given up waiting
            super().handle()

    def do_GET(self):
        """The value, or what there is instead."""
        if not Source.healthy and self.path.startswith("/silent"):
            time.sleep(SILENT_S)
        content = json.dumps({"value": 30}).encode()
        self.send_response(200 if Source.healthy else 503)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        """Say nothing."""


def objects(name, url, options):
    """The Deployment and its ScaledObject."""
    pod = {"metadata": {"labels": {"app": name}}}
    pod["spec"] = {"schedulerName": "none", "containers": [{"name": "nothing", "image": "nothing"}]}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}}
    deployment["spec"] = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": pod}
    metadata = {"targetValue": "10", "url": url, "valueLocation": "value"}
    scaled = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name}}
    scaled["spec"] = {
        "scaleTargetRef": {"name": name},
        "minReplicaCount": options.least,
        "maxReplicaCount": 5,
        "pollingInterval": options.polling,
        "cooldownPeriod": options.cooldown,
        "triggers": [{"type": "metrics-api", "metadata": metadata, "useCachedMetrics": options.cached}],
    }
    return [deployment, scaled]


def main():
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10, help="ScaledObjects of each kind")
    parser.add_argument("--polling", type=int, default=30, help="pollingInterval, s")
    parser.add_argument("--cooldown", type=int, default=300, help="cooldownPeriod, s")
    parser.add_argument("--least", type=int, default=0, help="minReplicaCount")
    parser.add_argument("--cached", action="store_true", help="useCachedMetrics")
    parser.add_argument("--sync", type=float, default=HPA_SYNC_S, help="the HPA's sync period, s")
    parser.add_argument("--watch", type=int, default=900, help="for so long after the source has failed, s")
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Source)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    names = [f"{kind}-{number}" for kind in ("refused", "silent") for number in range(options.count)]
    cluster = binary.up(Scale("reproducer", HPA_SYNC_S / options.sync, 1.0))
    try:
        api = cluster.api()
        apps = client.AppsV1Api(api)

        def replicas():
            return {item.metadata.name: item.spec.replicas for item in apps.list_namespaced_deployment(NAMESPACE).items}

        apply.objects(api, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
        for name in names:
            apply.objects(api, objects(name, f"http://127.0.0.1:{server.server_port}/{name}", options), NAMESPACE)
        until(lambda: set(replicas().values()) == {3}, 600, "3 replicas each", cluster.check, every_s=1)
        Source.healthy, failed = False, time.monotonic()
        print(f"{len(names)} at 3 replicas; the source fails now", flush=True)
        gone = {}

        def look():
            for name, count in replicas().items():
                if count != 3 and name not in gone:
                    gone[name] = time.monotonic() - failed
                    print(f"{gone[name]:6.1f} s: {name} has {count} replicas", flush=True)
            return time.monotonic() - failed > options.watch

        until(look, options.watch + 60, "the watch", cluster.check, every_s=0.5)
        for kind in ("refused", "silent"):
            print(f"{kind}: {sum(name.startswith(kind) for name in gone)} of {options.count} changed in {options.watch} s")
    finally:
        cluster.down()


if __name__ == "__main__":
    main()
