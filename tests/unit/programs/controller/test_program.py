"""Bad flags of ``python -m lab.programs.controller``: one line, exit code 2, nothing asked."""

import pytest

from lab import paths
from lab.cluster.certs import Authority
from tests.suite import refused

POLICY = paths.MANIFESTS / "controllers" / "controller-4500.yaml"
GIVEN = {
    "bootstrap-servers": "127.0.0.1:9",
    "namespace": "ns",
    "kubernetes-service-host": "127.0.0.1",
    "api-token": "t",
    "policy": str(POLICY),
}


@pytest.mark.parametrize(
    ("changes", "environment", "line"),
    [
        ({"policy": None}, {}, "command line: --policy: '' is not allowed; allowed: a policy's YAML file, or --policy-yaml"),
        ({"policy": "nowhere.yaml"}, {}, "nowhere.yaml: (file): 'No such file or directory' is not allowed"),
        ({}, {"POLICY_YAML": "kind: ["}, "POLICY_YAML: line 1"),
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
