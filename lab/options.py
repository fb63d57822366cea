"""The options of a session of experiments: declared, checked before anything starts, and read."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lab.errors import InputError
from lab.inputs import scale as scales
from lab.inputs.manifests import Library
from lab.inputs.scale import Scale

if TYPE_CHECKING:
    from lab.cluster.existing import Access
    from lab.inputs.inputs import Inputs
    from lab.trial.own import Own

EXISTING = "existing"  # the runtime of a cluster that someone already runs
OWN = {"scaledobject": "ScaledObject", "traffic-profile": "traffic profile", "workload": "workload"}
PATHS = ("results", "from-records", *OWN)  # options whose value is a path
MOST_SEED = 999_999


class Options(Protocol):
    """The values of the options, as pytest keeps them."""

    cluster: str
    kubeconfig: str | None
    context: str | None
    bootstrap_servers: str | None
    pod_bootstrap_servers: str | None
    kafka_settings: str
    prometheus: str
    pod_image: str | None
    scale: str | None
    hpa_sync_s: float | None
    results: Path
    repeat: int
    order_seed: int | None
    resume: bool
    from_records: Path | None
    recheck: bool
    scaledobject: Path | None
    traffic_profile: Path | None
    workload: Path | None


def declare(add: Any) -> None:
    """Declare all options by ``add``, which takes what argparse's ``add_argument`` does."""
    add("--cluster", choices=("binary", "kind", EXISTING), default="binary", help="runtime (default: binary)")
    add("--context", metavar="NAME", help="with --cluster existing: the context of --kubeconfig that the lab may use")
    add("--bootstrap-servers", metavar="HOST:PORT", help="with --cluster existing: Kafka, as seen from here")
    add("--pod-bootstrap-servers", metavar="HOST:PORT", help="Kafka, as seen from pods (default: the same)")
    add("--kafka-settings", metavar="FILE", default="", help="a login to Kafka: librdkafka's settings as JSON, or its file")
    add("--prometheus", metavar="URL", default="", help="a Prometheus that scrapes the trial's pods (default: none, no data)")
    add("--pod-image", metavar="IMAGE", help="the image of the lab's programs that nodes pull")
    text = "see profiles/scales.yaml (default: quick; for your own ScaledObject the most compressed that keeps its times)"
    add("--scale", metavar="NAME", help=f"quick, medium, standard, close or real: {text}")
    text = f"the HPA's sync period at real time, which a scale divides (default: {scales.HPA_SYNC_S:g})"
    add("--hpa-sync-s", type=float, metavar="S", help=text)
    add("--results", type=Path, default=Path("results"), help="where records, verdicts and report go")
    add("--repeat", type=int, default=1, metavar="N", help="runs of each trial, in blocks (default: 1)")
    add("--order-seed", type=int, metavar="N", help="seed of the order within a block (default: a new one)")
    add("--resume", action="store_true", help="go on in --results: run only what has no finished record there")
    add("--from-records", type=Path, metavar="DIR", help="judge stored records; starts no cluster")
    add("--recheck", action="store_true", help="with --from-records: settle each ledger again, and compare")
    for name, what in OWN.items():
        text = f"your own {what}: runs the acceptance instead of the lab's experiments (docs/bring-your-own.md)"
        add(f"--{name}", type=Path, metavar="FILE", help=text)
    add("--spark-master", default="local[*]", help="Spark master of the ledger (default: local[*])")


def join_paths() -> None:
    """Begin again with ``--scaledobject=FILE`` where the command line has ``--scaledobject FILE``.

    pytest chooses its root folder before it loads any plugin. It then takes a FILE that stands alone for a test, and that
    file's folder for the root: the configuration of the folder it was started in would not be read.
    """
    program = Path(sys.argv[0])
    if program.name not in ("pytest", "py.test") and program.parent.name != "pytest":
        return  # a program that calls pytest.main(): it is not ours to begin again
    given = sys.orig_argv
    joined = [given[0]]
    for word in given[1:]:
        if joined[-1] in {f"--{name}" for name in PATHS} and not word.startswith("-"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    if joined != given:
        os.execv(sys.executable, [sys.executable, *joined[1:]])


def check(options: Options) -> None:
    """Raises :class:`InputError` for an option that can't be used, or not beside another."""
    if options.repeat < 1:
        raise InputError("command line", "--repeat", options.repeat, "a whole number from 1")
    if options.order_seed is not None and not 0 <= options.order_seed <= MOST_SEED:
        raise InputError("command line", "--order-seed", options.order_seed, f"a whole number from 0 to {MOST_SEED:,}")
    if options.resume and options.from_records:
        raise InputError("command line", "--resume", True, "without --from-records, which runs nothing")
    if options.from_records:
        from lab.record import store

        if not store.stored(options.from_records):
            raise InputError("command line", "--from-records", str(options.from_records), "a folder of records")
    if options.recheck and not options.from_records:
        raise InputError("command line", "--recheck", True, "beside --from-records, whose ledgers it settles")
    scale = scales.load(options.scale or scales.QUICK)
    low, high = scales.SYNCS_S
    if options.hpa_sync_s is not None and not low <= options.hpa_sync_s <= high:
        raise InputError("command line", "--hpa-sync-s", options.hpa_sync_s, f"{low:g} to {high:g} s")
    if options.cluster == EXISTING and not options.from_records:
        for name in ("kubeconfig", "context", "bootstrap_servers"):
            if not getattr(options, name):
                allowed = "given beside --cluster existing, so that no cluster is used by mistake (docs/existing-cluster.md)"
                raise InputError("command line", f"--{name.replace('_', '-')}", None, allowed)
        if scale.time != 1:
            allowed = f"one whose times are real, as {scales.REAL}: nobody else's control plane is compressed"
            raise InputError("command line", "--scale", scale.name, allowed)
        if options.hpa_sync_s is not None:
            raise InputError("command line", "--hpa-sync-s", options.hpa_sync_s, "none: it is that cluster's own")
        access(options)


def access(options: Options) -> Access | None:
    """How the cluster of ``--cluster existing`` is reached; None for another runtime.

    Raises :class:`InputError` for a login that can't be used.
    """
    if options.cluster != EXISTING:
        return None
    from lab.cluster.existing import Access
    from lab.kafka import forms, login

    settings = forms.inline(login.client_settings(options.kafka_settings))
    forms.keda(settings), forms.spark(settings)  # refused here, and not in the middle of a trial
    servers = options.bootstrap_servers or ""
    return Access(
        kubeconfig=Path(options.kubeconfig or ""),
        context=options.context or "",
        bootstrap=servers,
        pod_bootstrap=options.pod_bootstrap_servers or servers,
        kafka_settings=settings,
        prometheus=options.prometheus.rstrip("/"),
        image=options.pod_image,
    )


def earlier(options: Options) -> InputError | None:
    """Why no trial may run into ``--results``: it has records of an earlier session, and ``--resume`` is not given."""
    if options.from_records or options.resume or not (options.results / "records").is_dir():
        return None
    from lab.record import store

    count = len(store.stored(options.results))
    allowed = f"a folder without records, as it has {count} and none is run over; --resume runs only what is not finished there"
    return InputError("command line", "--results", str(options.results), allowed) if count else None


def own(options: Options) -> Own:
    """The files that a user brought with the options of :data:`OWN`."""
    from lab.trial.own import Own

    return Own(options.scaledobject, options.traffic_profile, options.workload)


def chosen_scale(options: Options) -> Scale:
    """The scale that ``--scale`` names, or the one for the files that a user brought, with the sync of ``--hpa-sync-s``."""
    scale = scales.load(options.scale) if options.scale else own(options).scale()
    return replace(scale, sync_s=options.hpa_sync_s) if options.hpa_sync_s else scale


def own_inputs(options: Options, root: Path) -> Inputs:
    """The inputs of the acceptance on a user's files, with the ``root``'s manifests first.

    Raises :class:`InputError` for a file that can't be used.
    """
    from lab.inputs import inputs

    chosen = own(options).plan()
    traffic, policy, work = (chosen.pop(name) for name in ("profile", "policy", "workload"))
    return inputs.read(traffic, policy, work, 1, chosen_scale(options), options.cluster, library=Library.of(root), **chosen)
