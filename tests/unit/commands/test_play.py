"""The play page: its state in a link and in a form, its answers beside those of simulate, and what a browser does with it."""

import json
import threading
from dataclasses import asdict, replace
from wsgiref.simple_server import make_server

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lab.commands import play
from lab.commands.play import answer, page, state, traffic
from lab.commands.play.state import FIELDS, SLIDERS, START, State
from lab.errors import InputError
from lab.foresee import explain
from tests.unit.report import browser

OWN = "0 250 baseline\n300 2500 spike\n900 250 drain\n1200 end"
BARE = yaml.safe_load(START)
del BARE["spec"]["advanced"]
NUMBERS = {
    one.field: st.integers(0, int((one.most - one.least) / one.step)).map(lambda n, one=one: one.least + n * one.step)
    for one in SLIDERS
}


@given(st.text(max_size=300), st.text(max_size=300), st.sampled_from(["spike", "bursty", OWN]), st.fixed_dictionaries(NUMBERS))
def test_a_link_holds_the_whole_state(policy, second, name, numbers):
    """What is opened is what was sent, whatever the policies say; the page's own beginning has no query."""
    sent = State(policy, second, name, **numbers)
    assert state.state_of(state.query_of(sent)) == sent
    assert (state.query_of(State()), state.state_of("")) == ("", State())


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?pod_rate=0", "link: pod_rate: '0' is not allowed; allowed: 10 to 1000 messages/s"),
        ("?partitions=2.5", "link: partitions: '2.5' is not allowed"),
        ("?start_s=nan", "link: start_s: 'nan' is not allowed"),
        (state.query_of(State("a" * 999))[:-3], "link: policy: 'eN"),
        (state.query_of(State("a" * 200_000)), "link: policy: 'eN"),
        ("?" + "&".join(f"a{n}=1" for n in range(30)), "link: query: "),
    ],
)
def test_a_broken_link_is_named(query, said):
    """Field, value, what is allowed; a policy that unpacks to more than any is refused like one that is cut."""
    with pytest.raises(InputError) as refused:
        state.state_of(query)
    assert str(refused.value).startswith(said)


@given(st.sampled_from(FIELDS), st.integers(4, 24), st.sampled_from([START, yaml.safe_dump(BARE)]))
def test_yaml_and_form_follow_each_other(field, value, text):
    """A field that is changed is read back, and the others stay; also where no behavior is written, and defaults hold."""
    before = state.form_of(state.scaled_of(text, "Policy A"))
    made = state.edited(text, "Policy A", before | {field.id: value})
    assert state.form_of(state.scaled_of(made, "Policy A")) == before | {field.id: value}
    assert state.edited(text, "Policy A", before) == text


def test_a_change_leaves_comments_and_refuses_what_does_not_fit():
    """The line of the number alone is another one."""
    made = state.edited(START, "Policy A", {"threshold": 999})
    assert [line for line in made.splitlines() if line not in START.splitlines()] == ['        lagThreshold: "999"']
    with pytest.raises(InputError, match=r"Policy A:8: spec\.minReplicaCount: 30 is not allowed"):
        state.edited(START, "Policy A", {"least": 30})


def test_traffic_is_steps_and_steps_are_traffic():
    """Those of each committed profile; what can't be read is named by its line."""
    for name, one in traffic.profiles().items():
        written = traffic.steps_of(one)
        assert traffic.steps_of(traffic.traffic_of(written)) == written, name
    for text, said in {
        "0 250\n300": "line 2: '300'",
        "0 x\n9 end": "line 1: '0 x'",
        "0 250\n300 9": "the last line: '300 9'",
        "": "the last line: missing",
        "0 1\n5 2\n5 3\n9 end": "steps:",
        "../scales": "line 1: '../scales'",
    }.items():
        with pytest.raises(InputError) as refused:
            traffic.profile_of(text)
        assert f"traffic: {said}" in str(refused.value)


@given(st.sampled_from(["bursty", "sawtooth", OWN]), st.integers(0, 99), st.floats(-9, 300), st.floats(-9, 2e6))
def test_a_dragged_step_stays_between_its_neighbours(name, place, minutes, rate):
    """What comes of it is traffic, and the other steps are as they were."""
    before = traffic.profile_of(name)
    place %= len(before.steps)
    after = traffic.moved(before, place, minutes, rate)
    assert traffic.steps_of(traffic.traffic_of(traffic.steps_of(after))) == traffic.steps_of(after)
    assert {*enumerate(before.steps)} ^ {*enumerate(after.steps)} <= {(place, before.steps[place]), (place, after.steps[place])}


def test_a_step_is_dragged():
    """To where the pointer leaves it; a little is nothing, the first step begins the traffic, and there is no rate below 0."""
    for dragged, line in {
        (1, 6.0, 1234.0): "360 1230 spike",
        (1, 5.4, 2520.0): "300 2500 spike",
        (1, -3.0, 99.0): "1 99 spike",
        (2, 99.0, 5e9): "1199 1000000 drain",
        (0, 3.0, -500.0): "0 0 baseline",
    }.items():
        assert traffic.steps_of(traffic.moved(traffic.profile_of(OWN), *dragged)).splitlines()[dragged[0]] == line


@pytest.mark.parametrize(("name", "second"), [("spike", {}), ("bursty", {"pod_rate": 70, "partitions": 12}), (OWN, {})])
def test_the_figures_are_those_that_simulate_prints(lab, tmp_path, monkeypatch, name, second):
    """With the command that the page shows."""
    monkeypatch.chdir(tmp_path)
    asked = replace(State(traffic=name), **second)
    (tmp_path / "orders.yaml").write_text(START)
    (tmp_path / "steps.yaml").write_text(yaml.safe_dump(traffic.profile_of(OWN).to_dict()))
    printed = json.loads(lab(*page.command(asked, "orders.yaml").split()[1:], "--json"))
    found = answer.answer(START, "Policy A", replace(asked, policy="", second=""))
    assert {name: one.value for name, one in found.figures.items()} == pytest.approx(printed["figures"], abs=1e-3)
    changes = [asdict(one) for one in found.curve.log if one.before != one.after]
    assert json.loads(json.dumps([one | {"at": round(one["at"], 3)} for one in changes])) == printed["log"]
    t, rates = answer.throughput(found.curve, found.arrivals)
    read = found.arrivals.by(found.curve.t[-1:])[0] - found.curve.lag[-1]
    assert float((rates[:-1] * np.diff(t)).sum()) == pytest.approx(read)


def test_a_long_curve_tells_its_steps_alone():
    """A pointer needs each sync only where it can point at one; every step has its reason, KEDA's too."""
    idle = START.replace("minReplicaCount: 4", "minReplicaCount: 0")
    found = answer.answer(idle, "Policy A", State("", "", "0 0,900 900,960 0,12000 end"))
    assert len(found.curve.log) == len(found.told) > 900
    longer = answer.answer(idle, "Policy A", State("", "", "0 0,900 900,960 0,16000 end"))
    steps = longer.told
    assert all(one.before != one.after for one in steps)
    assert [(one.after, one.by) for one in (steps[0], steps[-1])] == [(n, explain.SAID[explain.KEDA]) for n in (1, 0)]


@pytest.fixture
def ask():
    """Opens the page at a query, then sends what a change of its controls sends; returns the updates by id."""
    client = play.create().server.test_client()
    (redraw,) = [one for one in json.loads(client.get("/_dash-dependencies").data) if not one["clientside_function"]]

    def changed(query="", **values):
        shown = play.initial_values(query)[0] | {"search": query, "dragged": None}
        names = [name.split(".") for name in redraw["output"].strip(".").split("...")]
        values = {name.replace("__", "-"): value for name, value in values.items()}
        told = [one | {"value": (shown | values)[one["id"] if one["id"] != "url" else "search"]} for one in redraw["inputs"]]
        body = {
            "output": redraw["output"],
            "outputs": [{"id": name, "property": what} for name, what in names],
            "inputs": told,
            "changedPropIds": [f"{name}.value" for name in values] or ["url.search"],
        }
        return json.loads(client.post("/_dash-update-component", json=body).data)["response"]

    return changed


def test_a_control_changes_what_follows_from_it(ask):
    """The YAML follows the form, the form the YAML, the steps the profile; the link then holds it."""
    found = ask(policy__threshold=999)
    assert 'lagThreshold: "999"' in found["policy-yaml"]["value"]
    assert "policy-threshold" not in found
    assert 'lagThreshold: "999"' in state.state_of(found["link"]["href"][1:]).policy
    text = START.replace('"4500"', '"50"').replace("300", "60")
    found = ask(**{"policy__yaml": text})
    assert (found["policy-threshold"]["value"], found["policy-down_window"]["value"]) == (50, 60)
    assert found["figures"] != ask()["figures"]
    assert "1080 end" in ask(traffic="bursty")["steps"]["value"]
    assert ask(steps=OWN)["traffic"]["value"] == page.OWN
    found = ask(dragged=[1, 6.0, 1000.0])
    assert (found["steps"]["value"].splitlines()[2], found["traffic"]["value"]) == ("360 1000 spike", page.OWN)
    assert found["graph"]["figure"]["layout"]["shapes"][1]["yanchor"] == 1000
    found = ask(compare=["on"])
    assert (found["second-yaml"]["value"], found["second"]["style"]) == (START, {})
    assert [one["props"]["children"].partition(":")[0] for one in found["summary"]["children"]] == ["Policy A", "Policy B"]


def test_what_can_not_be_used_is_said_and_leaves_the_rest(ask):
    """Text, form, traffic and link: each has its own line, and what was drawn stays."""
    found = ask(policy__yaml="kind: Deployment")
    assert found["policy-wrong"]["children"].startswith("Policy A")
    assert "policy-threshold" not in found
    found = ask(policy__least=30)
    assert "spec.minReplicaCount: 30" in found["policy-wrong"]["children"]
    assert "policy-yaml" not in found
    found = ask(steps="0 x")
    assert found["traffic-wrong"]["children"].startswith("traffic: line 1")
    assert "graph" not in found
    found = ask("?pod_rate=x")
    assert found["link-wrong"]["children"].startswith("link: pod_rate")
    assert found["pod_rate"]["value"] == 100


def test_findings_are_the_audits_with_their_cure(ask):
    """On the numbers that are set: what is in flight is more than a lagThreshold that a pod's commits don't allow."""
    said = json.dumps(ask(policy__threshold=20)["findings"]["children"])
    assert "lagThreshold" in said
    assert "lagThreshold" not in json.dumps(ask()["findings"]["children"])


def test_it_is_of_this_machine_alone():
    """Everything comes from this process, which a page that gives its own name this address does not reach."""
    client = play.create().server.test_client()
    shown = client.get("/").data.decode()
    assert "http://" not in shown
    assert "https://" not in shown
    assert client.get("/", base_url="http://rebound.example").status_code == 403


@pytest.fixture(scope="module")
def address():
    """Where the page is served."""
    server = make_server("127.0.0.1", 0, play.create().server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture(scope="module")
def chromium():
    """One browser for all looks."""
    with browser.started() as one:
        yield one


DRAWN = "document.querySelectorAll('#graph .scatterlayer .trace').length >= {}"
FIELD, WHY = "#policy-down_window", "document.querySelector('#why').innerText.includes('{}')"


@pytest.mark.services
@browser.needed
def test_a_browser_draws_what_the_keyboard_changes(chromium, address):
    """A field by Tab and keys: summary, YAML and address follow, the address opens as it was, and a mark says why."""
    view = browser.look(chromium, address)
    view.page.wait_for_function(DRAWN.format(4))
    before = view.page.locator("#summary").inner_text()
    view.page.locator("#policy-up_window").focus()
    view.page.keyboard.press("Tab")
    for _ in range(6):
        if view.page.evaluate("document.activeElement.id") == FIELD[1:]:
            break
        view.page.keyboard.press("Tab")
    view.page.keyboard.press("Control+A")
    view.page.keyboard.type("1500")
    view.page.wait_for_function("(before) => document.querySelector('#summary').innerText !== before", arg=before)
    assert "stabilizationWindowSeconds: 1500" in view.page.locator("#policy-yaml").input_value()
    view.page.wait_for_function("location.search.includes('policy=')")
    again = browser.look(chromium, view.page.url)
    again.page.wait_for_function(DRAWN.format(4))
    assert again.page.locator("#summary").inner_text() == view.page.locator("#summary").inner_text()
    mark = again.page.locator("#graph .subplot.xy2 .points path").first
    mark.hover(force=True)
    again.page.wait_for_function(WHY.format("Policy A"))
    for one in (view, again):
        assert one.complaints == []
        assert all(asked.startswith(address) for asked in one.requests)


@pytest.mark.services
@browser.needed
def test_a_pointer_drags_a_step_of_the_traffic(chromium, address):
    """To the right and down is later and less: the steps and the address follow, and the handle stays where it was left."""
    view = browser.look(chromium, address)
    view.page.wait_for_function(DRAWN.format(4))
    handle, steps = view.page.locator("#graph .shape-group[data-index='1'] path"), view.page.locator("#steps")
    handle.scroll_into_view_if_needed()
    begun = handle.bounding_box()
    x, y = begun["x"] + begun["width"] / 2, begun["y"] + begun["height"] / 2
    assert steps.input_value().splitlines()[2] == "300 2500 spike"
    view.page.mouse.move(x, y)
    view.page.mouse.down()
    view.page.mouse.move(x + 60, y + 50, steps=4)
    view.page.mouse.up()
    view.page.wait_for_function("location.search.includes('traffic=')")
    at, rate, _ = steps.input_value().splitlines()[2].split()
    assert (int(at) > 400, 0 < float(rate) < 2000) == (True, True)
    assert abs(handle.bounding_box()["x"] - begun["x"] - 60) < 4
    assert view.complaints == []


@pytest.mark.services
@browser.needed
def test_it_fits_a_telephone_and_each_control_has_a_name(chromium, address):
    """At 390 px nothing is beside the screen, and the summary stays in sight; a screen reader has a name for each control."""
    view = browser.look(chromium, address)
    view.page.set_viewport_size({"width": 390, "height": 844})
    view.page.wait_for_function(DRAWN.format(4))
    assert view.page.evaluate("document.documentElement.scrollWidth") <= 390
    view.page.locator("#partitions").scroll_into_view_if_needed()
    assert view.page.locator("#summary").bounding_box()["y"] < 100
    named = "one.labels?.length > 0 || !!one.getAttribute('aria-label')"
    assert all(view.all("input:not([aria-hidden]), textarea, #traffic", named))
    assert "Policy A" in view.page.locator("#drawn").get_attribute("aria-label")
