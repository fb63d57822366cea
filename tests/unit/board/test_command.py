"""``python -m lab.board``: how it finds its Prometheus, and what it says when it can't."""

import json
import os
import socket
import subprocess

import pytest

from lab.board.__main__ import flags, main
from lab.host import identity, processes, runs


@pytest.fixture(autouse=True)
def register(tmp_path, monkeypatch):
    """A register of clusters of the test's own."""
    monkeypatch.setenv("ELASTIC_LAB_CACHE", str(tmp_path))


@pytest.fixture
def port():
    """A loopback port that is taken; nobody answers there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def said(capsys):
    """The one line written to stderr."""
    (line,) = capsys.readouterr().err.splitlines()
    return line


def running(url):
    """Register a run with a live process, as a cluster does."""
    run = runs.open_run()
    processes.remember(run, os.getpid(), "prometheus")
    runs.note_prometheus(run, url)
    return run


def test_the_newest_live_cluster_is_found():
    """Of several, the one that came up last; one whose processes are gone does not count."""
    assert runs.prometheus() is None
    running("http://127.0.0.1:1")
    last = running("http://127.0.0.1:2")
    gone = runs.open_run()
    runs.note_prometheus(gone, "http://127.0.0.1:3")
    assert runs.prometheus() == "http://127.0.0.1:2"
    processes.forget(last, os.getpid())
    assert runs.prometheus() == "http://127.0.0.1:1"


def test_what_was_noted_outlives_being_kept():
    """keep changes its own word and no other."""
    run = running("http://127.0.0.1:1")
    watcher = subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE)
    runs.keep(run, watcher)
    assert watcher.returncode is not None
    entry = json.loads((run / "owner.json").read_text())
    assert (entry["kept"], entry["prometheus"], entry["pid"]) == (True, "http://127.0.0.1:1", os.getpid())
    assert identity.read(entry) == identity.identify(os.getpid())


def test_what_can_not_be_served_is_one_line(capsys, port):
    """No cluster and no URL, a URL at which nobody answers, a port that is taken: exit 2, and what would do."""
    for words, start, part in (
        ([], "elastic-lab: --prometheus: no running cluster", ""),
        ([f"--prometheus=http://127.0.0.1:{port}", "--port=0"], "elastic-lab: --prometheus: ", f"http://127.0.0.1:{port}"),
        (
            ["--prometheus=http://127.0.0.1:1", f"--port={port}"],
            f"elastic-lab: command line: --port: {port} is not allowed; allowed: a free port",
            "",
        ),
    ):
        assert main(words) == 2
        line = said(capsys)
        assert line.startswith(start)
        assert part in line


@pytest.mark.parametrize(
    ("flag", "value", "allowed"),
    [
        ("--prometheus", "localhost:9090", "http://HOST:PORT"),
        ("--namespace", 'x"}', "a namespace's name"),
        ("--port", "70000", "0 to 65,535"),
        ("--minutes", "0", "0.5 to 720"),
    ],
)
def test_a_flag_out_of_range_is_one_line(capsys, flag, value, allowed):
    """Flag, value and what is allowed; exit 2."""
    with pytest.raises(SystemExit) as ended:
        flags().parse_args([flag, value])
    assert ended.value.code == 2
    line = said(capsys)
    assert flag in line
    assert value in line
    assert line.endswith(f"allowed: {allowed}")


def test_a_flag_is_not_read_from_the_environment(monkeypatch):
    """PORT and NAMESPACE there are someone else's; without a flag each has its default, and the help names no variable."""
    for name in ("PROMETHEUS", "NAMESPACE", "PORT", "MINUTES"):
        monkeypatch.setenv(name, "elsewhere")
    options = flags().parse_args([])
    assert (options.prometheus, options.namespace, options.port, options.minutes) == (None, None, 8050, 5.0)
    assert "elsewhere" not in flags().format_help()
    assert "[default 8050]" in flags().format_help()
