"""The options of a session of experiments: declared, checked before anything starts, and read."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.errors import InputError
from lab.inputs import scale as scales
from lab.inputs.manifests import Library
from lab.inputs.scale import Scale

if TYPE_CHECKING:
    from lab.cluster.existing import Access
    from lab.inputs.inputs import Inputs
    from lab.judge.expectation import Expectations
    from lab.trial.user_files import UserFiles

EXISTING = "existing"  # the runtime of a cluster that someone already runs
USER_FILES = {"scaledobject": "ScaledObject", "traffic-profile": "traffic profile", "workload": "workload"}
PATHS = tuple(f"--{name}" for name in ("results", "from-records", *USER_FILES))  # options whose value is a path
SITE = {  # where a project's trials run: an option each, which the configuration file may say once as lab_context, ...
    "context": ("NAME", None, "with --cluster existing: the context of --kubeconfig that the lab may use"),
    "bootstrap-servers": ("HOST:PORT", None, "with --cluster existing: Kafka, as seen from here"),
    "pod-bootstrap-servers": ("HOST:PORT", None, "Kafka, as seen from pods (default: the same)"),
    "kafka-settings": ("FILE", "", "a login to Kafka: librdkafka's settings as JSON, or its file"),
    "prometheus": ("URL", "", "a Prometheus that scrapes the trial's pods (default: none, no data)"),
    "pod-image": ("IMAGE", None, "the image of the lab's programs that nodes pull"),
    "spark-master": ("URL", "local[*]", "Spark master of the ledger (default: local[*])"),
}
ARCHIVED = "evidence:"  # before the name of a session of the archive, where a folder of records is asked for
MOST_SEED = 999_999


def declare(add: Any, add_ini: Any) -> None:
    """Declare all options by ``add``, and those of SITE by ``add_ini`` too. Those that are rare begin with ``--lab-``."""
    add("--cluster", choices=("binary", "kind", EXISTING), default="binary", help="runtime (default: binary)")
    text = "see profiles/scales.yaml (default: quick; for your own ScaledObject the most compressed that keeps its times)"
    add("--scale", metavar="NAME", help=f"quick, medium, standard, close or real: {text}")
    add(
        "--results",
        type=Path,
        default=Path("results"),
        help="where records, verdicts and report go; a new folder beside it if it has records",
    )
    add("--repeat", type=int, default=1, metavar="N", help="runs of each trial, in blocks (default: 1)")
    add("--resume", action="store_true", help="go on in --results: run only what has no finished record there")
    add("--from-records", metavar="DIR", help="judge stored records, or evidence:NAME of the archive; starts no cluster")
    text = "claims that are known to be breached (docs/nightly.md): what differs from a suite of that file fails, nothing else"
    add("--expected", metavar="FILE:SUITE", help=text)
    for name, what in USER_FILES.items():
        text = f"your own {what}: runs the acceptance instead of the lab's experiments (docs/bring-your-own.md)"
        add(f"--{name}", type=Path, metavar="FILE", help=text)
    add("--lab-recheck", action="store_true", help="with --from-records: settle each ledger again, and compare")
    add("--lab-order-seed", type=int, metavar="N", help="seed of the order within a block (default: a new one)")
    text = f"the HPA's sync period at real time, which a scale divides (default: {scales.HPA_SYNC_S:g})"
    add("--lab-hpa-sync-s", type=float, metavar="S", help=text)
    for name, (shown, default, text) in SITE.items():
        add(f"--lab-{name}", metavar=shown, help=f"{text}; ini: lab_{name.replace('-', '_')}")
        add_ini(f"lab_{name.replace('-', '_')}", text, default=default)


def configure(options: Namespace, ini: Callable[[str], str | None], folder: Path) -> None:
    """Take what the command line leaves open of SITE from ``ini``, the values of the configuration file in ``folder``."""
    for name in (f"lab_{option.replace('-', '_')}" for option in SITE):
        if getattr(options, name) is None:
            value = ini(name)
            if name == "lab_kafka_settings" and value and not value.lstrip().startswith("{"):
                value = str(folder / value)
            setattr(options, name, value)


def check_root(arguments: Sequence[str], folder: Path, root: Path) -> None:
    """Raises :class:`InputError` where a path among ``arguments`` moved pytest's ``root`` away from ``folder``, where it began.

    pytest takes a path that stands alone for a test, and looks beside it for its configuration, before it loads any plugin.
    """
    for option, value in pairwise(arguments):
        path = (folder / value).resolve()
        if option in PATHS and path.exists() and not (path.is_relative_to(folder) and folder.is_relative_to(root)):
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


def check(options: Namespace) -> None:
    """Raises :class:`InputError` for an option that can't be used, or not beside another."""
    if options.repeat < 1:
        raise InputError("command line", "--repeat", options.repeat, "a whole number from 1")
    if options.lab_order_seed is not None and not 0 <= options.lab_order_seed <= MOST_SEED:
        raise InputError("command line", "--lab-order-seed", options.lab_order_seed, f"a whole number from 0 to {MOST_SEED:,}")
    if options.resume and options.from_records:
        raise InputError("command line", "--resume", True, "without --from-records, which runs nothing")
    if options.from_records:
        records_folder(options.from_records)
    if options.lab_recheck and not options.from_records:
        raise InputError("command line", "--lab-recheck", True, "beside --from-records, whose ledgers it settles")
    scale = scales.load(options.scale or scales.QUICK)
    low, high = scales.SYNCS_S
    if options.lab_hpa_sync_s is not None and not low <= options.lab_hpa_sync_s <= high:
        raise InputError("command line", "--lab-hpa-sync-s", options.lab_hpa_sync_s, f"{low:g} to {high:g} s")
    if options.cluster == EXISTING and not options.from_records:
        for name in ("kubeconfig", "lab_context", "lab_bootstrap_servers"):
            if not getattr(options, name):
                allowed = "given beside --cluster existing, so that no cluster is used by mistake (docs/existing-cluster.md)"
                raise InputError("command line", f"--{name.replace('_', '-')}", None, allowed)
        if scale.time != 1:
            allowed = f"one whose times are real, as {scales.REAL}: nobody else's control plane is compressed"
            raise InputError("command line", "--scale", scale.name, allowed)
        if options.lab_hpa_sync_s is not None:
            raise InputError("command line", "--lab-hpa-sync-s", options.lab_hpa_sync_s, "none: it is that cluster's own")
        access(options)


def expectations(options: Namespace) -> Expectations | None:
    """What ``--expected`` says of claims. Raises :class:`InputError` for a file or a suite that can't be used."""
    if not options.expected:
        return None
    from lab.judge import expectation

    file, _, suite = options.expected.rpartition(":")
    if not file:
        raise InputError("command line", "--expected", options.expected, "FILE:SUITE")
    return expectation.read(Path(file), suite)


def access(options: Namespace) -> Access | None:
    """How the cluster of ``--cluster existing`` is reached; None for another. Raises :class:`InputError` for a bad login."""
    if options.cluster != EXISTING:
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
    )


def results_folder(options: Namespace) -> Path:
    """The folder of this session: ``--results``, or a new one beside it where that has records of an earlier session.

    None is run over: ``results`` is followed by ``results-2``. With ``--resume`` and ``--from-records`` it is ``--results``.
    """
    given: Path = options.results
    if options.from_records or options.resume or not (given / "records").is_dir():
        return given
    from lab.record import store

    return store.unused(given)


def user_files(options: Namespace) -> UserFiles:
    """The files that a user brought with the options of :data:`USER_FILES`."""
    from lab.trial.user_files import UserFiles

    return UserFiles(options.scaledobject, options.traffic_profile, options.workload)


def chosen_scale(options: Namespace) -> Scale:
    """The scale that ``--scale`` names, or the one for the files that a user brought, with the sync of ``--lab-hpa-sync-s``."""
    scale = scales.load(options.scale) if options.scale else user_files(options).scale()
    return replace(scale, sync_s=options.lab_hpa_sync_s) if options.lab_hpa_sync_s else scale


def acceptance_inputs(options: Namespace, root: Path) -> Inputs:
    """The inputs of the acceptance on a user's files, ``root``'s manifests first. Raises :class:`InputError` for a bad file."""
    return user_files(options).read(chosen_scale(options), options.cluster, Library.of(root))
