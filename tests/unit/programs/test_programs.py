"""Bad flags of the two programs: one line, exit code 2, nothing started."""

import socket
import subprocess
import sys

import pytest

from tests.suite import refused


@pytest.mark.parametrize("program", ["consumer", "producer", "exporter"])
def test_a_port_in_use_is_one_clear_line(program):
    """The flag, the port and what is allowed; exit code 2, before any work."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = subprocess.run(
            [sys.executable, "-m", f"lab.programs.{program}", "--bootstrap-servers=127.0.0.1:9", f"--metrics-port={port}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    line = next(line for line in ran.stderr.splitlines() if "lab." in line)
    assert ran.returncode == 2
    assert f"argument --metrics-port: {port} is not allowed; allowed: a free port" in line


@pytest.mark.parametrize(
    ("program", "arguments", "environment", "line"),
    [
        ("consumer", ["--bootstrap-servers=x", "--process-ms=0"], {}, "argument --process-ms: '0' is not allowed"),
        ("consumer", ["--bootstrap-servers=x"], {"BALANCER": "fair"}, "argument --balancer: 'fair' is not allowed"),
        ("consumer", ["--bootstrap-servers=x", "--retry-ms=1,2,x"], {}, "argument --retry-ms: '1,2,x' is not allowed"),
        ("consumer", ["--bootstrap-servers=x"], {"POISON": "3"}, "argument --poison: '3' is not allowed; allowed: PARTITION:"),
        ("consumer", ["--bootstrap-servers=x", "--fail-rate=2"], {}, "argument --fail-rate: '2' is not allowed"),
        (
            "consumer",
            ["--bootstrap-servers=x", "--fail-rate=0.6", "--poison-rate=0.5"],
            {},
            "command line: poison_rate: 0.5 is not allowed; allowed: at most 1 - fail_rate, 0.4",
        ),
        ("consumer", [], {}, "--bootstrap-servers"),
        ("producer", ["--bootstrap-servers=x", "--rate=-5"], {}, "argument --rate: '-5' is not allowed"),
        ("producer", ["--bootstrap-servers=x", "--profile=nowhere.yaml"], {}, "nowhere.yaml: (file): 'No such file"),
        ("producer", ["--bootstrap-servers=x", "--spike-hold=5000"], {}, "spike_hold: 5000.0 is not allowed"),
        ("producer", ["--bootstrap-servers=x"], {"PROFILE_YAML": "kind: ["}, "PROFILE_YAML: line 1"),
        ("exporter", ["--bootstrap-servers=x", "--metrics-port=99999"], {}, "argument --metrics-port: '99999'"),
    ],
)
def test_a_bad_flag_is_one_clear_line(program, arguments, environment, line):
    """Flag, variable, value and what is allowed; exit code 2."""
    assert line in refused(f"lab.programs.{program}", arguments, environment)
