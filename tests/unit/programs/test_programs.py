"""Bad flags of the two programs: one line, exit code 2, nothing started."""

import socket
import subprocess
import sys

import pytest

from tests.suite import refused


@pytest.mark.parametrize(
    ("program", "flags", "flag"),
    [
        ("consumer", ["--bootstrap-servers=127.0.0.1:9"], "metrics-port"),
        ("producer", ["--bootstrap-servers=127.0.0.1:9"], "metrics-port"),
        ("lagscaler", ["--grpc-port=0"], "metrics-port"),
        ("lagscaler", ["--metrics-port=0"], "grpc-port"),  # which two processes could otherwise share unnoticed
    ],
)
def test_a_port_in_use_is_one_clear_line(program, flags, flag):
    """The flag, the port and what is allowed; exit code 2, before any work."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", f"lab.programs.{program}", *flags, f"--{flag}={port}"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    line = next(line for line in ran.stderr.splitlines() if "lab." in line)
    assert ran.returncode == 2
    assert f"argument --{flag}: {port} is not allowed; allowed: a free port of --pod-ip" in line


X = "--bootstrap-servers=x"
SEVERAL = (
    "command line: --topic-partitions: 0 is not allowed; allowed: 1 to 10,000 with --topics 2"  # their partitions' numbers
)


@pytest.mark.parametrize(
    ("program", "arguments", "environment", "line"),
    [
        ("consumer", [X, "--process-ms=0"], {}, "argument --process-ms: '0' is not allowed"),
        ("consumer", [X], {"BALANCER": "fair"}, "argument --balancer: 'fair' is not allowed"),
        ("consumer", [X, "--retry-ms=1,2,x"], {}, "argument --retry-ms: '1,2,x' is not allowed"),
        ("consumer", [X], {"POISON": "3"}, "argument --poison: '3' is not allowed; allowed: PARTITION:"),
        ("consumer", [X, "--fail-rate=2"], {}, "argument --fail-rate: '2' is not allowed"),
        ("consumer", [X, "--fail-rate=0.6", "--poison-rate=0.5"], {}, "poison_rate: 0.5 is not allowed; allowed: at most 1 - "),
        ("consumer", [X, "--topics=2"], {}, SEVERAL),
        ("consumer", [], {}, "--bootstrap-servers"),
        ("producer", [X, "--rate=-5"], {}, "argument --rate: '-5' is not allowed"),
        ("producer", [X, "--profile=nowhere.yaml"], {}, "nowhere.yaml: No such file"),
        ("producer", [X, "--spike-hold=5000"], {}, "spike_hold: 5000.0 is not allowed"),
        ("producer", [X], {"PROFILE_YAML": "kind: ["}, "PROFILE_YAML:2: no YAML"),
        ("producer", [X, "--topics=2"], {}, SEVERAL),
        ("exporter", [X, "--metrics-port=99999"], {}, "argument --metrics-port: '99999'"),
        ("exporter", [X, "--topics=2"], {}, SEVERAL),
    ],
)
def test_a_bad_flag_is_one_clear_line(program, arguments, environment, line):
    """Flag, variable, value and what is allowed; exit code 2."""
    assert line in refused(f"lab.programs.{program}", arguments, environment)
