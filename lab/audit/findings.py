"""The audit of a fleet: every rule is asked of every object. Pure: texts go in, findings come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.audit import behavior, bounds, cure, scaler, triggers, workload
from lab.audit.objects import SCALED, Fleet, Item, Path, dotted, listed, mapping
from lab.audit.rules import SEVERITIES, Hit, Rule, link
from lab.audit.scaledobject import Facts, Scaled
from lab.errors import InputError, together
from lab.inputs import scaledobject_file
from lab.validation import Strict
from lab.yamltext import Document, documents

GROUPS = (scaler, triggers, bounds, behavior, workload)
RULES: tuple[Rule, ...] = tuple(one for group in GROUPS for one in vars(group).values() if isinstance(one, Rule))
_API = "keda.sh/"
_GIVEN = {"--partitions": "partitions", "--job-s": "job_s", "--pod-rate and --commit-s": "pod_rate"}


@dataclass(frozen=True)
class Finding(Strict):
    """Where a rule fires. ``number`` shows it, ``sentence`` says of what; ``diff`` is the cure, "" where words alone say it.

    ``file`` and ``line`` (from 1) are those of the field, or of what would hold it; None where lines are not known. ``test`` is
    the project's test that shows the behaviour on the real control plane; "" where it was read in the source alone.
    """

    rule: str
    severity: str
    object: str
    field: str
    file: str
    line: int | None
    sentence: str
    number: float | None
    cure: str
    diff: str
    test: str
    threads: tuple[str, ...]


@dataclass(frozen=True)
class Unchecked(Strict):
    """Rules that nothing is known of for some ``objects`` without a ``flag``."""

    flag: str
    rules: tuple[str, ...]
    objects: int


@dataclass(frozen=True)
class Audit(Strict):
    """All that was found: the ``objects`` are ScaledObjects. ``unread`` has a line for each text or object that is none."""

    objects: int
    counts: dict[str, int]
    findings: tuple[Finding, ...]
    unchecked: tuple[Unchecked, ...]
    unread: tuple[str, ...]


def audit(texts: Mapping[str, str], facts: Facts) -> Audit:
    """The audit of all objects in ``texts``, by the name of each file."""
    items: list[Item] = []
    unread: list[str] = []
    for name, text in texts.items():
        found, errors = read(name, text)
        items += found
        unread += errors
    patches = _patches(items)
    unread += [f"{one.where}:{one.where.line('kind') or 1}: {words}" for one, words in patches.items()]
    fleet = Fleet([one for one in items if one not in patches])
    every = [Scaled(item, fleet, facts) for item in fleet.of(SCALED)]
    places = {name: number for number, name in enumerate(texts)}
    found_all = sorted(_findings(every, fleet, facts), key=lambda one: (places[one.file], one.line or 0))
    counts = {severity: sum(one.severity == severity for one in found_all) for severity in SEVERITIES}
    return Audit(len(every), counts, tuple(found_all), tuple(_unchecked(every, facts)), tuple(unread))


def read(name: str, text: str) -> tuple[list[Item], list[str]]:
    """The objects in ``text``, and what in it can't be read."""
    unread: list[str] = []
    found: list[Document] = []
    try:
        with together():  # a key that is written twice is reported, and the rest is read
            found = list(scaledobject_file.mappings(documents(text, name)))
    except InputError as error:
        unread += str(error).splitlines()
    items = [Item(one.content, one.where) for one in found]
    for item in items:
        unread += [f"{name}:{item.where.line('kind') or 1}: {words}" for words in _wrong(item)]
    return [item for item in items if not any(_wrong(item))], unread


def _wrong(item: Item) -> Iterator[str]:
    """Why an object that was meant as a ScaledObject is none."""
    kind, api = item.kind, str(item.content.get("apiVersion", ""))
    if kind != SCALED:
        if kind.lower() == SCALED.lower():
            yield f"kind {kind} is no {SCALED}: the API server knows no such kind"
    elif not api.startswith(_API):
        yield f"{item.title} is of apiVersion {api or 'none'}: KEDA 2 reads {', '.join(('keda.sh/v1alpha1', *_renamed(item)))}"
    elif not item.spec:
        yield f"{item.title} has no spec: perhaps its indentation is lost"


def _renamed(item: Item) -> Iterator[str]:
    """What KEDA 1 called otherwise."""
    if "deploymentName" in mapping(item.spec.get("scaleTargetRef")):
        yield "scaleTargetRef.name for deploymentName"
    if any("brokerList" in mapping(one.get("metadata")) for one in listed(item.spec.get("triggers"))):
        yield "bootstrapServers for brokerList"


def _patches(items: Sequence[Item]) -> dict[Item, str]:
    """What is no whole ScaledObject, but says what differs from one of its name, with what to bring instead."""
    every = [one for one in items if one.kind == SCALED]
    whole = {one.name: one for one in every if one.target[-1]}
    return {
        one: f"{one.title} is a patch of the one in {whole[one.name].where}: audit what it makes (kustomize build)"
        for one in every
        if one.name in whole and "scaleTargetRef" not in one.spec
    }


def _findings(every: Sequence[Scaled], fleet: Fleet, facts: Facts) -> Iterator[Finding]:
    for scaled in every:
        for rule in RULES:
            if not rule.of_fleet:
                yield from (_finding(rule, hit, hit.item or scaled.item) for hit in rule(scaled))
    for rule in (one for one in RULES if one.of_fleet):
        yield from (_finding(rule, hit, hit.item) for hit in rule((every, fleet, facts)) if hit.item)


def _finding(rule: Rule, hit: Hit, item: Item) -> Finding:
    return Finding(
        rule=rule.id,
        severity=hit.severity or rule.severity,
        object=item.title,
        field=dotted(hit.at),
        file=str(item.where),
        line=_line(item, hit.at),
        sentence=hit.sentence,
        number=hit.number,
        cure=hit.cure or rule.cure,
        diff=cure.difference(item, hit.changes),
        test=rule.test,
        threads=tuple(map(link, rule.threads)),
    )


def _line(item: Item, path: Path) -> int | None:
    """The line of the field at ``path``; of the object's beginning where nothing of it is written."""
    node = item.where.node()
    return item.where.line(dotted(path)) or (node.start_mark.line + 1 if node is not None else None)


def _unchecked(every: Sequence[Scaled], facts: Facts) -> Iterator[Unchecked]:
    """What could not be told, by the flag that would tell."""
    for flag, field in _GIVEN.items():
        rules = tuple(one.id for one in RULES if one.needs == flag)
        if flag == bounds.PARTITIONS:
            lacking = sum(one.owned is None and bool(one.lags) for one in every)
        else:
            lacking = sum(bool(one.lags) for one in every) if getattr(facts, field) is None else 0
        if lacking:
            yield Unchecked(flag, rules, lacking)
