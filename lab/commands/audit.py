"""``elastic-lab audit``: what ScaledObjects will do that their author did not mean; each finding with its number and its cure.

Files, folders and standard input are read, or a cluster through kubectl, which is asked for objects alone.
"""

from __future__ import annotations

import gc
import re
import shutil
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lab import yamlfile, yamltext
from lab.audit import findings
from lab.audit.findings import Audit, Finding
from lab.audit.rules import ERROR, INFORMATION, SEVERITIES, WARNING, link
from lab.audit.scaledobject import Facts, Version
from lab.commands.text import as_json
from lab.errors import BAD_INPUT, BREACHED, HELD, InputError, one_line, printable
from lab.flags import NAME, Flags, Kind, choice, number, whole
from lab.inputs import scale as scales
from lab.number_format import many

NOTHING = "nothing"
KINDS = "scaledobjects.keda.sh,horizontalpodautoscalers,deployments,statefulsets,poddisruptionbudgets,limitranges"
_MOST_BYTES = 200_000_000  # of all that a cluster says
_SUFFIXES = (".yaml", ".yml", ".json")
_ASKED_S = 300.0
_LEVELS = {ERROR: "error", WARNING: "warning", INFORMATION: "note"}
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    text = "files, folders of them, or - for standard input: kubectl get scaledobject,hpa,deploy,sts,pdb,limits -A -o yaml"
    parser.add_argument("files", nargs="*", metavar="FILE", help=text)
    parser.flag("context", str, None, "ask kubectl for the objects, in this context", optional=True)
    text = "partitions of every topic, or of some: orders=24,refunds=12; those of a KafkaTopic in the files are known"
    parser.flag("partitions", Kind(_partitions, "N, or TOPIC=N with commas"), None, text, optional=True)
    parser.flag("pod-rate", number(0.001, 1e6), None, "messages/s that one pod processes at most", optional=True)
    parser.flag("commit-s", number(0.001, 86_400), None, "seconds between two commits of a pod", optional=True)
    parser.flag("job-s", number(0.001, 86_400), None, "seconds of the longest job of a pod", optional=True)
    parser.flag("hpa-sync-s", number(*scales.SYNCS_S), 15.0, "seconds between two syncs of the HPA")
    parser.flag("keda", Kind(_version, "such as 2.21"), "2.21", "the version of KEDA")
    parser.flag("kubernetes", Kind(_version, "such as 1.36"), "1.36", "the version of Kubernetes")
    text = "exit with 1 where a finding is as severe as this"
    parser.flag("fail-on", choice(*SEVERITIES, NOTHING), ERROR, text)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--sarif", action="store_true", help="print SARIF 2.1.0")


def run(options: Namespace) -> int:
    """Audit and print. Returns the exit code: 1 for a finding that --fail-on names, 2 where something can't be read."""
    if options.json and options.sarif:
        raise InputError("command line", "--sarif", True, "without --json")
    texts, unread = _texts(options)
    gc.disable()  # all that is read is kept: looking for garbage in it takes most of a fleet's time
    try:
        found = findings.audit(texts, facts(options))
    finally:
        gc.enable()
    found = replace(found, unread=(*unread, *found.unread))
    lines = found.unread or (() if found.objects else (f"{', '.join(texts) or 'no file'}: no ScaledObject is in it",))
    print(*(f"{NAME}: {one_line(line)}\n" for line in lines), sep="", end="", file=sys.stderr)
    if not found.objects:
        return BAD_INPUT
    if options.json:
        print(as_json(asdict(found)))
    elif options.sarif:
        print(as_sarif(found))
    else:
        print("\n".join(_lines(found)))
    if any(one.severity in severe(options.fail_on) for one in found.findings):
        return BREACHED
    return BAD_INPUT if found.unread else HELD


def severe(fail_on: str) -> Sequence[str]:
    """The severities that ``--fail-on`` ends with 1 for."""
    return SEVERITIES[: 0 if fail_on == NOTHING else SEVERITIES.index(fail_on) + 1]


def facts(options: Namespace) -> Facts:
    """What the flags say that no object has."""
    return Facts(
        partitions=options.partitions or {},
        commit_s=options.commit_s,
        job_s=options.job_s,
        pod_rate=options.pod_rate,
        sync_s=options.hpa_sync_s,
        keda=options.keda,
        kubernetes=options.kubernetes,
    )


def _partitions(text: str) -> dict[str, int]:
    pairs = [part.rpartition("=") for part in text.split(",")]
    return {topic.strip(): whole(1, 1_000_000)(count) for topic, _, count in pairs}


def _version(text: str) -> Version:
    found = re.fullmatch(r"v?(\d{1,3})\.(\d{1,3})(\.\d+)?", text)
    if found is None:
        raise ValueError(text)
    return int(found[1]), int(found[2])


def _texts(options: Namespace) -> tuple[dict[str, str], list[str]]:
    """The text of each file by its name, and a line for each file of a folder that has none."""
    if bool(options.files) == (options.context is not None):
        raise InputError("command line", "FILE", options.files or None, "files, folders or -, or else --context")
    if options.context is not None:
        return {f"context {options.context}": _asked(options.context)}, []
    texts: dict[str, str] = {}
    unread = []
    for path in map(Path, options.files):
        if not path.is_dir():
            texts[yamlfile.name(path)] = yamlfile.text(path, _MOST_BYTES)
            continue
        for file in _within(path):
            try:
                texts[str(file)] = yamlfile.text(file, _MOST_BYTES)
            except InputError as error:
                unread.append(str(error))
    return texts, unread


def _within(folder: Path) -> list[Path]:
    """The files of objects in ``folder`` and its folders, but for hidden ones."""
    every = (file for file in folder.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
    return sorted(file for file in every if not any(part.startswith(".") for part in file.relative_to(folder).parts))


def _asked(context: str) -> str:
    """What kubectl says of the cluster of ``context``."""
    program = shutil.which("kubectl")
    if program is None:
        raise InputError(
            "command line", "--context", context, f"kubectl on the PATH, or kubectl get {KINDS} -A -o yaml as FILE"
        )
    command = [program, f"--context={context}", "get", KINDS, "--all-namespaces", "--output=json"]
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_ASKED_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError("command line", "--context", context, f"a cluster that answers kubectl: {error}") from None
    if ran.returncode:
        said = ran.stderr.decode(errors="replace").strip().splitlines() or ["nothing was said"]
        raise InputError("command line", "--context", context, f"a cluster that answers kubectl: {said[-1]}")
    return yamltext.decoded(ran.stdout, "kubectl", _MOST_BYTES)


def _lines(found: Audit) -> Iterator[str]:
    for one in found.findings:
        yield printable(f"{_place(one)}: {one.severity}: {one.object}: {one.field}: {one.sentence} [{one.rule}]")
        yield f"    cure: {one.cure}"
        yield from (f"    {line}" for line in one.diff.splitlines()[2:])
        yield f"    {'shown by ' + one.test if one.test else 'read in the source'}{_threads(one.threads)}"
    for rest in found.unchecked:
        yield f"not checked without {rest.flag}, of {many(rest.objects, 'ScaledObject')}: {', '.join(rest.rules)}"
    counts = ", ".join(
        f"{count:,} of {severity}" if severity == INFORMATION else many(count, severity)
        for severity, count in found.counts.items()
    )
    yield f"{many(found.objects, 'ScaledObject')}: {counts}"


def _place(one: Finding) -> str:
    return f"{one.file}:{one.line}" if one.line else one.file


def _threads(threads: Sequence[str]) -> str:
    return f"; reported in {', '.join(threads)}" if threads else ""


def as_sarif(found: Audit) -> str:
    """What was found in the Static Analysis Results Interchange Format, 2.1.0, which code hosts show beside the lines."""
    places = {one.id: place for place, one in enumerate(findings.RULES)}
    rules = [
        {
            "id": one.id,
            "shortDescription": {"text": one.condition},
            "help": {"text": f"Cure: {one.cure}"},
            "defaultConfiguration": {"level": _LEVELS[one.severity]},
            **({"helpUri": link(one.threads[0])} if one.threads else {}),
        }
        for one in findings.RULES
    ]
    results = [_result(one, places[one.rule]) for one in found.findings]
    run = {"tool": {"driver": {"name": NAME, "rules": rules}}, "results": results, "columnKind": "unicodeCodePoints"}
    return as_json({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, schema=False)


def _result(one: Finding, place: int) -> dict[str, Any]:
    region = {"region": {"startLine": one.line}} if one.line else {}
    return {
        "ruleId": one.rule,
        "ruleIndex": place,
        "level": _LEVELS[one.severity],
        "message": {"text": f"{one.object}: {one.field}: {one.sentence}. Cure: {one.cure}"},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": quote(one.file)}, **region},
                "logicalLocations": [{"fullyQualifiedName": f"{one.object}/{one.field}"}],
            }
        ],
        "partialFingerprints": {"finding/v1": f"{one.rule}/{one.object}/{one.field}"},
        "properties": {"number": one.number, "diff": one.diff, "test": one.test, "threads": list(one.threads)},
    }
