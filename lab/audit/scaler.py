"""Rules on what a trigger reads: its topic, its fields, its commits, its timers. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from lab.audit.objects import MOST_PARTITIONS, Path
from lab.audit.rules import ERROR, INFORMATION, LAG, REMOVED, TIMES, WARNING, Hit, rule
from lab.audit.scaledobject import MODIFIERS, RESOURCES, Scaled
from lab.audit.trigger import Trigger
from lab.errors import closest
from lab.inputs.triggers import cron, external, kafka, prometheus, resource
from lab.inputs.triggers.metadata import FALSE, MEANT, NUMBER, TRUE, WHOLE

_NEEDED = {
    **dict.fromkeys((kafka.KAFKA, kafka.APACHE), ("bootstrapServers", "consumerGroup")),
    "prometheus": ("serverAddress", "query", "threshold"),
    "cron": ("timezone", "start", "end", "desiredReplicas"),
    **dict.fromkeys(RESOURCES, ("value",)),
}
_NUMBERS = {"threshold": (NUMBER, "number"), "desiredReplicas": (WHOLE, "whole number")}  # as Go reads them by way of JSON
_FLAGS = (
    *("allowIdleConsumers", "excludePersistentLag", "scaleToZeroOnInvalidOffset"),
    *("limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions", "unsafeSsl", "fullMetadata"),
)
_ENUMS = {"tls": ("enable", "disable"), "offsetResetPolicy": ("latest", "earliest")}
_SASL = ("none", "plaintext", "scram_sha256", "scram_sha512")
_MECHANISMS = {kafka.KAFKA: (*_SASL, "oauthbearer", "gssapi"), kafka.APACHE: (*_SASL, "gssapi", "aws_msk_iam")}
_FIELDS: dict[str, tuple[str, ...]] = {
    **kafka.FIELDS,
    "prometheus": prometheus.FIELDS,
    "cron": cron.FIELDS,
    **dict.fromkeys(RESOURCES, (*resource.FIELDS, "type")),  # type is refused, not ignored
}
_BY_REFERENCE = {**kafka.REFUSALS, "prometheus": prometheus.REFUSALS, "external": external.REFUSALS}
_UNCACHED = ("cron", *RESOURCES)
_KINDS: dict[type, str] = {bool: "true or false", list: "a list", dict: "a mapping"}
_DEFAULTS = {"lagThreshold": 10, "activationLagThreshold": 0}


@rule(
    "no-topic",
    WARNING,
    "no topic, or its variable is missing",
    "`topic`",
    "keda#8104",
    "keda#3675",
    "keda#5915",
)
def no_topic(here: Scaled) -> Iterator[Hit]:
    """Then KEDA counts every topic that the group ever committed, and before a commit every topic of the cluster."""
    counted = "every topic that the group ever committed counts, and before its first commit every topic of the cluster"
    for trigger in here.lags:
        variable = trigger.metadata.get("topicFromEnv", "")
        if trigger.metadata.get("topic"):
            continue
        if not variable:
            yield Hit(trigger.path("metadata", "topic"), f"no topic: {counted}")
        elif here.variable(variable)[0] is False:
            words = f"the container that KEDA reads has no variable {variable}, so there is no topic: {counted}"
            yield Hit(trigger.path("metadata", "topicFromEnv"), words, severity=ERROR)


@rule(
    "ignored-metadata",
    ERROR,
    "a field that the scaler does not read",
    "the right name",
    "keda#7191",
)
def ignored_metadata(here: Scaled) -> Iterator[Hit]:
    """KEDA says nothing of a field that it does not know (``typed_config.go``)."""
    for trigger in here.triggers:
        fields, secrets = _FIELDS.get(trigger.type), _BY_REFERENCE.get(trigger.type, {})
        for key in trigger.written if fields else ():
            if key in (fields or ()):
                continue
            path, told = trigger.path("metadata", key), f"KEDA's {trigger.type} scaler reads no {key}"
            if key in prometheus.IGNORED:
                yield Hit(path, f"{told} since 2.10", changes={path: REMOVED}, severity=INFORMATION, cure="remove it")
                continue
            meant = MEANT.get(key) or closest(key.removesuffix("FromEnv"), fields or ())
            default = _DEFAULTS.get(meant) if meant not in trigger.metadata else None
            told += " here, but from an authenticationRef" if key in secrets else ""
            told += f": {meant} is {default}, its default" if default is not None else ""
            yield Hit(path, told, default, _renamed(trigger, key, meant, fields or ()))


def _renamed(trigger: Trigger, key: str, meant: str, fields: tuple[str, ...]) -> dict[Path, Any]:
    """The cure of a misspelt ``key``; where no other is ``meant``, it goes."""
    gone: dict[Path, Any] = {trigger.path("metadata", key): REMOVED}
    fits = meant in fields and meant not in trigger.written and isinstance(trigger.written[key], str)
    return gone | ({trigger.path("metadata", meant): trigger.written[key]} if fits and not key.endswith("FromEnv") else {})


@rule(
    "trigger-refused",
    ERROR,
    "a trigger that the API server or KEDA refuses",
    "as the finding says",
    "keda#5287",
    "keda#6977",
)
def trigger_refused(here: Scaled) -> Iterator[Hit]:
    """Source: the CRD, ``setValue``, ``kafkaMetadata.Validate``, ``apacheKafkaMetadata.Validate``, ``cronMetadata.Validate``,
    ``ValidateTriggers``, ``parseResourceMetadata``."""
    yield from () if here.triggers else (Hit(("spec", "triggers"), "no trigger: refused", cure="a trigger"),)
    for trigger in here.triggers:
        yield from _schema(trigger)
        yield from _missing(trigger)
        if trigger.cached and trigger.type in _UNCACHED:
            field = trigger.path("useCachedMetrics")
            yield Hit(field, f"useCachedMetrics is refused for {trigger.type}", changes={field: REMOVED}, cure="remove it")
        if trigger.on_lag:
            yield from _kafka(trigger)
            known = here.partitions(trigger) or MOST_PARTITIONS
            if trigger.limitation and trigger.limitation_fits and not trigger.counted(known):
                words = f"{trigger.limitation} is none of the topic's partitions: KEDA fails at each question"
                yield Hit(trigger.path("metadata", "partitionLimitation"), words, cure="partitions that there are, from 0")
        if trigger.type == "cron":
            yield from _cron(trigger)
        if trigger.type in RESOURCES and "type" in trigger.written and here.facts.keda >= (2, 18):
            field, kind = trigger.path("metadata", "type"), trigger.metadata.get("type", "Utilization")
            words = "type in metadata is refused since KEDA 2.18"
            yield Hit(
                field, words, changes={field: REMOVED, trigger.path("metricType"): kind}, cure="metricType beside metadata"
            )


def _schema(trigger: Trigger) -> Iterator[Hit]:
    if not trigger.type:
        yield Hit(trigger.path("type"), "no type: the API server refuses it", cure="a type such as kafka")
    if not isinstance(trigger.content.get("metadata"), dict):
        yield Hit(trigger.path("metadata"), "no metadata: the API server refuses it", cure="metadata")
    for key, value in trigger.written.items():
        if not isinstance(value, str) and value is not None:
            path = trigger.path("metadata", key)
            scalar = None if isinstance(value, dict | list) else json.dumps(value, default=str)
            words = f"{_KINDS.get(type(value), 'a number')} and no string: the API server refuses it"  # it may be a secret
            yield Hit(path, words, changes={} if scalar is None else {path: scalar}, cure="quotes, or one string")


def _missing(trigger: Trigger) -> Iterator[Hit]:
    for field in _NEEDED.get(trigger.type, ()) if isinstance(trigger.content.get("metadata"), dict) else ():
        given = trigger.metadata.get(field) or (trigger.on_lag and trigger.metadata.get(f"{field}FromEnv"))
        written = trigger.written.get(field)
        if not given and (written is None or isinstance(written, str)):  # of another it is told that it is no string
            yield Hit(trigger.path("metadata", field), f"no {field}: KEDA refuses it", cure=field)
        elif field in _NUMBERS and isinstance(given, str) and not _NUMBERS[field][0].fullmatch(given.strip(" \t\r\n")):
            one = _NUMBERS[field][1]
            yield Hit(trigger.path("metadata", field), f"{given} is no {one}: KEDA refuses it", cure=f"a {one} as a string")


def _kafka(trigger: Trigger) -> Iterator[Hit]:
    given = trigger.metadata

    def refuse(field: str, words: str, cure: str, value: Any = None) -> Hit:
        path = trigger.path("metadata", field)
        return Hit(path, words, changes={} if value is None else {path: value}, cure=cure)

    for field, least in (("lagThreshold", 1), ("activationLagThreshold", 0)):
        if field in given and trigger.number(field, least - 1) < least:
            yield refuse(field, f"{given[field]} is no whole number from {least}: KEDA refuses it", "a whole number")
    for field, known in {**_ENUMS, "sasl": _MECHANISMS[trigger.type]}.items():
        if field in given and given[field] not in known:
            yield refuse(field, f"{given[field]} is none of {', '.join(known)}: KEDA refuses it", f"one of {', '.join(known)}")
    if trigger.type == kafka.KAFKA and "version" in given and not kafka.VERSION.fullmatch(given["version"]):
        yield refuse("version", f"{given['version']} is no version of Kafka: KEDA refuses it", "such as 3.6.0")
    if trigger.type == kafka.KAFKA and not kafka.is_topic(given.get("topic", "")):
        yield refuse("topic", f"{given['topic']} is no topic's name: KEDA fails at each question", "a trigger for each topic")
    for field in _FLAGS:
        if field in given and given[field] not in (*TRUE, *FALSE):
            yield refuse(field, f"{given[field]} is neither true nor false: KEDA refuses it", '"true" or "false"')
    if trigger.flag("allowIdleConsumers") and trigger.limited:
        yield refuse("allowIdleConsumers", "KEDA refuses it beside limitToPartitionsWithLag", "remove one", "false")
    if trigger.type == kafka.KAFKA and trigger.limited and trigger.even:
        yield refuse("limitToPartitionsWithLag", "KEDA refuses it beside even shares", "remove one", "false")
    if not given.get("topic") and not given.get("topicFromEnv"):
        whole = {"fullMetadata"} if given.get("fullMetadata") in FALSE and trigger.type == kafka.KAFKA else set()
        even = {"ensureEvenDistributionOfPartitions"} if trigger.even and trigger.type == kafka.KAFKA else set()
        for field in sorted(whole | even | ({"limitToPartitionsWithLag"} if trigger.limited else set())):
            yield refuse(field, f"KEDA refuses {field} {given[field]} without a topic", "a topic")
    if "partitionLimitation" in given and not trigger.limitation_fits:
        words = f"{given['partitionLimitation']} is no list of partitions: KEDA refuses it"
        yield refuse("partitionLimitation", words, "1,2,10-12")
    needy = _SASL[1:] if trigger.type == kafka.KAFKA else _SASL[1:2]
    if given.get("sasl") in needy and trigger.content.get("authenticationRef") is None:
        words = f"{given['sasl']} wants user and password, which come from an authenticationRef alone: KEDA refuses it"
        yield refuse("sasl", words, "an authenticationRef")


def _cron(trigger: Trigger) -> Iterator[Hit]:
    given = trigger.metadata
    for field in ("start", "end"):
        try:
            cron.parse_schedule(given.get(field, "* * * * *"))
        except ValueError as error:
            words = f"{given[field]} is no crontab of five fields: {error}"
            yield Hit(trigger.path("metadata", field), words, cure="five fields, Sunday is 0")
    if given.get("start") and given["start"] == given.get("end"):
        yield Hit(trigger.path("metadata", "end"), "start and end are the same: KEDA refuses it", cure="another end")


@rule(
    "persistent-vs-commit",
    WARNING,
    "excludePersistentLag, asked sooner than commits come",
    "`useCachedMetrics` and a `pollingInterval` longer than commits",
    "keda#7516",
    test=LAG,
)
def persistent_vs_commit(here: Scaled) -> Iterator[Hit]:
    """Slow looks stuck: the offset is compared with that of the previous question."""
    for trigger in here.lags:
        commit_s, question_s = here.facts.commit_s, here.question_s(trigger)
        if not trigger.flag("excludePersistentLag") or (commit_s is None and trigger.cached):
            continue
        path = trigger.path("metadata", "excludePersistentLag")
        cure: dict[Path, Any] = {trigger.path("useCachedMetrics"): True}
        if commit_s is None:
            words = f"KEDA compares every {question_s:g} s: of commits every C s a share of 1 - {question_s:g} / C counts as 0"
            yield Hit(path, words, question_s, cure)
        elif commit_s > question_s:
            share = 1 - question_s / commit_s
            words = f"commits come every {commit_s:g} s, questions every {question_s:g} s: {share:.0%} of them are told 0"
            if here.polling_s <= commit_s:
                cure["spec", "pollingInterval"] = math.ceil(commit_s) + 1
            yield Hit(path, words, share, cure)


@rule(
    "threshold-below-commit",
    INFORMATION,
    "lagThreshold below what a pod has not committed",
    "twice as much",
    "keda-docs#1595",
    test="tests/experiments/test_8_lag_threshold.py",
    needs="--pod-rate and --commit-s",
)
def threshold_below_commit(here: Scaled) -> Iterator[Hit]:
    """What a pod has taken and not committed counts as lag."""
    rate, commit_s = here.facts.pod_rate, here.facts.commit_s
    for trigger in here.lags if rate is not None and commit_s is not None else ():
        assert rate is not None
        assert commit_s is not None
        if rate * commit_s >= trigger.threshold:
            path, limit = trigger.path("metadata", "lagThreshold"), trigger.threshold / commit_s
            words = f"above {limit:g} messages/s of one pod what is not committed is more than {trigger.threshold:,}"
            yield Hit(path, words, limit, {path: str(math.ceil(2 * rate * commit_s))})


@rule(
    "metric-type-value",
    ERROR,
    "metricType Value on lag",
    "remove it",
    "keda#1940",
    "kubernetes-sigs/prometheus-adapter#294",
)
def metric_type_value(here: Scaled) -> Iterator[Hit]:
    """The HPA multiplies ready pods by metric / target, and KEDA's cap can't hold that (``GetExternalMetricReplicas``)."""
    found = [one.path("metricType") for one in here.lags if one.metric_type == "Value" and not here.formula]
    if here.formula and here.lags and here.modifiers.get("metricType") == "Value":
        found.append((*MODIFIERS, "metricType"))
    for path in found:
        syncs = math.ceil(math.log(here.most / here.floor, 5)) if here.most > here.floor else 0
        words = f"a lag of five lagThresholds asks for five times the pods at each sync: from {here.floor:,} to {here.most:,}"
        yield Hit(path, f"{words} in {syncs} syncs, if no policy holds", syncs, {path: REMOVED})


@rule(
    "timers",
    INFORMATION,
    "a time that decides nothing; cached metrics of a long poll",
    "remove it; a shorter `pollingInterval`",
    "keda#5695",
    "keda#6168",
    "keda#3921",
    test=TIMES,
)
def timers(here: Scaled) -> Iterator[Hit]:
    """Source: ``IsPollingIntervalRelevant``, ``UsesHPAObservations`` and the webhook's warnings. A pollingInterval of the
    default is no claim, and cached metrics of the default poll are the usual ones."""
    poll, cool, own = ("spec", "pollingInterval"), ("spec", "cooldownPeriod"), here.item.spec
    cached = any(one.cached for one in here.triggers)
    decisions = math.floor(here.polling_s / here.facts.sync_s)
    if cached and decisions > 2:
        words = f"the HPA decides {decisions:,} times on one value: a poll every {here.polling_s:,} s, cached"
        yield Hit(poll, words, decisions, {poll: int(here.facts.sync_s)}, WARNING)
    if not here.least or here.idle is not None:
        return
    if own.get("pollingInterval") not in (None, 30) and not cached and not here.modifiers:
        words = f"with minReplicaCount {here.least:,} no trigger is asked every {here.polling_s:,} s: each sync of the HPA asks"
        yield Hit(poll, words, 0, {poll: REMOVED})
    if own.get("cooldownPeriod") is not None:
        words = f"with minReplicaCount {here.least:,} it keeps no pod: it delays the step to 0 alone"
        yield Hit(cool, words, 0, {cool: REMOVED}, cure="remove it; `scaleDown.stabilizationWindowSeconds` keeps pods")
