"""The options of a session of experiments: declared, checked before anything starts, and read.

Each is ``--lab-NAME``, and in the configuration file ``lab_NAME`` or ``NAME`` under ``[tool.elastic-lab]``. Those of
:data:`SHORT` are also ``--NAME``, unless another plugin has an option of that name.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.errors import InputError, report, step, together
from lab.flags import URL, Kind, choice, number, whole
from lab.inputs import scale as scales
from lab.inputs.manifests import Library
from lab.inputs.scale import Scale
from lab.project import COMMON, USER_FILES, Project

if TYPE_CHECKING:
    from lab.cluster.existing import Access
    from lab.inputs.faults import Faults, Injection
    from lab.inputs.inputs import Inputs
    from lab.judge.expectation import Expectations
    from lab.trial.user_files import UserFiles

EXISTING = "existing"  # the runtime of a cluster that someone already runs
PATHS = ("results", "from-records", "replay-faults", *USER_FILES)  # options whose value is a path
ARCHIVED = "evidence:"  # before the name of a session of the archive, where a folder of records is asked for
MOST_SEED = 999_999
ANY, PATH = Kind(str, "any text"), Kind(Path, "a path")


@dataclass(frozen=True)
class Option:
    """An option with a value: what stands for it in --help, what it is, its default, and what it may be."""

    shown: str
    text: str
    default: Any = None
    kind: Kind = ANY


_BROUGHT = "your own {}: runs the acceptance instead of the lab's experiments (docs/bring-your-own.md)"
OPTIONS = {
    "cluster": Option(
        "NAME", "runtime: binary, kind or existing (default: binary)", "binary", choice("binary", "kind", EXISTING)
    ),
    "scale": Option(
        "NAME",
        "quick, medium, standard, close or real: see profiles/scales.yaml (default: quick; for your own ScaledObject the most "
        "compressed that keeps its times)",
    ),
    "results": Option(
        "DIR", "where records, verdicts and report go; a new folder beside it if it has records", Path("results"), PATH
    ),
    "repeat": Option("N", "runs of each trial, in blocks (default: 1)", 1, whole(1, 10_000)),
    "from-records": Option("DIR", "judge stored records, or evidence:NAME of the archive; starts no cluster"),
    "expected": Option(
        "FILE:SUITE",
        "claims that are known to be breached (docs/nightly.md): claims fail where they differ from a suite of that file",
    ),
    **{name: Option("FILE", _BROUGHT.format(what), None, PATH) for name, what in USER_FILES.items()},
    "name": Option("NAME", "the ScaledObject of this name, where several are in your own file", ""),
    "order-seed": Option("N", "seed of the order within a block (default: a new one)", None, whole(0, MOST_SEED)),
    "faults": Option("SEED", "kill and stop consumers and components in each trial, by this seed", None, whole(0, MOST_SEED)),
    "replay-faults": Option("FILE", "the faults of a record again, by its trial.json or a JSON list of them", None, PATH),
    "minimise": Option(
        "N", "write the fewest faults that break a trial to a file, after at most N more runs", None, whole(1, 1000)
    ),
    "hpa-sync-s": Option(
        "S",
        f"the HPA's sync period at real time, which a scale divides (default: {scales.HPA_SYNC_S:g})",
        None,
        number(*scales.SYNCS_S),
    ),
    "context": Option("NAME", "with --cluster existing: the context of --kubeconfig that the lab may use"),
    "bootstrap-servers": Option("HOST:PORT", "with --cluster existing: Kafka, as seen from here"),
    "pod-bootstrap-servers": Option("HOST:PORT", "Kafka, as seen from pods (default: the same)"),
    "kafka-settings": Option("FILE", "a login to Kafka: librdkafka's settings as JSON, or its file", ""),
    "prometheus": Option("URL", "a Prometheus that scrapes the trial's pods (default: none, no data)", "", URL),
    "pod-image": Option("IMAGE", "the image of the lab's programs that nodes pull"),
    "topic": Option(
        "NAME", "your own topic there, with your own traffic: the lab's producer is off (default: one of the trial's)", ""
    ),
    "spark-master": Option("URL", "Spark master of the ledger (default: local[*])", "local[*]"),
}
SWITCHES = {
    "resume": "go on in --lab-results: run only what has no finished record there",
    "recheck": "with --lab-from-records: settle each ledger again, and compare",
}
# A name as common as "profile" is left to others: pytest-profiling has it, and many a conftest.py.
SHORT = (
    *("cluster", "scale", "results", "repeat", "resume", "from-records", "expected", "scaledobject", "workload"),
    *("faults", "replay-faults", "minimise"),
)
# What alters a trial beside its scale, its runtime and its blocks, which its record tells.
ALTERING = (*USER_FILES, "name", "topic", "hpa-sync-s", "faults", "replay-faults")
SHORT_OPTIONS = "short-options"  # of a project: "off" leaves all of them to others


def field(name: str) -> str:
    """The field of the namespace that has the option ``name``; it is also its name in the configuration file."""
    return f"lab_{name.replace('-', '_')}"


def declare(add: Any, add_ini: Any, *, short: bool = True) -> None:
    """Declare all options by ``add``, and those with a value by ``add_ini`` too; without ``short`` none has a short name."""

    def option(name: str, **how: Any) -> None:
        if short and name in SHORT:
            try:
                add(f"--lab-{name}", f"--{name}", **how)
                return
            except (ValueError, argparse.ArgumentError):  # another plugin has the short name
                pass
        add(f"--lab-{name}", **how)

    for name, one in OPTIONS.items():
        option(name, metavar=one.shown, help=one.text)
        add_ini(field(name), one.text, default=None)
    for name, text in SWITCHES.items():
        option(name, action="store_true", help=text)


def configure(options: Namespace, ini: Callable[[str], str | None], folder: Path, project: Project) -> None:
    """Take what the command line leaves open from ``ini``, pytest's configuration file in ``folder``, then from ``project``.

    Raises :class:`InputError` for a value that can't be used.
    """
    project.check((*OPTIONS, *COMMON, SHORT_OPTIONS))
    brought = any(getattr(options, field(name)) or ini(field(name)) for name in USER_FILES)
    for name, one in OPTIONS.items():
        value, where = getattr(options, field(name)), "command line"
        if value is None and (value := ini(field(name))) is not None:
            where = f"{folder}: configuration of pytest"
            value = _seen_from(folder, name, value)
        elif value is None and (brought or name not in USER_FILES):  # else no test of a repository that has them would run
            value, where = project.values.get(name), str(project.file)
        if value is None:
            value = one.default
        elif isinstance(value, str):
            try:
                value = one.kind(value)
            except ValueError:
                raise InputError(where, f"--lab-{name}", value, one.kind.allowed) from None
        setattr(options, field(name), value)


def _seen_from(folder: Path, name: str, value: str) -> str:
    """A path in a configuration file is one beside it."""
    if name == "from-records" and value.startswith(ARCHIVED):
        return value
    inline = name == "kafka-settings" and (not value or value.lstrip().startswith("{"))
    return str(folder / value) if name in PATHS or (name == "kafka-settings" and not inline) else value


def check_root(arguments: Sequence[str], folder: Path, root: Path) -> None:
    """Raises :class:`InputError` where a path among ``arguments`` moved pytest's ``root`` away from ``folder``, where it began.

    pytest takes a path that stands alone for a test, and looks beside it for its configuration, before it loads any plugin.
    """
    for option, value in pairwise(arguments):
        path = (folder / value).resolve()
        name = option.removeprefix("--").removeprefix("lab-")
        if (
            option.startswith("--")
            and name in PATHS
            and path.exists()
            and not (path.is_relative_to(folder) and folder.is_relative_to(root))
        ):
            allowed = f"{option}={value}, in one word: apart, pytest takes its configuration from the folder of the path"
            raise InputError("command line", option, value, allowed)


def records_folder(value: str) -> Path:
    """The folder of records that ``--from-records`` names; "evidence:NAME" is a session of the archive.

    Raises :class:`InputError` where there is none, and like :meth:`lab.archive.repository.Repository.fetch`.
    """
    if value.startswith(ARCHIVED):
        from lab.archive.repository import Repository

        return Repository().fetch(value.removeprefix(ARCHIVED))
    from lab.record import store

    if not store.stored(Path(value)):
        raise InputError("command line", "--from-records", value, "a folder of records, or evidence:NAME")
    return Path(value)


@together()
def check(options: Namespace) -> None:
    """Raises :class:`InputError`: each option that can't be used, or not beside another."""
    if options.lab_resume and options.lab_from_records:
        report(InputError("command line", "--resume", True, "without --from-records, which runs nothing"))
    if options.lab_from_records:
        records_folder(options.lab_from_records)
    if options.lab_recheck and not options.lab_from_records:
        report(InputError("command line", "--lab-recheck", True, "beside --from-records, whose ledgers it settles"))
    if options.lab_minimise and options.lab_from_records:
        report(InputError("command line", "--minimise", options.lab_minimise, "none beside --from-records, which runs nothing"))
    with step():
        faults(options)
    scale = scales.load(options.lab_scale or scales.QUICK)
    if options.lab_topic and options.lab_cluster != EXISTING:
        report(InputError("command line", "--lab-topic", options.lab_topic, "none but with --cluster existing"))
    if options.lab_cluster == EXISTING and not options.lab_from_records:
        for name in ("kubeconfig", "lab_context", "lab_bootstrap_servers"):
            if not getattr(options, name):
                allowed = "given beside --cluster existing, so that no cluster is used by mistake (docs/existing-cluster.md)"
                report(InputError("command line", f"--{name.replace('_', '-')}", None, allowed))
        if scale.time != 1:
            allowed = f"one whose times are real, as {scales.REAL}: nobody else's control plane is compressed"
            report(InputError("command line", "--scale", scale.name, allowed))
        if options.lab_hpa_sync_s is not None:
            report(InputError("command line", "--lab-hpa-sync-s", options.lab_hpa_sync_s, "none: it is that cluster's own"))
        access(options)


def expectations(options: Namespace) -> Expectations | None:
    """What ``--expected`` says of claims. Raises :class:`InputError` for a file or a suite that can't be used."""
    if not options.lab_expected:
        return None
    from lab.judge import expectation

    file, _, suite = options.lab_expected.rpartition(":")
    if not file:
        raise InputError("command line", "--expected", options.lab_expected, "FILE:SUITE")
    return expectation.read(Path(file), suite)


def faults(options: Namespace) -> Faults | tuple[Injection, ...] | None:
    """The faults of the session's trials, by a plan or a list. Raises :class:`InputError` for a file that can't be used."""
    seed, file = options.lab_faults, options.lab_replay_faults
    if seed is None and file is None:
        return None
    if seed is not None and file is not None:
        raise InputError("command line", "--replay-faults", str(file), "none beside --faults, which draws others")
    from lab.inputs.faults import Faults, load

    return load(file) if file else Faults(seed)


def access(options: Namespace) -> Access | None:
    """How the cluster of ``--cluster existing`` is reached; None for another. Raises :class:`InputError` for a bad login."""
    if options.lab_cluster != EXISTING:
        return None
    from lab.cluster.existing import Access
    from lab.kafka import forms, login

    try:
        settings = forms.inline(login.client_settings(options.lab_kafka_settings))
        forms.keda(settings), forms.spark(settings)  # refused here, and not in the middle of a trial
    except InputError as error:
        raise InputError(error.where, f"--lab-{login.FIELD.removeprefix('--')}", error.value, error.allowed) from None
    servers = options.lab_bootstrap_servers or ""
    return Access(
        kubeconfig=Path(options.kubeconfig or ""),
        context=options.lab_context or "",
        bootstrap=servers,
        pod_bootstrap=options.lab_pod_bootstrap_servers or servers,
        kafka_settings=settings,
        prometheus=options.lab_prometheus.rstrip("/"),
        image=options.lab_pod_image,
        topic=options.lab_topic,
    )


def results_folder(options: Namespace) -> Path:
    """The folder of this session: ``--results``, or a new one beside it where that has records of an earlier session.

    None is run over: ``results`` is followed by ``results-2``. With ``--resume`` and ``--from-records`` it is ``--results``.
    """
    given: Path = options.lab_results
    if options.lab_from_records or options.lab_resume or not (given / "records").is_dir():
        return given
    from lab.record import store

    return store.unused(given)


def user_files(options: Namespace) -> UserFiles:
    """The files that a user brought with the options of :data:`USER_FILES`."""
    from lab.trial.user_files import UserFiles

    files = options.lab_scaledobject, options.lab_profile, options.lab_workload
    return UserFiles(*files, options.lab_name, bool(options.lab_topic))


def chosen_scale(options: Namespace) -> Scale:
    """The scale that ``--scale`` names, or the one for the files that a user brought, with the sync of ``--lab-hpa-sync-s``."""
    scale = scales.load(options.lab_scale) if options.lab_scale else user_files(options).scale()
    return replace(scale, sync_s=options.lab_hpa_sync_s) if options.lab_hpa_sync_s else scale


def altering(options: Namespace) -> list[str]:
    """The words of a command line for those of :data:`ALTERING` that the session was given, wherever they were."""
    given = {name: getattr(options, field(name)) for name in ALTERING}
    return [f"--lab-{name}={value}" for name, value in given.items() if value not in (None, "")]


def acceptance_inputs(options: Namespace, root: Path) -> Inputs:
    """The inputs of the acceptance on a user's files, ``root``'s manifests first. Raises :class:`InputError` for a bad file."""
    return user_files(options).read(chosen_scale(options), options.lab_cluster, Library.of(root))
