"""The process node's pure rules: back-off, phases, conditions, addresses, images, usage, command lines, and what is forked."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import InputError
from lab.kubelet.__main__ import settings
from lab.kubelet.agent import Addresses
from lab.kubelet.api import read_kubeconfig
from lab.kubelet.backoff import FORGET_S, following
from lab.kubelet.forking import Zygote
from lab.kubelet.podspec import Images
from lab.kubelet.server import tail_offset
from lab.kubelet.status import Running, State, Terminated, View, Waiting, phase, pod_status
from lab.kubelet.usage import Usage, exposition

from .harness import IMAGES

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUNS = Running(NOW, 1)
DONE = Terminated(0, "Completed", NOW, NOW)
BROKE = Terminated(1, "Error", NOW, NOW)
NEW = Waiting()
LOOP = Waiting("CrashLoopBackOff")


def view(state: State, last: Terminated | None = None, ready: bool = False) -> View:
    """A container in a state."""
    return View("main", "image", "id", state, last, 0, ready)


def test_crashes_in_a_row_wait_10_seconds_doubling_to_300() -> None:
    """The kubelet's sequence: at once, then 10, 20, 40, 80, 160, 300, 300 s; at once after more than ten minutes of running."""
    delay, seen = None, []
    for ran_s in (*[1, FORGET_S] * 4, FORGET_S + 1):
        delay = following(delay, ran_s, 10)
        seen.append(delay)
    assert seen == [0, 10, 20, 40, 80, 160, 300, 300, 0]


@pytest.mark.parametrize(
    ("views", "policy", "final", "expected"),
    [
        ([view(NEW)], "Always", False, "Pending"),
        ([view(RUNS), view(NEW)], "Always", False, "Pending"),
        ([view(RUNS), view(BROKE)], "Never", False, "Running"),
        ([view(LOOP, BROKE)], "Always", False, "Running"),
        ([view(DONE)], "Always", False, "Running"),
        ([view(DONE)], "Always", True, "Succeeded"),
        ([view(BROKE)], "Always", True, "Failed"),
        ([view(DONE), view(BROKE)], "Never", False, "Failed"),
        ([view(BROKE)], "OnFailure", False, "Running"),
        ([view(DONE)], "OnFailure", False, "Succeeded"),
    ],
)
def test_phases_are_the_kubelets(views: list[View], policy: str, final: bool, expected: str) -> None:
    """The phase follows the containers' states, the restart policy, and whether the pod is over."""
    assert phase(views, policy, final) == expected


def test_a_condition_keeps_its_time_until_it_changes() -> None:
    """lastTransitionTime moves with the status of its own condition only."""

    def conditions(ready: bool, at: datetime, previous: dict[str, Any]) -> dict[str, Any]:
        status = pod_status(
            [view(RUNS, ready=ready)], policy="Always", final=False, ip="127.77.0.1", start=NOW, now=at, previous=previous
        )
        return {entry["type"]: entry for entry in status["conditions"]}

    first = conditions(False, NOW, {"PodScheduled": {}})
    second = conditions(True, NOW + timedelta(seconds=5), first | {"PodScheduled": {}})
    assert second["Ready"]["lastTransitionTime"] == "2026-01-01T00:00:05Z"
    assert second["Initialized"]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert (second["Ready"]["reason"], second["Ready"]["message"]) == (None, None)
    assert "PodScheduled" not in second
    assert "PodScheduled" in conditions(True, NOW, {})


@given(st.lists(st.booleans(), min_size=1, max_size=300))
def test_no_address_is_handed_out_while_in_use(takes: list[bool]) -> None:
    """Whatever the order of taking and giving back, the addresses in use all differ and are hosts of the network."""
    addresses, used = Addresses("127.77"), []
    for take in takes:
        if take or not used:
            address = addresses.take(used[0] if used else "")
            assert address not in used
            assert address.startswith("127.77.")
            assert address.rpartition(".")[2] not in ("0", "255")
            used.append(address)
        else:
            addresses.give_back(used.pop(0))


@pytest.mark.parametrize(
    ("image", "folder"),
    [
        ("elastic-lab", "/a"),
        ("elastic-lab:1", "/a"),
        ("elastic-lab/consumer:1", "/a"),
        ("elastic-lab/jvm:1", "/b"),
        ("elastic-labour", None),
        ("docker.io/elastic-lab", None),
    ],
)
def test_an_image_is_known_by_its_longest_prefix(image: str, folder: str | None) -> None:
    """A prefix ends at the whole name, a tag or a part, never inside a word."""
    found = Images({"elastic-lab": Path("/a"), "elastic-lab/jvm": Path("/b")}).folder(image)
    assert found == (Path(folder) if folder else None)


def test_usage_is_written_in_the_kubelets_words() -> None:
    """Names, labels and times are those metrics-server reads; a pod's usage is its containers' sum."""
    usages = [Usage("ns", "p", "a", 5.5, 1.5, 10), Usage("ns", "p", "b", 6.5, 2.0, 20)]
    lines = exposition(9.25, 99, usages, now_ms=1000).splitlines()
    kinds = dict(line.split()[2:] for line in lines if line.startswith("# TYPE "))
    assert {name for name, kind in kinds.items() if kind == "counter"} == {name for name in kinds if name.endswith("_total")}
    assert [line for line in lines if not line.startswith("# TYPE ")] == [
        'container_cpu_usage_seconds_total{container="a",namespace="ns",pod="p"} 1.5 1000',
        'container_cpu_usage_seconds_total{container="b",namespace="ns",pod="p"} 2.0 1000',
        'container_memory_working_set_bytes{container="a",namespace="ns",pod="p"} 10 1000',
        'container_memory_working_set_bytes{container="b",namespace="ns",pod="p"} 20 1000',
        'container_start_time_seconds{container="a",namespace="ns",pod="p"} 5.5',
        'container_start_time_seconds{container="b",namespace="ns",pod="p"} 6.5',
        "node_cpu_usage_seconds_total 9.25 1000",
        "node_memory_working_set_bytes 99 1000",
        'pod_cpu_usage_seconds_total{namespace="ns",pod="p"} 3.5 1000',
        'pod_memory_working_set_bytes{namespace="ns",pod="p"} 30 1000',
        "resource_scrape_error 0",
    ]


def test_a_tail_is_the_last_lines(tmp_path: Path) -> None:
    """The offset leaves exactly the last lines of the file, a last line without its newline being one: every short file."""
    file = tmp_path / "tail.log"
    for content in (b"".join(parts) for count in range(5) for parts in itertools.product((b"\n", b"a\n", b"bc"), repeat=count)):
        file.write_bytes(content)
        whole = content.splitlines(keepends=True)
        for lines in range(6):
            assert content[tail_offset(file, lines) :] == b"".join(whole[len(whole) - min(lines, len(whole)) :]), (
                content,
                lines,
            )


@pytest.fixture
def arguments(tmp_path: Path) -> dict[str, str]:
    """A command line that can be used."""
    for name in ("kubeconfig", "tls-cert", "tls-key", "client-ca"):
        (tmp_path / name).touch()
    files = {f"--{name}": str(tmp_path / name) for name in ("kubeconfig", "tls-cert", "tls-key", "client-ca")}
    own = {"--name": "node-1", "--port": "7000", "--pod-network": "127.77", "--run": str(tmp_path)}
    return {**files, **own, "--image": f"elastic-lab={tmp_path}"}


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("--name", "Node_1", "a DNS name in lower case"),
        ("--port", "70000", "1 to 65535"),
        ("--pod-network", "127.0", "127.1 to 127.255"),
        ("--pod-network", "10.1", "127.1 to 127.255"),
        ("--pod-network", "127.256", "127.1 to 127.255"),
        ("--image", "elastic-lab", "PREFIX=BINDIR with a folder that exists"),
        ("--image", "elastic-lab=/no/such", "PREFIX=BINDIR with a folder that exists"),
        ("--client-ca", "/no/such", "a file that exists"),
        ("--backoff-base-s", "0", "more than 0"),
        ("--fork", "other=work", "PREFIX=MODULE,MODULE with the prefix of an --image"),
        ("--fork", "elastic-lab=", "PREFIX=MODULE,MODULE with the prefix of an --image"),
        ("--fork", "elastic-lab=a.b,-c", "PREFIX=MODULE,MODULE with the prefix of an --image"),
    ],
)
def test_a_bad_option_is_one_clear_line(arguments: dict[str, str], option: str, value: str, allowed: str) -> None:
    """The line names the option, its value and what is allowed."""
    given_words = [word for pair in (arguments | {option: value}).items() for word in pair]
    with pytest.raises(InputError) as caught:
        settings(given_words)
    assert (caught.value.field, str(caught.value.value)) == (option, "0.0" if option == "--backoff-base-s" else value)
    assert str(caught.value).endswith(f"allowed: {allowed}")


def test_a_good_command_line_is_read(arguments: dict[str, str], tmp_path: Path) -> None:
    """Every option arrives, the back-off defaults to the kubelet's ten seconds, and modules to fork belong to an image."""
    chosen = settings([word for pair in arguments.items() for word in pair])
    assert (chosen.name, chosen.port, chosen.backoff_base_s) == ("node-1", 7000, 10.0)
    assert chosen.images.folder("elastic-lab/web:2") == tmp_path
    assert chosen.fork is None
    words = [word for pair in (arguments | {"--fork": "elastic-lab=lab.one,two"}).items() for word in pair]
    assert settings(words).fork == (tmp_path, ("lab.one", "two"))


@pytest.mark.parametrize(
    "text", ["a: [", "[]", "current-context: x", "clusters: [{cluster: {certificate-authority: /no/such}}]"]
)
def test_a_bad_kubeconfig_is_one_clear_line(tmp_path: Path, text: str) -> None:
    """The line names the file and what it must have."""
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read_kubeconfig(file)
    assert str(caught.value).startswith(f"{file}: kubeconfig: ")
    assert "allowed: a kubeconfig that names a server" in str(caught.value)
    assert "\n" not in str(caught.value)


FOLDER = IMAGES.folders["elastic-lab"]
BASE = {"PATH": f"{FOLDER}:/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONPATH": "/programs", "COLOUR": "blue"}


@pytest.mark.parametrize(
    ("command", "env", "taken"),
    [
        (["python", "-m", "work"], {}, True),
        (["python3", "-m", "work", "--flag"], {"COLOUR": "red", "TZ": "Asia/Tokyo"}, True),
        ([str(FOLDER / "python"), "-m", "work"], {}, True),
        (["python", "-m", "other"], {}, False),
        (["python", "-u", "-m", "work"], {}, False),
        (["python", "work.py"], {}, False),
        (["python"], {}, False),
        (["sh", "-m", "work"], {}, False),
        (["no-such-python", "-m", "work"], {}, False),
        (["python", "-m", "work"], {"PATH": "/nowhere"}, False),
        (["python", "-m", "work"], {"PYTHONPATH": "/others"}, False),
        (["python", "-m", "work"], {"LANG": "de_DE.UTF-8"}, False),
        (["python", "-m", "work"], {"LD_PRELOAD": "/x.so"}, False),
    ],
)
def test_only_what_comes_to_the_same_is_forked(tmp_path: Path, command: list[str], env: Mapping[str, str], taken: bool) -> None:
    """A listed module of the image's own interpreter, with the variables that act before it as the zygote has them."""
    made = Zygote(tmp_path, FOLDER, ["work"], {"PYTHONPATH": "/programs"})
    assert made.takes(command, BASE | env) is taken
