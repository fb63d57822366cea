"""The manifests of controller, lag scaler and trials' account, which may do nothing but their work, and what pods are told."""

import ast
import subprocess
import sys
from importlib import metadata

import pytest
import yaml

from lab import paths, yamlfile
from lab.cluster import existing, fit
from lab.cluster.certs import Authority
from lab.cluster.images import catalog, make
from lab.inputs import controller, inputs, objects, scaledobject
from lab.inputs import scale as scales
from lab.inputs.triggers import persistent_lag
from lab.inputs.triggers.external import External
from lab.inputs.workload import STATEFUL_SET, Workload
from lab.kafka import login
from lab.kubelet.podspec import Images
from lab.kubelet.refusal import refusals
from lab.programs.lagscaler.__main__ import flags
from lab.record.store import Record
from lab.trial import addresses
from lab.trial.watch import KINDS
from tests.suite import refused
from tests.unit.measure import whole

COMMITTED = sorted(file.stem for file in (paths.MANIFESTS / "controllers").glob("*.yaml"))
OBJECTS = {item["kind"]: item for item in yamlfile.documents(paths.MANIFESTS / "controller" / "controller.yaml")}


def read(policy="controller-4500"):
    """A trial's inputs on that policy, at quick scale."""
    return inputs.read("plateau", policy, Workload(), 1, scales.load("quick"), "binary")


@pytest.mark.parametrize("policy", COMMITTED)
def test_the_pod_is_told_the_policy_as_it_was_compressed(policy):
    """POLICY_YAML in the ConfigMap is what the trial's identity was made of, readable by the program."""
    chosen = read(policy)
    told = chosen.environment("127.0.0.1:1", "run")["POLICY_YAML"]
    assert controller.parse(yaml.safe_load(told), "here") == chosen.policy
    assert "POLICY_YAML" not in read("lag-4500").environment("127.0.0.1:1", "run"), "a ScaledObject is KEDA's to read"


def test_the_controller_stands_in_place_of_keda():
    """No ScaledObject and no HPA: an account, its role and token, and one pod, in an order that works."""
    chosen = read()
    applied = objects.applied(chosen, chosen.environment("127.0.0.1:1", "run"))
    assert [item["kind"] for item in applied[3:]] == ["ServiceAccount", "Role", "RoleBinding", "Secret", "Deployment"]
    deployments = {item["metadata"]["name"] for item in applied if item["kind"] == "Deployment"}
    assert deployments == {"consumer", "lag-exporter", "controller"}


def test_its_role_is_no_more_than_its_work():
    """Get and patch of the scale of the one Deployment that every committed policy names."""
    assert OBJECTS["Role"]["rules"] == [
        {"apiGroups": ["apps"], "resources": ["deployments/scale"], "resourceNames": ["consumer"], "verbs": ["get", "patch"]}
    ]
    assert {read(policy).policy.target for policy in COMMITTED} == {"consumer"}
    account = OBJECTS["ServiceAccount"]["metadata"]["name"]
    assert OBJECTS["RoleBinding"]["subjects"] == [{"kind": "ServiceAccount", "name": account}]
    assert OBJECTS["RoleBinding"]["roleRef"]["name"] == OBJECTS["Role"]["metadata"]["name"]
    assert OBJECTS["Deployment"]["spec"]["template"]["spec"]["serviceAccountName"] == account
    assert OBJECTS["Secret"]["metadata"]["annotations"] == {"kubernetes.io/service-account.name": account}


def test_the_process_node_takes_the_pod_and_kind_runs_it_in_the_image_of_the_labs_programs(tmp_path):
    """No volume, no automounted token: nothing of it is refused. It is as confined as producer, consumer and exporter."""
    assert refusals(OBJECTS["Deployment"]["spec"]["template"], Images({"elastic-lab": tmp_path})) == []
    fitted = fit.containers("elastic-lab/pods:1", {})(OBJECTS["Deployment"])
    (container,) = catalog.containers(fitted)
    assert container["image"] == "elastic-lab/pods:1"
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert fitted["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"]


def test_what_a_program_imports_is_in_the_image_of_the_pods():
    """The lab's own modules are of the parts copied into it, the others of the packages installed there."""
    script = "import sys, runpy; there = set(sys.modules); sys.argv = ['x', '--help']\n"
    for program in ("consumer", "producer", "exporter", "store", "controller", "lagscaler"):
        script += f"try: runpy.run_module('lab.programs.{program}', run_name='__main__')\nexcept SystemExit: pass\n"
    script += "print(repr(sorted(set(sys.modules) - there)))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    modules = ast.literal_eval(ran.stdout.splitlines()[-1])
    parts = {name.split(".")[1] for name in modules if name.startswith("lab.")}
    alone = {file.stem for file in (paths.PROJECT / "lab").glob("*.py")}
    assert parts - alone <= set(make.POD_PARTS)
    distributions = metadata.packages_distributions()
    foreign = {name.split(".")[0] for name in modules} - set(sys.stdlib_module_names) - {"lab"}
    needed = {one.lower().replace("_", "-") for name in foreign for one in distributions.get(name, ())}
    needed -= {"grpcio-tools"}  # grpc looks for it and does without; who installs from this checkout has it
    assert needed <= set(make.POD_NEEDS)
    assert "confluent-kafka" in needed


def test_its_bounds_are_known_to_the_measures(tmp_path):
    """Floor, ceiling and lagThreshold of the policy as applied."""
    whole.trial(read()).write(tmp_path)
    record = Record(tmp_path)
    assert (record.policy.min_replicas, record.policy.max_replicas, record.lag_threshold) == (4, 24, 150)


GIVEN = {"bootstrap-servers": "127.0.0.1:9", "namespace": "ns", "kubernetes-service-host": "127.0.0.1", "api-token": "t"}
GIVEN |= {"policy": str(paths.MANIFESTS / "controllers" / "controller-4500.yaml")}


@pytest.mark.parametrize(
    ("changes", "environment", "line"),
    [
        ({"policy": None}, {}, "command line: --policy: '' is not allowed; allowed: a policy's YAML file, or --policy-yaml"),
        ({"policy": "nowhere.yaml"}, {}, "nowhere.yaml: No such file or directory; allowed: a readable"),
        ({}, {"POLICY_YAML": "kind: ["}, "POLICY_YAML:2: no YAML"),
        ({}, {"POLICY_YAML": "kind: ScaledObject"}, "POLICY_YAML: kind: 'ScaledObject' is not allowed; allowed: LagController"),
        ({"api-ca": "no PEM"}, {}, "command line: --api-ca: "),
        ({"namespace": None}, {}, "--namespace"),
        ({"kubernetes-service-port": "0"}, {}, "argument --kubernetes-service-port: '0' is not allowed; allowed: 1 to 65,535"),
    ],
)
def test_a_bad_flag_is_one_clear_line(changes, environment, line, tmp_path):
    """Flag or file, value and what is allowed."""
    flags = GIVEN | {"api-ca": Authority(tmp_path).cert.read_text()} | changes
    given = [f"--{name}={value}" for name, value in flags.items() if value is not None]
    assert line in refused("lab.programs.controller", given, environment)


FOLDER = paths.MANIFESTS / "lagscaler"
LAG_SCALER = {item["kind"]: item for item in yamlfile.documents(FOLDER / "lag-scaler.yaml")}
ENVIRONMENT = {"BOOTSTRAP_SERVERS": "kafka:9092", "GROUP": "enrich", "TOPIC": "events"}


def test_the_process_node_takes_the_lag_scalers_pod(tmp_path):
    """A trial's: no volume, no token, certificates come as variables. As its manifest has it, it is confined as a runtime's."""
    trials, written = objects.lag_scaler(), LAG_SCALER["Deployment"]["spec"]["template"]["spec"]
    assert refusals(trials["spec"]["template"], Images({"elastic-lab": tmp_path})) == []
    fitted = fit.containers("elastic-lab/pods:1", {})(trials)["spec"]["template"]["spec"]
    for one, other in ((written, fitted), (written["containers"][0], fitted["containers"][0])):
        assert one["securityContext"] == other["securityContext"]


def test_the_lag_scalers_ports_and_variables_are_the_programs(monkeypatch):
    """What the pod is told by environment is what the program takes, and it listens where the Service and the probes look."""
    (container,) = LAG_SCALER["Deployment"]["spec"]["template"]["spec"]["containers"]
    for variable in container["env"]:
        monkeypatch.setenv(variable["name"], f"of {variable['name']}")
    options = flags().parse_args([])
    for name in ("pod_ip", "tls_cert", "tls_key", "tls_client_ca", "kafka_settings", "clusters"):
        assert getattr(options, name) == f"of {name.upper()}"
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"grpc": options.grpc_port, "metrics": options.metrics_port}
    service = LAG_SCALER["Service"]
    assert {port["name"]: port["port"] for port in service["spec"]["ports"]} == {"grpc": 6000, "metrics": 9090}
    assert service["spec"]["clusterIP"] == "None", "one address would be one pod for as long as KEDA's connection lasts"
    assert service["spec"]["selector"] == LAG_SCALER["Deployment"]["spec"]["template"]["metadata"]["labels"]


def test_the_scaledobject_is_understood_on_both_sides():
    """The lab parses it as KEDA does; the scaler, what KEDA sends of it: variables by their values."""
    parsed = scaledobject.parse(yamlfile.read(FOLDER / "scaledobject.yaml"), "scaledobject.yaml")
    (trigger,) = parsed.triggers
    assert isinstance(trigger, External)
    sent = {field: ENVIRONMENT[value] if field.endswith("FromEnv") else value for field, value in trigger.metadata.items()}
    chosen = persistent_lag.parse(sent, "here")
    assert chosen.source.topic == "events"
    assert (chosen.rule.target, chosen.rule.sustain_s, chosen.rule.allow_idle) == (1500, 120, True)


STATIC = Workload(membership="static", pod_owner=STATEFUL_SET)
TRIALS = {
    "lasting-4500": Workload(store_slots=1),
    "zero-4500-hpa": Workload(),
    "half-taken": STATIC,
    "controller-4500": Workload(),
}


def acts(items, *verbs):
    """These verbs on each kind of ``items``, as RBAC names them."""
    return {(item["apiVersion"].rpartition("/")[0], f"{item['kind'].lower()}s", verb) for item in items for verb in verbs}


@pytest.mark.parametrize("policy", TRIALS)
def test_an_account_of_the_committed_rights_may_do_what_a_trial_does(policy):
    """It applies, deletes and watches; the rights that are optional are a LagController's, and the list of nodes."""
    chosen = inputs.read("plateau", policy, TRIALS[policy], 1, scales.load("quick"), "binary")
    applied = [*objects.applied(chosen, chosen.environment("127.0.0.1:1", "run")), objects.producer(chosen)]
    logins = [*addresses.login_objects(login.new(), "127.0.0.1:1"), *addresses.own_logins(applied)]
    needed = acts([*applied, *logins], "create", "patch") | acts(applied, "delete")
    needed |= acts([{"apiVersion": version, "kind": kind} for version, kind in KINDS], "list", "watch")
    optional = set(existing.needs("elastic-lab-optional"))
    assert needed - set(existing.needs()) <= optional
    assert (needed & optional == set()) is (policy != "controller-4500")
