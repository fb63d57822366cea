"""A consumer is taken through its life on a real broker: one that keeps the contract fulfils it, a broken one is told why."""

from __future__ import annotations

import json
import shlex
import sys
import uuid
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from lab import paths, yamlfile
from lab.cluster.broker import Broker
from lab.commands import check_consumer
from lab.conformance import traffic
from lab.conformance.findings import BREACHED, HELD, NO_DATA, NOTE, Finding, findings, fulfilled
from lab.conformance.rehearsal import Consumer, Patience, Rehearsal
from lab.conformance.seen import AT_REST, COMMIT, FINISH, JOIN, LEAST, LEAVE, Seen, Stop, Used, Wait, demand
from lab.errors import InputError
from lab.host import processes, runs
from lab.inputs import workload
from lab.inputs.clients import DEMANDS, JAVA, Demand
from lab.inputs.consumer import Cost
from lab.inputs.own_consumer import BLACK_BOX, RECEIPTS, REPORTS, RUNGS
from lab.programs.consumer.downstream import summarize
from lab.record import contract

SCRIPT = Path(__file__).with_name("consumer.py")
SCHEMA = json.loads(contract.FILE.read_text())
# Other tests run beside these. Of a stage that never comes the whole time is waited.
PATIENT = Patience(join_s=40, share_s=40, take_over_s=25, all_s=150)
QUICK = replace(PATIENT, commit_s=4, grace_s=3, finish_s=4, take_over_s=0.5)
NO_JOIN = replace(QUICK, join_s=8)


@pytest.fixture
def rehearsed(closed: Broker) -> Iterator[Callable[..., list[Finding]]]:
    """Rehearses a consumer that is started so on a broker that asks for a login; returns what was found."""
    run, asked = runs.open_run(), closed.settings

    def rehearse(*command: str, patience: Patience = QUICK, **env: str) -> list[Finding]:
        name, own = uuid.uuid4().hex[:8], Consumer(command, env)
        return findings(Rehearsal(run, closed.bootstrap, name, own, patience, login=asked).run())

    yield rehearse
    processes.clear(run)


def failing(found: list[Finding]) -> dict[str, str]:
    """What is breached, and why."""
    return {one.what: one.text for one in found if one.verdict == BREACHED}


@pytest.mark.parametrize("command", [(str(SCRIPT),), ("-m", "lab.programs.consumer")], ids=["a stranger's", "the lab's"])
def test_a_consumer_that_keeps_the_contract_fulfils_all_of_it(rehearsed, command):
    """It is killed once too, and another takes over within its session timeout."""
    env = {"METRICS_PORT": "0", "COMMIT_INTERVAL_MS": "500", "SESSION_TIMEOUT_MS": "6000"}
    found = rehearsed(sys.executable, *command, patience=PATIENT, **env)
    assert (failing(found), fulfilled(found)) == ({}, RECEIPTS)
    assert "commits all after a SIGKILL" in [one.what for one in found if one.verdict == HELD]


@pytest.mark.parametrize(
    ("fault", "what", "why", "best"),
    [
        ("does not commit", "commits", "each partition has a commit: not within 4 s", ""),
        ("commits before work", "commits after the receipt", "when its receipts had come to", REPORTS),
        ("ignores SIGTERM", "ends at SIGTERM", "2 of 2 processes were there 3 s after it", ""),
        ("wrong group", "joins its group", "another", ""),
        ("receipts with gaps", "covers each message", "are committed and in no receipt, first offset", REPORTS),
        ("crashes", "joins its group", "ended by itself with code 1; its last line: no such table: orders", ""),
        ("wrong topic", "joins its group", "its members read $(OUTPUT_TOPIC), not events-", ""),
        ("does not log in", "joins its group", "; Kafka asks for the login in $KAFKA_SETTINGS", ""),
        ("hides what is revoked", "reports what it owns", "", BLACK_BOX),
    ],
)
def test_a_broken_consumer_is_told_what_it_breaks(rehearsed, fault, what, why, best):
    """By one line with its last output where it never joins; the rungs below are fulfilled all the same."""
    patience = NO_JOIN if fault.startswith(("wrong", "does not log in")) else QUICK
    found = rehearsed(sys.executable, str(SCRIPT), fault, patience=patience, OTHER_TOPIC="$(OUTPUT_TOPIC)")
    why = why.replace("$(OUTPUT_TOPIC)", "output-")
    assert why.partition("output-")[0] in failing(found)[what]
    assert fulfilled(found) == best


WHOLE = Seen(
    group="g",
    topic="t",
    partitions=1,
    grace_s=5,
    began=100.0,
    over=110.0,
    waits={stage: Wait(1.0, 5.0) for stage in (JOIN, COMMIT, *AT_REST, FINISH)},
    stops=[Stop(0.2, 143)],
    committed={0: 2},
    reports=3,
    told={stage: {"a": frozenset({0})} for stage in AT_REST},
    receipts=[
        {"pod": "a", "partition": 0, "first": 0, "last": 1, "count": 2, "checksum": 7, "start": 101.0, "end": 102.0},
    ],
    checks={(0, 0): 3, (0, 1): 4},
)
ONE = WHOLE.receipts[0]


@pytest.mark.parametrize(
    ("changes", "best", "text"),
    [
        ({}, RECEIPTS, "counts, checksums and times"),
        ({"receipts": []}, REPORTS, "no record on $RECEIPTS_TOPIC"),
        ({"receipts": [], "reports": 0}, BLACK_BOX, "no line of JSON"),
        ({"receipts": [ONE | {"count": 3}]}, REPORTS, "count 3, and not 2"),
        ({"receipts": [ONE | {"checksum": 8}]}, REPORTS, "checksum 8, and not 7"),
        ({"receipts": [ONE | {"last": 2, "count": 3}]}, REPORTS, "there are no such messages"),
        ({"receipts": [ONE | {"end": 102_000.0}]}, REPORTS, "from 101.000 to 102000.000; it was 100 to 110"),
        ({"receipts": [ONE, ONE]}, RECEIPTS, "2 messages were processed again: it does not commit them at SIGTERM"),
        ({"receipts": [ONE, ONE | {"end": 104.0}], "killed": 103.0}, RECEIPTS, "2 messages were processed again; one consumer"),
        ({"strangers": ("rdkafka",)}, RECEIPTS, "rdkafka is no $POD_NAME"),
        ({"committed": {0: 3}}, REPORTS, "1 messages are committed and in no receipt, first offset 2 of partition 0"),
        ({"ahead": [(0, 2, 1)]}, REPORTS, "partition 0 was committed up to 2 when its receipts had come to 1"),
        ({"told": WHOLE.told | {JOIN: {}}}, BLACK_BOX, "partitions [0] have no owner"),
        ({"told": WHOLE.told | {JOIN: {"a": frozenset({0}), "b": frozenset({0})}}}, BLACK_BOX, "have several owners"),
        ({"stops": [Stop(None, None)]}, "", "1 of 1 processes were there 5 s after it"),
        (
            {"waits": {JOIN: Wait(None, 9)}, "last_words": "refused"},
            "",
            "not within 9 s; g has no such member; its last line: r",
        ),
        ({"waits": WHOLE.waits | {LEAVE: Wait(None, 8)}}, RECEIPTS, "in its own partitions: the others' stand still"),
        ({"commits": {0: [(1.0, 1), (2.0, 2), (5.0, 3)]}}, RECEIPTS, "commits are up to 3.0 s apart (median 2.0)"),
    ],
)
def test_what_is_seen_decides_the_rung(changes, best, text):
    """Each thing that is wrong costs the rung that asks for it, and those above."""
    found = findings(Seen(**vars(WHOLE) | changes))
    assert fulfilled(found) == best
    assert any(text in one.text for one in found)
    assert {one.verdict for one in found if text in one.text} <= ({HELD, NOTE} if best == RECEIPTS else {BREACHED, NO_DATA})


@pytest.mark.parametrize(
    ("joined", "later", "at_work", "start"),
    [
        (Used(10.0, 1.5, 100), Used(20.0, 2.0, 130), 0.05, 1.5),
        (Used(10.0, 0.0, 100), Used(20.0, 0.0, 130), LEAST, LEAST),
    ],
)
def test_what_a_pod_takes_is_what_it_has_used(joined, later, at_work, start):
    """CPU until it has joined, and a second after; so little that the kernel counts none of it is not nothing."""
    assert demand(joined, later) == Demand(at_work, at_most=130, held=100, start_cpu_s=start, start_more_s=0.0)
    assert demand(None, later) is demand(joined, None) is None


def test_the_published_schema_is_that_of_the_types_and_of_what_the_lab_writes():
    """``python -m lab.record.contract`` writes it. A receipt of the lab's own consumer, and reports of it, keep it."""
    assert json.loads(json.dumps(contract.json_schema())) == SCHEMA

    class Message:
        partition, offset, value = lambda _: 3, lambda _: 7, lambda _: bytes(256)

    _, (receipt,) = summarize([Message()], Cost(1, 1), "a")
    written = json.loads(json.dumps(vars(receipt)))
    assert written["checksum"] == zlib.crc32(bytes(256))
    told = {"pod": "a", "event": "assigned", "t": 1.5, "mono": 2.5, "partitions": [3], "owned": 1, "seconds": None}
    for row in (written, told, {"event": "lost", "partitions": [], "owned": 0}):
        jsonschema.validate(row, SCHEMA)
    for row in (written | {"first": -1}, written | {"more": 1}, told | {"event": "gone"}, told | {"owned": "1"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(row, SCHEMA)


def test_the_examples_of_the_page_keep_the_schema():
    """Each line of JSON on it is a report or a receipt."""
    page = (paths.PROJECT / "docs" / "your-consumer.md").read_text()
    rows = [json.loads(line) for line in page.splitlines() if line.startswith('    {"')]
    assert len(rows) >= 3
    for row in rows:
        jsonschema.validate(row, SCHEMA)


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ('{"event": "assigned", "partitions": [1], "owned": 1}', "assigned"),
        ('  {"event": "revoked"}', "revoked"),
        ('{"event": "started"}', None),
        ('{"level": "info", "message": "assigned"}', None),
        ("12:00 INFO assigned", None),
        ("{", None),
    ],
)
def test_a_report_is_a_line_of_its_own(line, event):
    """Other lines of its output are its own business."""
    assert (contract.line(line) or {}).get("event") == event


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (["started", "working", ""], "working"),
        (["KafkaJSConnectionError: closed {", "  cause: undefined", "}"], "KafkaJSConnectionError: closed {"),
        (["an error of long ago", *["working"] * 20], "working"),
        ([" ", "}"], ""),
    ],
)
def test_the_last_words_of_an_output_are_its_error(output, words):
    """Not the stack or the braces behind it, and not an error that is long past."""
    assert contract.last_words(output) == words


@pytest.mark.parametrize(
    ("line", "pair"),
    [
        ('{"key": "a", "value": {"n": 1}}', (b"a", b'{"n": 1}')),
        ('{"value": "text"}', (None, b"text")),
        ('{"key_base64": "AAE=", "value_base64": "/w=="}', (b"\0\1", b"\xff")),
        ('{"id": 7, "value": 3}', (None, b'{"id": 7, "value": 3}')),
        ("plain", (None, b"plain")),
    ],
)
def test_a_sample_is_the_users_own_bytes(line, pair):
    """Key and value as they are named, bytes as base64, and anything else as it stands."""
    assert traffic.pair(line, "here") == pair


@pytest.mark.parametrize("lines", ["", '{"value_base64": "?"}', None])
def test_samples_that_cant_be_used_are_one_line(lines, tmp_path):
    """It names the file."""
    file = tmp_path / "samples.jsonl"
    if lines is not None:
        file.write_text(lines)
    with pytest.raises(InputError, match=r"samples\.jsonl"):
        traffic.load(file)


@pytest.mark.parametrize(
    ("content", "command", "env", "rung"),
    [
        (
            "command: [/bin/echo, 'a b']\nenv: {TOPIC_NAME: $(TOPIC), DEBUG: true, N: 0}",
            ("/bin/echo", "a b"),
            {"TOPIC_NAME": "$(TOPIC)", "DEBUG": "true", "N": "0", "COMMIT_INTERVAL_MS": "5000"},
            BLACK_BOX,
        ),
        ("command: /bin/echo 'a b'\nenv: N=1\nrung: reports", ("/bin/echo", "a b"), {"N": "1"}, REPORTS),
        ("command: /bin/echo\nenv: {spring.kafka.client-id: x}", ("/bin/echo",), {"spring.kafka.client-id": "x"}, BLACK_BOX),
        ("process_ms: 5", (sys.executable, "-m", "lab.programs.consumer"), {"PROCESS_MS": "5"}, RECEIPTS),
    ],
)
def test_a_workload_says_how_its_consumer_is_started(content, command, env, rung, tmp_path):
    """A command is a list or as a shell takes it, variables a mapping or NAME=value; alone it is a black box.

    It has the variables of a trial's pod, so that its own may be made of them.
    """
    file = tmp_path / "mine.yaml"
    file.write_text(f"kind: Workload\n{content}\n")
    chosen = workload.parse(yamlfile.document(file)).workload
    consumer = check_consumer.started_by(chosen, file)
    assert (consumer.command, chosen.rung) == (command, rung)
    assert consumer.env.items() >= env.items()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("command: no-such-program", "command: 'no-such-program' is not allowed; allowed: a program that is there"),
        ("image: mine", "command: missing; allowed: a command, which stands for the image"),
        ("env: {A: 1}", "env: 'A=1' is not allowed; allowed: none, without a command or an image"),
        ('command: "\'"', "a command and its arguments"),
        ("command: echo\nenv: A", "env: 'A' is not allowed; allowed: a mapping of names (letters"),
        (
            "command: echo\nenv: {A: {valueFrom: {}}}",
            "env: {'A': {'valueFrom': {}}} is not allowed; allowed: a mapping",
        ),
        ("command: echo\nenv: {1A: x}", "env: '1A=x' is not allowed; allowed: a mapping of names"),
        ("rung: reports", "rung: 'reports' is not allowed; allowed: receipts, which the lab's consumer writes"),
        ("command: echo\nrung: grey", f"rung: 'grey' is not allowed; allowed: one of {', '.join(RUNGS)}"),
    ],
)
def test_a_consumer_that_cant_be_started_is_one_line(content, line, tmp_path):
    """Before anything starts."""
    file = tmp_path / "mine.yaml"
    file.write_text(f"kind: Workload\n{content}\n")
    with pytest.raises(InputError) as refused:
        check_consumer.started_by(workload.parse(yamlfile.document(file)).workload, file)
    assert line in str(refused.value)


def test_a_consumer_that_starts_and_commits_late_is_given_its_time():
    """As its file declares; what commits more often than Kafka's own clients is given what they are."""
    usual = Patience()
    late = Patience.of(workload.Workload(start_s=60, commit_interval_ms=15_000))
    assert (late.join_s, late.commit_s, late.finish_s) == (usual.join_s + 60, usual.commit_s + 10, usual.finish_s + 10)
    assert late.all_s >= usual.all_s + 3 * 60 + 2 * 10
    assert Patience.of(workload.Workload(commit_interval_ms=100)) == usual


def test_several_topics_are_refused_before_anything_starts(tmp_path):
    """A rehearsal has one, and would tell a consumer of two that it fulfils what it was not asked."""
    file = tmp_path / "mine.yaml"
    file.write_text("kind: Workload\ncommand: echo\ntopics: 2\n")
    options = type("Options", (), {"workload": file, "messages": None, "no_login": False})
    with pytest.raises(InputError, match="topics: 2 is not allowed; allowed: 1: the check has one topic"):
        check_consumer.run(options)


def test_the_command_says_rung_by_rung_what_is_fulfilled(monkeypatch, tmp_path, capsys):
    """And ends with 1 where the file names a higher one."""
    file = tmp_path / "mine.yaml"
    file.write_text(f"kind: Workload\ncommand: {shlex.join([sys.executable, str(SCRIPT)])}\nrung: receipts\n")
    options = type("Options", (), {"workload": file, "messages": None, "no_login": False})
    for changes, code, last in (
        ({}, 0, "it fulfils: receipts"),
        ({"receipts": [], "demand": DEMANDS[JAVA]}, 1, "it fulfils: reports; its file says"),
    ):
        seen = Seen(**vars(WHOLE) | changes)
        monkeypatch.setattr(check_consumer, "rehearse", lambda *_, seen=seen: seen)
        assert check_consumer.run(options) == code
        said = capsys.readouterr().out
        assert ("1.3 s of CPU until it has joined, and then 65 millicores and 140 MiB" in said) == bool(changes)
        assert "black-box\n  ✔ joins its group: held" in said
        assert last in said
