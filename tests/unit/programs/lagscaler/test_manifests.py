"""The committed manifests: a pod the process node takes, and a ScaledObject that both the lab and the scaler read."""

from lab import paths, yamlfile
from lab.inputs import scaledobject
from lab.inputs.triggers import persistent_lag
from lab.inputs.triggers.external import External
from lab.kubelet.podspec import Images
from lab.kubelet.refusal import refusals
from lab.programs.lagscaler.__main__ import flags

FOLDER = paths.MANIFESTS / "lagscaler"
OBJECTS = {item["kind"]: item for item in yamlfile.documents(FOLDER / "lag-scaler.yaml")}
ENVIRONMENT = {"BOOTSTRAP_SERVERS": "kafka:9092", "GROUP": "enrich", "TOPIC": "events"}


def test_the_process_node_takes_the_pod(tmp_path):
    """No volume, no token: certificates come as variables."""
    assert refusals(OBJECTS["Deployment"]["spec"]["template"], Images({"elastic-lab": tmp_path})) == []


def test_ports_and_variables_are_the_programs(monkeypatch):
    """What the pod is told by environment is what the program takes, and it listens where the Service and the probes look."""
    (container,) = OBJECTS["Deployment"]["spec"]["template"]["spec"]["containers"]
    for variable in container["env"]:
        monkeypatch.setenv(variable["name"], f"of {variable['name']}")
    options = flags().parse_args([])
    for name in ("pod_ip", "tls_cert", "tls_key", "tls_client_ca", "kafka_settings", "clusters"):
        assert getattr(options, name) == f"of {name.upper()}"
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"grpc": options.grpc_port, "metrics": options.metrics_port}
    service = OBJECTS["Service"]
    assert {port["name"]: port["port"] for port in service["spec"]["ports"]} == {"grpc": 6000, "metrics": 9090}
    assert service["spec"]["clusterIP"] == "None", "one address would be one pod for as long as KEDA's connection lasts"
    assert service["spec"]["selector"] == OBJECTS["Deployment"]["spec"]["template"]["metadata"]["labels"]


def test_the_scaledobject_is_understood_on_both_sides():
    """The lab parses it as KEDA does; the scaler, what KEDA sends of it: variables by their values."""
    parsed = scaledobject.parse(yamlfile.read(FOLDER / "scaledobject.yaml"), "scaledobject.yaml")
    (trigger,) = parsed.triggers
    assert isinstance(trigger, External)
    sent = {field: ENVIRONMENT[value] if field.endswith("FromEnv") else value for field, value in trigger.metadata.items()}
    chosen = persistent_lag.parse(sent, "here")
    assert chosen.source.topic == "events"
    assert (chosen.rule.target, chosen.rule.sustain_s, chosen.rule.allow_idle) == (1500, 120, True)
