"""A setting is declared once: the same field is a flag, an environment variable, a field in YAML and part of the identity."""

import subprocess
import sys
from dataclasses import dataclass, fields

import pytest

from lab import paths
from lab.commands import settings as page
from lab.errors import InputError
from lab.flags import Flags, whole
from lab.inputs import consumer, producer, settings
from lab.inputs import scale as scales
from lab.inputs.settings import setting
from lab.inputs.workload import Workload
from lab.programs.consumer.member import configuration
from tests.suite import PROGRAM_S

QUICK = scales.load("quick")
OF_PROGRAMS = [(program, one) for program in (consumer, producer) for one in settings.declared(program.TrialSettings)]
# Another value for each field, as a person would write it.
OTHER = {
    "client": "java",
    "process_ms": "5-15",
    "balancer": "range",
    "membership": "static",
    "commit": "auto",
    "client_settings": "stock",
}
OTHER |= {"auto_offset_reset": "latest", "compression": "lz4", "fail_rate": 0.25, "poison_rate": 0.5, "poison": "3:1000"}
OTHER |= {"poison_mode": "hang", "retry_ms": "30,60", "retry_jitter": 0.5, "cpus": "0,1"}
# What a value of OTHER is allowed with.
TOGETHER = {"membership": {"pod_owner": "StatefulSet"}, "store_contention": {"store_slots": 12}}
TOGETHER |= {"partition_fetch_kib": {"client": "java"}}


def other(one):
    """A value that is allowed and not the default."""
    if one.name in OTHER:
        return OTHER[one.name]
    return {"on": "off", "off": "on"}.get(one.default) or one.default + 1


@dataclass(frozen=True, kw_only=True)
class Longer(Workload):
    """A workload with one setting more: the one edit."""

    pause_ms: int = setting(7, whole(0, 100), "pause after a batch", "ms", client="a.pause.ms")


@pytest.mark.parametrize(("program", "one"), OF_PROGRAMS, ids=lambda part: getattr(part, "name", ""))
def test_a_setting_is_the_same_in_yaml_environment_flag_and_identity(program, one, monkeypatch):
    """What a person writes in a Workload reaches the program through its environment, and is in what is hashed."""
    chosen = Workload.of({one.name: other(one)} | TOGETHER.get(one.name, {}), "my.yaml")
    assert chosen.to_dict()[one.name] == other(one)
    variables = chosen.environment(scales.Scale("real", 1, 1))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    by_environment = program.settings(program.flags().parse_args(["--bootstrap-servers=x"]))
    monkeypatch.undo()
    by_flag = program.settings(program.flags().parse_args(["--bootstrap-servers=x", f"--{one.flag}={other(one)}"]))
    assert getattr(by_environment, one.name) == getattr(by_flag, one.name) == getattr(chosen, one.name)
    assert type(getattr(by_flag, one.name)) is type(one.default)


def test_a_setting_that_is_added_is_everything_else_too():
    """Field in YAML with its range, flag with its unit, and the client's property."""
    assert Longer.of({"pause_ms": 100}, "my.yaml").pause_ms == 100
    with pytest.raises(InputError, match=r"my.yaml: pause_ms: 101 is not allowed; allowed: 0 to 100"):
        Longer.of({"pause_ms": 101}, "my.yaml")
    parser = Flags("program", "")
    settings.add_flags(parser, Longer)
    assert parser.parse_args(["--pause-ms=5"]).pause_ms == 5
    assert "pause after a batch, ms [PAUSE_MS, default 7]" in " ".join(parser.format_help().split())
    assert settings.client(Longer(pause_ms=9))["a.pause.ms"] == 9


def test_a_declared_cold_start_is_compressed():
    """Six seconds at real time are 0.2 s at a thirtieth."""
    made = Workload.of({"start_s": 6}, "my.yaml").environment(QUICK)
    assert float(made["START_S"]) == 6 / QUICK.time == 0.2
    assert made["COMMIT_INTERVAL_MS"] == "167"  # what is not committed counts as lag, which is compressed


def test_a_stock_client_has_librdkafkas_defaults():
    """Nothing is set but what makes it a member of its group, and what other settings name: their values as they are."""
    options = ["--bootstrap-servers=x", "--client-settings=stock", "--auto-offset-reset=latest", "--metadata-refresh-ms=1000"]
    given = configuration(consumer.settings(consumer.flags().parse_args(options)))
    named = {"auto.offset.reset": "latest", "topic.metadata.refresh.interval.ms": 1000, "max.poll.interval.ms": 300_000}
    member = {"bootstrap.servers", "group.id", "client.id", "enable.auto.commit", "partition.assignment.strategy"}
    assert given.keys() == member | named.keys()
    assert named.items() <= given.items()
    with pytest.raises(InputError, match=r"my.yaml: heartbeat_ms: 3000 is not allowed; allowed: 500, which a stock client"):
        Workload(client_settings="stock", heartbeat_ms=3000).check("my.yaml")


def test_no_two_programs_declare_the_same_setting():
    """They read one environment, so one of the two would be lost."""
    names = [one.name for _, one in OF_PROGRAMS]
    assert len(names) == len(set(names))


def test_every_field_of_a_workload_is_a_setting():
    """A field without a declaration would be no flag, and unchecked. Its default is allowed, and is what it is read as."""
    declared = list(settings.declared(Workload))
    assert [field.name for field in fields(Workload)] == [one.name for one in declared]
    assert all(one.read(one.default, "here") == one.default for one in declared)


def test_the_page_is_what_the_declarations_say():
    """Written by ``elastic-lab settings > docs/workload.md``."""
    assert (paths.PROJECT / "docs" / "workload.md").read_text() == page.page()


def test_a_consumers_pod_needs_no_yaml_to_start():
    """Its start is a part of the measured reaction: what the declarations need is not imported in every pod."""
    script = "import sys, lab.inputs.consumer; print('yaml' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PROGRAM_S, check=True)
    assert ran.stdout == "False\n"
