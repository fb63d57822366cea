"""Whatever a file says, it is taken or refused in short lines: each parser on committed documents, parts of them changed."""

import copy
import datetime
import functools
import json
import tempfile
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kubernetes.config import ConfigException

from lab import paths, yamlfile
from lab.cluster import apply
from lab.errors import LONGEST, InputError, one_line
from lab.foresee import sync
from lab.foresee.group import Consumers
from lab.foresee.scaler import Scaler
from lab.foresee.situation import Situation
from lab.foresee.usage import Footprint
from lab.inputs import hpa_spec, inputs, policy, profile, scaledobject, workload
from lab.inputs import scale as scales
from lab.inputs.scale import Scale
from lab.inputs.triggers import persistent_lag as lag_scaler
from lab.inputs.triggers.cron import Cron
from lab.inputs.triggers.external import PersistentLag
from lab.inputs.triggers.kafka import Kafka
from lab.record import seal, trial
from lab.report import session
from lab.yamltext import Document, Source
from tests.thoroughness import examples
from tests.unit.record.test_trial import FULL
from tests.unit.report.test_session import SESSION

FILE = Path("my.yaml")
QUICK = Scale("quick", 30, 1)
PODS = Consumers(1.0, 1.0, footprint=Footprint(100, 1.0))
SIMULATED = Situation(profile.Profile((profile.Step(0, 1, "baseline"),), 60), np.ones(1), PODS)
WORDS = ["", " ", "0", "1", "-1", "007", "1.5", "1e9", "nan", "true", "no", "a,b", "1-3"]
WORDS += ["500m", "2Gi", "x=y", "\x00", "é", "\n"]
WORDS += ["kafka", "apache-kafka", "cpu", "memory", "cron", "prometheus", "external", "latest", "AverageValue", "Utilization"]
WORDS += ["Percent", "a" * 300, "a + b", "count([a, b], {# > 1}) ?? nil", "sum(kafka_consumergroup_lag)", "x{y=~'('}[5m]"]
ODD = [None, True, False, 0, 1, -1, 2**70, -(2**70), 0.5, 1e308, float("nan"), float("inf"), [], {}, set(), b"x"]
ODD += [datetime.date(2026, 1, 1), [None], [[]], [{}], [{"type": []}], {"a": {}}, {None: 1}, {1: 2}, {True: []}]
VALUES = st.one_of(st.sampled_from(ODD), st.sampled_from(WORDS))
FUZZ = settings(max_examples=examples(250), database=None, suppress_health_check=list(HealthCheck))


def places(content, path=()):
    """The path of everything in ``content``."""
    if path:
        yield path
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


@st.composite
def mutated(draw, documents):
    """One of ``documents`` with up to three of its parts replaced, removed, renamed or doubled."""
    content = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(content))
        if not found:
            break
        *parents, last = draw(st.sampled_from(found))
        place = content
        for part in parents:
            place = place[part]
        change = draw(st.sampled_from([*["replace"] * 4, "remove", "rename", "double"]))
        if change == "replace":
            place[last] = copy.deepcopy(draw(VALUES))
        elif isinstance(place, list):
            place[last:] = [place[last]] * 2 if change == "double" else []
        elif change == "remove":
            del place[last]
        else:
            name = draw(st.sampled_from([None, 1, "", *WORDS[:3], f"{last}FromEnv", f"{last}s"]))
            place[name] = copy.deepcopy(place[last]) if change == "double" else place.pop(last)
    return content


def committed(*patterns):
    """The documents in the files of these patterns, from the project's root."""
    files = [file for pattern in patterns for file in sorted(paths.PROJECT.glob(pattern))]
    return [item for file in files for item in _documents(file.read_text()) if isinstance(item, dict)]


@functools.cache
def _documents(text):
    return tuple(yaml.load_all(text, yaml.CSafeLoader))


def of_kind(kind, *patterns):
    """Those of :func:`committed` that are a ``kind``."""
    return [item for item in committed(*patterns) if item.get("kind") == kind]


def a_scaledobject(content):
    """As a trial and as ``simulate`` take it."""
    adopted, _ = inputs._adopted(content, FILE, 24, 1)
    adopted.compressed(QUICK)


def a_file(load):
    """``load`` of a file that holds the content."""

    def parse(content):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(yamlfile, "document", lambda path: Document(dict(content), Source.of(path, "")))
            load()

    return parse


def written(name, read):
    """``read`` of a folder where the content is the JSON file ``name``."""

    def parse(content):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, name).write_text(json.dumps(content, default=str))
            read(Path(folder))

    return parse


def a_policy(content):
    """Any kind, compressed."""
    policy.parse(content, FILE).compressed(QUICK)


def a_sync(content):
    """One sync at two replicas."""
    scaled = scaledobject.parse(content, FILE)
    known = {Cron: datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), Kafka: [3, 0, 5], PersistentLag: [3, 0, 5]}
    sync.sync(scaled, [known.get(type(one), Fraction(1)) for one in scaled.triggers], 2, sync.memory((), 0))


def a_kubeconfig(folder):
    """A client of the context ``here`` of the file in ``folder``; the library says itself what it lacks."""
    try:
        apply.connect(folder / "kubeconfig", "here").close()
    except ConfigException as error:
        raise InputError(folder / "kubeconfig", "context", "here", one_line(str(error))) from None


KUBECONFIG = {
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": "aGVsbG8="}}],
    "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
}
GROUP = {"bootstrapServers": "b:1", "consumerGroup": "g", "topic": "t"}
TRIGGERS = [
    {"type": "kafka", "metadata": GROUP | {"partitionLimitation": "1,2-4"}},
    {"type": "apache-kafka", "metadata": GROUP | {"tls": "enable"}},
    {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "70"}},
    {"type": "memory", "metricType": "AverageValue", "metadata": {"value": "500Mi", "containerName": "consumer"}},
    {"type": "prometheus", "metadata": {"serverAddress": "http://p", "query": "x", "threshold": "1", "customHeaders": "a=b"}},
    {"type": "cron", "metadata": {"timezone": "Etc/UTC", "start": "0 8 * * *", "end": "0 9 * * *", "desiredReplicas": "3"}},
]
NAMED = {"name": "a", "annotations": {"autoscaling.keda.sh/paused": "false"}, "labels": {"a": "b"}}
KUBECTL = {"metadata": NAMED, "status": {}}
ALL = of_kind("ScaledObject", "manifests/*/*.yaml", "docs/examples/*.yaml")
ALL += [ALL[0] | KUBECTL | {"spec": ALL[0]["spec"] | {"triggers": TRIGGERS[:count]}} for count in range(1, len(TRIGGERS) + 1)]
LAG = {
    "serverAddress": "http://p",
    "query": 'sum(kafka_consumergroup_lag{topic=~"t|u"}) or vector(0)',
    "threshold": "1",
}
FORMULA = {"formula": "max(a, b / 2) > 5 ? a : b ?? 1", "target": "10", "activationTarget": "1", "metricType": "AverageValue"}
NAMED_TRIGGERS = [TRIGGERS[0] | {"name": "a"}, {"type": "prometheus", "name": "b", "metadata": LAG}]
FORMED = {"triggers": NAMED_TRIGGERS, "advanced": {"scalingModifiers": FORMULA}}
ALL += [ALL[0] | {"spec": ALL[0]["spec"] | FORMED}]
ALL += [{"apiVersion": "v1", "kind": "List", "items": ALL[:1]}]
METADATA = [one["metadata"] for item in ALL[:-1] for one in item["spec"]["triggers"]]
LASTING = [dict(one) for one in METADATA if "sustainSeconds" in one]
HPAS = of_kind("HorizontalPodAutoscaler", "manifests/*/*.yaml")
PARSERS = {
    "ScaledObject of a trial": (a_scaledobject, ALL),
    "ScaledObject of simulate": (lambda content: Scaler(scaledobject.parse(content, FILE), SIMULATED), ALL),
    "ScaledObject of sync": (a_sync, ALL),
    "profile": (a_file(lambda: profile.load(FILE)), committed("docs/examples/evening-peak.yaml", "profiles/*.yaml")),
    "workload": (a_file(lambda: workload.load(FILE)), committed("docs/examples/enricher.yaml")),
    "HPA": (a_policy, HPAS),
    "HPA of any metrics": (lambda content: hpa_spec.parse(content, FILE), HPAS),
    "controller": (a_policy, of_kind("LagController", "manifests/*/*.yaml")),
    "steps": (a_policy, of_kind("ReplicaSteps", "manifests/*/*.yaml")),
    "scales": (a_file(lambda: scales.load("quick")), committed("profiles/scales.yaml")),
    "lag scaler": (lambda content: lag_scaler.parse(content, FILE), LASTING),
    "trial.json": (written(seal.FILE, trial.read), [FULL.to_json()]),
    "kubeconfig": (written("kubeconfig", a_kubeconfig), [KUBECONFIG]),
    "session.json": (written(session.FILE, session.read), [json.loads(json.dumps(asdict(SESSION), default=sorted))]),
}


def refusal(parse, content):
    """What is said against ``content``; "" for nothing."""
    try:
        parse(content)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", PARSERS)
def test_a_file_is_taken_or_refused_in_short_lines(name):
    """No other error than InputError, whatever was written."""
    parse, documents = PARSERS[name]
    refused = {bool(refusal(parse, copy.deepcopy(one))) for one in documents}

    @FUZZ
    @given(mutated(documents))
    def fuzz(content):
        said = refusal(parse, content)
        assert all(one.isprintable() and len(one) <= LONGEST for one in said.split("\n"))
        refused.add(bool(said))

    fuzz()
    assert refused == {True, False}
