"""``python -m lab.programs.controller``: scale a Deployment on its group's lag; change nothing on an error."""

from __future__ import annotations

import logging
import os
import signal
import ssl
import sys
import threading
from pathlib import Path
from typing import Any

from lab import yamlfile
from lab.errors import InputError
from lab.flags import Flags, whole
from lab.inputs import controller, topics
from lab.inputs import settings as declarations
from lab.inputs.controller import LagController
from lab.kafka.lag import LagReader
from lab.kafka.login import kafka_flags
from lab.programs.controller.loop import DeploymentScale, Loop, Metrics
from lab.programs.telemetry import Reports, reporter, serve


def flags() -> Flags:
    """The controller's flags; each may come from the environment, the API's token and address as a pod has them."""
    parser = Flags(prog="python -m lab.programs.controller", description=__doc__)
    kafka_flags(parser)
    parser.serving(metrics_port=9090)
    declarations.add_flags(parser, topics.Settings)
    parser.flag("group", str, "enrich", "consumer group")
    parser.flag("reports-topic", str, "", "topic for the recorder's events; empty for none")
    parser.flag("policy", str, "", "the policy's YAML file (kind LagController)")
    parser.flag("policy-yaml", str, "", "the policy's YAML itself (as a pod gets it); wins over --policy")
    parser.flag("namespace", str, None, "namespace of the Deployment that is scaled")
    parser.flag("kubernetes-service-host", str, None, "the Kubernetes API's host")
    parser.flag("kubernetes-service-port", whole(1, 65_535), 443, "the Kubernetes API's port", "1 to 65,535")
    parser.flag("api-token", str, None, "the service account's token")
    parser.flag("api-ca", str, None, "the Kubernetes API's certificate authority, PEM")
    return parser


def policy_from(options: Any) -> LagController:
    """The policy in the YAML text or file that the flags name. Raises :class:`InputError` for one that can't be used."""
    if options.policy_yaml:
        return controller.parse(yamlfile.parse(options.policy_yaml, "POLICY_YAML"), "POLICY_YAML")
    if not options.policy:
        raise InputError("command line", "--policy", options.policy, "a policy's YAML file, or --policy-yaml")
    return controller.parse(yamlfile.read(Path(options.policy)), options.policy)


def scale_from(options: Any, name: str) -> DeploymentScale:
    """The scale of the Deployment ``name``. Raises :class:`InputError` for a certificate that can't be used."""
    host, port = options.kubernetes_service_host, options.kubernetes_service_port
    try:
        return DeploymentScale(host, port, options.api_token, options.api_ca, options.namespace, name)
    except (ssl.SSLError, ValueError) as error:
        raise InputError("command line", "--api-ca", str(error), "certificates in PEM") from None


def main() -> int:
    """Control until SIGTERM; exit 2 on bad input."""
    parser = flags()
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        policy = policy_from(options)
        numbering, scale = topics.settings(options).numbering, scale_from(options, policy.target)
    except InputError as error:
        parser.error(str(error))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    who = os.environ.get("HOSTNAME", "controller")
    producer = reporter(options.bootstrap_servers, who, options.kafka_settings)
    reports = Reports(producer, options.reports_topic, who)
    reader = LagReader(options.bootstrap_servers, options.group, numbering, settings=options.kafka_settings)
    loop = Loop(policy, reader.read, scale, reports.say, Metrics())
    with parser.listening(options.metrics_port):
        serve(options.pod_ip, options.metrics_port, loop.ready, loop.healthy)
    loop.run(stop)
    producer.flush(5)
    return 0


if __name__ == "__main__":
    sys.exit(main())
