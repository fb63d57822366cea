"""Scenario payments: do the ScaledObject and the dashboard work as they are printed?

Hypothesis. The ScaledObject is refused, or means another thing: KEDA has no minReplicas and no maxReplicas. Of the dashboard's
queries one asks for a metric that is gone; the others answer.

Method. A dry run of the printed file at the API server, validating fields strictly, as kubectl asks it to, and not at all. Each
printed query, with the trial's names in place of the author's, at Prometheus over a trial of bursts; where its name is gone,
what asks the same today too (queries.yaml).

Asserted. The refusal names both fields; a client that does not ask loses floor and ceiling with them. Every query answers
as it is asked today, and as printed all but those said to be gone.

Refuted by a server that takes the fields, or a query without an answer.
"""

import json
from pathlib import Path
from typing import Any

import allure
import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from lab import paths, yamlfile
from lab.board.panels import Panel, Query
from lab.board.source import Source, Window
from lab.errors import NoData
from lab.judge.measure import quantity
from lab.record.store import add, write_json
from tests.scenarios.payments.trials import run

pytestmark = [pytest.mark.scenario, allure.epic("Real systems"), allure.feature("Payments")]

PRINTED = paths.PROJECT / "tests" / "unit" / "inputs" / "data" / "payments-as-printed.yaml"
QUERIES = Path(__file__).with_name("queries.yaml")
ANSWERS = "queries.json"  # in the record


@pytest.fixture
def answers(request):
    """Asks each query of the text's dashboard over a trial, once; the answers are kept in the record."""

    def ask(record):
        if request.config.getoption("lab_from_records") is None and not (record.folder / ANSWERS).exists():
            cluster = request.getfixturevalue("cluster")
            found = {name: series(Source(cluster.prometheus_url), record, one) for name, one in asked().items()}
            add(record.folder, ANSWERS, found)

    return ask


@pytest.fixture
def admitted(request, results):
    """What the API server makes of the printed file: validating fields strictly, as kubectl asks it to, and not at all."""
    stored = request.config.getoption("lab_from_records")
    file = (stored or results) / "payments-printed.json"
    if stored is None:
        with request.getfixturevalue("cluster").api() as api:
            write_json(file, {validation: created(api, validation) for validation in ("Strict", "Ignore")})
    return json.loads(file.read_text())


@allure.story("The file as printed")
def test_the_printed_file_is_refused_or_means_another_thing(admitted):
    """kubectl is told of both unknown fields; a client that does not ask loses them, and with them floor and ceiling."""
    allure.attach(json.dumps(admitted, indent=1), "the API server's answers", allure.attachment_type.JSON)
    assert admitted["Strict"]["status"] == 400
    for field in ("minReplicas", "maxReplicas"):
        assert f'unknown field "spec.{field}"' in admitted["Strict"]["message"]
    assert admitted["Ignore"]["status"] == 201
    assert not {"minReplicas", "maxReplicas", "minReplicaCount", "maxReplicaCount"} & admitted["Ignore"]["spec"].keys()


@allure.story("The dashboard's queries answer")
def test_every_query_of_the_text_answers(trials, evidence, answers):
    """Each query as printed, and where its name is gone what asks the same today."""
    record = run(trials, "bursty")
    for one in record:
        answers(one)
    for name in asked():
        evidence.report(
            name, {"series, as printed": found(record, name, "printed"), "series, today": found(record, name, "today")}
        )

    with evidence.of(record) as claim:
        source = "the experiment's design: a panel without data is a broken board"
        claim.control(silent(record) == 0, "every panel shows something: one that does not is a board that broke", source)
    gone = {name for name, one in asked().items() if one.get("now")}
    for one in record:
        unanswered = {name for name, counts in stored(one).items() if not counts["printed"]}
        assert unanswered == gone, "what is said to be gone is gone, and nothing else"


def stored(record):
    """How many series each query had, as printed and as it is asked today."""
    file = record.folder / ANSWERS
    if not file.exists():
        raise NoData(f"{record.id} has no answers of its dashboard")
    return json.loads(file.read_text())


@quantity("series", "series of a query")
def found(record, name, how):
    """Of the query ``name``, as "printed" or as it is asked "today"."""
    return stored(record)[name][how]


@quantity("queries", "queries of the dashboard without data")
def silent(record):
    """Those that have no series as they are asked today."""
    return sum(not one["today"] for one in stored(record).values())


def created(api, validation):
    """The API server's answer to a dry run that creates the printed file, as plain data."""
    body = yamlfile.read(PRINTED)
    body["metadata"]["namespace"] = "default"
    where = ("keda.sh", "v1alpha1", "default", "scaledobjects")
    try:
        made: Any = client.CustomObjectsApi(api).create_namespaced_custom_object(
            *where, body, dry_run="All", field_validation=validation
        )
    except ApiException as refused:
        return {"status": refused.status, "message": json.loads(refused.body or "{}").get("message")}
    return {"status": 201, "spec": made["spec"]}


def asked():
    """The text's queries by name."""
    return {one["name"]: one for one in yamlfile.read(QUERIES)["queries"]}


def series(source, record, query):
    """How many series a query has over the trial, as printed and as it is asked today, with the trial's names in it."""
    names = yamlfile.read(record.folder / "inputs" / "configmap-trial.yaml")["data"]
    ours = {"payment-processor-group": names["GROUP"], "incoming-payments": names["TOPIC"]}
    ours |= {"payment-processor-deployment": "consumer"}
    window = Window.until("", record.end, record.end - record.driven)

    def count(expr):
        for theirs, own in ours.items():
            expr = expr.replace(theirs, own)
        found = source.panel(Panel(query["name"], "", "", (Query(expr, ""),)), window)
        return sum(any(value is not None for value in one.values) for one in found)

    return {"printed": count(query["expr"]), "today": count(query.get("now", query["expr"]))}
