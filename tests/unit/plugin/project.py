"""A repository of a user's own: an experiment, its traffic and its policy, and a record of its trial."""

import json
import shutil
import subprocess
from types import SimpleNamespace

from lab import paths
from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.manifests import Library
from lab.inputs.workload import Workload
from lab.record import seal
from tests.records import FOLDER

COMMITTED = FOLDER / "records" / "plateau-lag-4500-d6cad871"
LIGHT = {"process_ms": "5-15", "concurrency": 1, "cpu_request_m": 70}
CONFIGURATION = """\
[pytest]
testpaths = experiments
addopts = --strict-markers -p no:dash -p no:locust
filterwarnings = error
    ignore::DeprecationWarning
    ignore::ResourceWarning
"""
EXPERIMENT = f'''\
"""Mine.

Hypothesis. The record is read.
"""

import pytest

from lab.judge.quantity import Quantity
from lab.inputs.workload import Workload


@pytest.mark.spike
def test_mine(trials, evidence):
    (record,) = runs = trials.run(profile="ours", policy="our-lag", workload=Workload(**{LIGHT}), until="replayed")

    with evidence.of(runs, delivery=None) as claim:
        claim(Quantity("samples", "samples", len(record.samples)) > 0, "something was sampled")
        claim(Quantity("transitions", "events", len(record.transitions)) < 0, "a bound that nothing keeps")


@pytest.mark.spike
def test_brought(brought):
    assert brought["policy"].name == "my.yaml"


def test_of_their_own_code():
    """No experiment."""
'''


def write(folder):
    """The repository in ``folder``."""
    for name, text in {"pytest.ini": CONFIGURATION, "experiments/test_mine.py": EXPERIMENT}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    files = {"profiles/plateau": "profiles/ours", "manifests/scaledobjects/lag-4500": "manifests/hpa/our-lag"}
    for theirs, ours in files.items():
        (folder / ours).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(paths.FILES / f"{theirs}.yaml", folder / f"{ours}.yaml")
    return folder


def record(folder, results):
    """A committed record as that of the repository's own trial, under ``results``."""
    library, scale = Library.of(folder), scales.load("quick")
    chosen = inputs.read("ours", "our-lag", Workload(**LIGHT), 1, scale, "binary", until=inputs.REPLAYED, library=library)
    shutil.copytree(COMMITTED, results / "records" / chosen.id)
    file = results / "records" / chosen.id / "trial.json"
    content = json.loads(file.read_text()) | {"id": chosen.id, "inputs": chosen.to_dict()}
    file.write_text(json.dumps(seal.complete(content)))
    return results


def session(python, folder, *options):
    """A session of pytest in ``folder``: (exit code, what it printed)."""
    command = [str(python), "-m", "pytest", *map(str, options)]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    return SimpleNamespace(code=ran.returncode, printed=ran.stdout + ran.stderr)
