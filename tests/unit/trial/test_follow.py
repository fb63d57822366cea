"""A kind is followed through broken and expired watches: nothing told twice, no end missed, no storm of tries."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.__main__ import main
from lab.errors import FAULT
from lab.foresee.explain import MOST, UP_POLICY
from lab.trial.follow import Expired, changes, follow
from tests.unit.foresee.test_explain import BEGIN, ORDERS


def thing(name, version, uid=None):
    """An object as the API gives it."""
    return {"metadata": {"name": name, "uid": uid or name, "resourceVersion": str(version)}}


class Scripted:
    """An API server that plays ``script``: a list's objects, or a watch's events and the error that it ends with."""

    def __init__(self, *script):
        self.script = list(script)
        self.asked = []
        self.stop = threading.Event()

    def objects(self):
        """The next list of the script."""
        self.asked.append("list")
        version, items = self._next()
        return str(version), items

    def events(self, version):
        """The next watch of the script."""
        self.asked.append(version)
        events, error = self._next()
        yield from events
        if error is not None:
            raise error

    def _next(self):
        if not self.script:
            self.stop.set()
        step = self.script.pop(0) if self.script else OSError("the script is over")
        if isinstance(step, Exception):
            raise step
        return step


def told(source, **how):
    """(what was told as (type, name), the gaps) when ``source`` is followed to its script's end, without a pause."""
    found, gaps = [], []
    how = {"pause": lambda attempt: 0.0} | how
    take = lambda event, item: found.append((event, item["metadata"]["name"]))  # noqa: E731
    follow(source, take, source.stop, lambda *gap: gaps.append(gap), **how)
    return found, gaps


def test_a_broken_watch_goes_on_from_its_version():
    """Nothing is listed and nothing told again; a bookmark moves the version."""
    source = Scripted(
        (5, [thing("a", 1)]),
        ([("MODIFIED", thing("a", 6)), ("BOOKMARK", {"metadata": {"resourceVersion": "9"}})], OSError("reset")),
        ([("ADDED", thing("b", 10))], None),
    )
    assert told(source) == ([("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b")], [])
    assert source.asked == ["list", "5", "9", "10"]


def test_after_410_only_what_differs_is_told():
    """Gone meanwhile is DELETED, changed is MODIFIED, of a new uid is both, and what stayed is not told again."""
    source = Scripted(
        (5, [thing("stays", 1), thing("changes", 2), thing("goes", 3), thing("again", 4)]),
        ([], Expired()),
        (50, [thing("stays", 1), thing("changes", 40), thing("again", 41, "other"), thing("new", 42)]),
    )
    found, gaps = told(source)
    again = [("DELETED", "again"), ("ADDED", "again")]
    assert found[4:] == [("DELETED", "goes"), ("MODIFIED", "changes"), *again, ("ADDED", "new")]
    assert source.asked == ["list", "5", "list", "50"]
    ((began, ended),) = gaps
    assert began <= ended


def test_an_api_server_that_is_down_is_asked_with_pauses():
    """They grow, and a list that fails is tried again: what was known before still is."""
    paused = []
    down = OSError("refused")
    source = Scripted((5, [thing("a", 1)]), ([], Expired()), down, down, down, (9, []))
    assert told(source, pause=lambda attempt: paused.append(attempt) or 0.0)[0] == [("ADDED", "a"), ("DELETED", "a")]
    assert paused[:4] == [0, 1, 2, 3]


def test_a_version_that_never_works_is_given_up():
    """Whatever the server says instead of 410."""
    source = Scripted((5, []), *[([], OSError("no"))] * 6, (9, [thing("a", 8)]))
    assert told(source)[0] == [("ADDED", "a")]
    assert source.asked == ["list", *["5"] * 6, "list", "9"]


@pytest.mark.parametrize("garbage", [None, {"type": "ADDED"}, "no event"])
def test_half_a_line_is_a_broken_watch(garbage):
    """A connection that ends in the middle of an event ends no thread."""

    class Torn(Scripted):
        def events(self, version):
            for event in super().events(version):
                yield event["type"], event["object"]

    source = Torn((5, []), ([garbage], None), ([{"type": "ADDED", "object": thing("a", 6)}], None))
    assert told(source)[0] == [("ADDED", "a")]


def test_a_stop_ends_a_pause():
    """Whoever stops the recorder does not wait for its next try."""
    source = Scripted(OSError("down"))
    began = time.monotonic()
    threading.Timer(0.1, source.stop.set).start()
    follow(source, lambda *_: None, source.stop, pause=lambda attempt: 60.0)
    assert time.monotonic() - began < 30


objects = st.dictionaries(st.sampled_from("abcd"), st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=4)


@given(objects, objects)
def test_what_is_told_leads_to_what_is_listed(before, after):
    """Applied to what was known, the changes give what is there; what is alike is not among them."""
    known = {name: thing(name, version, f"{name}{uid}") for name, (version, uid) in before.items()}
    listed = [thing(name, version, f"{name}{uid}") for name, (version, uid) in after.items()]
    state = dict(known)
    for event, item in changes(known, listed):
        name = item["metadata"]["name"]
        assert event == "DELETED" or known.get(name) != item
        if event == "DELETED":
            assert state.pop(name) == known[name]
        else:
            assert (event == "ADDED") == (name not in state)
            state[name] = item
    assert state == {item["metadata"]["name"]: item for item in listed}


def object_of(version, kind, name, **more):
    """An object as the API server has it."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "uid": name, "resourceVersion": "5"}} | more


LIVE = {
    "/apis/keda.sh/v1alpha1": object_of(
        "keda.sh/v1alpha1", "ScaledObject", "orders", spec={"scaleTargetRef": {"name": "orders"}}, status={"hpaName": "own"}
    ),
    "/apis/autoscaling/v2": object_of("autoscaling/v2", "HorizontalPodAutoscaler", "own", status={}),
    "/apis/apps/v1": object_of("apps/v1", "Deployment", "orders", status={"replicas": 1}),
}

ABOUT = {"reason": "SuccessfulRescale", "involvedObject": {"name": "keda-hpa-orders-enricher"}}
COMBINED = {"message": "(combined from similar events): New size: 12; reason: external metric above target"}
EVENTS = [
    ABOUT | {"message": "New size: 10; reason: external metric above target", "lastTimestamp": "2023-11-14T22:23:30Z"},
    # The first time is that of another size.
    ABOUT | COMBINED | {"firstTimestamp": "2023-11-14T22:20:10Z", "lastTimestamp": "2023-11-14T22:24:00Z"},
]
WRITTEN = [{"time": "2023-11-14T22:00:00Z"}, {"time": "2023-11-14T22:30:00Z", "subresource": "status"}]
PAST = {
    "/apis/keda.sh/v1alpha1/namespaces/orders/scaledobjects/orders-enricher": ORDERS
    | {"metadata": ORDERS["metadata"] | {"managedFields": WRITTEN}},
    "/api/v1/namespaces/orders/events": {"items": EVENTS},
}


class Server(ThreadingHTTPServer):
    """Its watches stay open until it is ``over``. Without ``events`` the Role lacks the rule for them."""

    daemon_threads, over, events = True, threading.Event(), True


class Rules(BaseHTTPRequestHandler):
    """An API server with the committed Role's rights: a list or a watch needs the name in its selector, and nothing writes."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Nothing."""

    def do_GET(self):
        """Discovery, an object, its list, or a watch of one change."""
        place, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        if place in PAST:
            chosen = "involvedObject.kind=HorizontalPodAutoscaler,involvedObject.name=keda-hpa-orders-enricher"
            denied = place.endswith("events") and not (Server.events and query.get("fieldSelector") == [chosen])
            return self.answer({"message": f"{place} is forbidden"}, 403) if denied else self.answer(PAST[place])
        root = next((one for one in LIVE if place.startswith(one)), None)
        if root is None:
            groups = [{"name": one.split("/")[2], "versions": [{"version": one.split("/")[3]}]} for one in LIVE]
            for one in groups:
                one["preferredVersion"] = one["versions"][0]
            return self.answer({"kind": "x", "groups": groups, "versions": [], "resources": [], "major": "1", "minor": "36"})
        item, plural = LIVE[root], f"{LIVE[root]['kind'].lower()}s"
        if place == root:
            verbs = ["get", "list", "watch", "patch"]
            return self.answer(
                {"kind": "x", "resources": [{"name": plural, "kind": item["kind"], "namespaced": True, "verbs": verbs}]}
            )
        name = item["metadata"]["name"]
        if place == f"{root}/namespaces/orders/{plural}/{name}":
            return self.answer(item)
        if place != f"{root}/namespaces/orders/{plural}" or query.get("fieldSelector") != [f"metadata.name={name}"]:
            return self.answer({"message": f"{place} is forbidden"}, 403)
        if "watch" not in query:
            return self.answer({"metadata": {"resourceVersion": "5"}, "items": [item]})
        after = item | {"metadata": item["metadata"] | {"resourceVersion": "6"}, "spec": {"changed": True}}
        return self.answer({"type": "MODIFIED", "object": after}, wait=True)

    def answer(self, content, code=200, *, wait=False):
        """Send ``content``; with ``wait`` the connection stays until the test is over."""
        body = json.dumps(content).encode() + b"\n"
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header(*(("Transfer-Encoding", "chunked") if wait else ("Content-Length", str(len(body)))))
        self.end_headers()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(body), body) if wait else body)
        self.wfile.flush()
        if wait:
            Server.over.wait(30)


@pytest.fixture
def watching(tmp_path):
    """The flags that shadow a group on an API server with no more rights than the committed Role's."""
    server = Server(("127.0.0.1", 0), Rules)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    lists = {"clusters": [{"name": "x", "cluster": {"server": f"http://127.0.0.1:{server.server_address[1]}"}}]}
    lists |= {"users": [{"name": "x", "user": {}}], "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]}
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x"} | lists))
    yield ["shadow", f"--kubeconfig={file}", "--context=x", "--namespace=orders"]
    Server.over.set()
    server.shutdown()
    server.server_close()


def test_a_live_group_is_watched_by_the_names_of_its_objects(watching, tmp_path, capsys):
    """The three objects and a change of each are kept, and an end; what is not its own is refused in one line."""
    saved = tmp_path / "watched.jsonl"
    main([*watching, "--name=orders", "--for-s=2", f"--save={saved}"])
    rows = [json.loads(line) for line in saved.read_text().splitlines()]
    kept = sorted((row["kind"], row["name"], row["event"]) for row in rows[:-1])
    names = (("Deployment", "orders"), ("HorizontalPodAutoscaler", "own"), ("ScaledObject", "orders"))
    assert kept == [(*one, event) for one in names for event in ("ADDED", "MODIFIED")]
    assert (rows[-1]["event"], rows[-1]["object"]) == ("END", {"gaps": []})
    capsys.readouterr()
    assert main([*watching, "--name=other", "--for-s=1"]) == FAULT
    (line,) = capsys.readouterr().err.splitlines()
    assert (
        "needs the rights of manifests/shadow/rbac.yaml: /apis/keda.sh/v1alpha1/namespaces/orders/scaledobjects/other" in line
    )
    assert main([*watching[:2], "--context=y", "--name=orders"]) == 2
    assert "--context: 'y' is not allowed" in capsys.readouterr().err


def test_the_past_of_a_live_group_is_explained(watching, tmp_path, monkeypatch, capsys):
    """Its ScaledObject and its HPA's events are read; where events may not be, that is said, and they tell no step."""
    rows = [f"{BEGIN + 60 * number},{4 if number < 11 else 12},{9_000 if number < 10 else 40_000}" for number in range(14)]
    (tmp_path / "scrapes.csv").write_text("\n".join(["time,replicas,lag", *rows]))
    asked = ["explain", *watching[1:], f"--csv={tmp_path / 'scrapes.csv'}"]
    assert main([*asked, "--name=orders-enricher", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [(one["after"], one["by"]) for one in answer["explanations"]] == [(10, UP_POLICY), (12, MOST)]
    (changed,) = answer["notes"]
    assert changed.startswith("the ScaledObject was changed at 2023-11-14 22:00:00: ")
    monkeypatch.setattr(Server, "events", False)
    assert main([*asked, "--name=orders-enricher"]) == 0
    said = capsys.readouterr().out
    assert "note: the HPA's events can't be read" in said
    assert "4 -> 12  not told: " in said
    assert main([*asked, "--name=other"]) == FAULT
    (line,) = capsys.readouterr().err.splitlines()
    assert "needs the rights of manifests/shadow/rbac.yaml" in line
