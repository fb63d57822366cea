"""``elastic-lab play``: a local page on which a ScaledObject is changed, and what it would do is drawn at once."""

from __future__ import annotations

import threading
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dash import Dash, Input, Output, ctx, no_update
from dash.exceptions import PreventUpdate

from lab import yamlfile, yamltext
from lab.board import serving
from lab.commands import situation
from lab.commands.play import answer, page
from lab.commands.play.answer import Answer
from lab.commands.play.page import COMPARED, OWN, POLICIES
from lab.commands.play.state import (
    FIELDS,
    SLIDERS,
    State,
    edited,
    form_of,
    query_of,
    scaled_of,
    state_of,
)
from lab.commands.play.traffic import moved, profile_of, profiles, steps_of
from lab.errors import HELD, InputError
from lab.flags import Flags, whole
from lab.inputs import scaledobject_file

CONTROLS = (
    *(f"{policy}-{name}" for policy in POLICIES for name in ("yaml", *(field.id for field in FIELDS))),
    *("compare", "traffic", "steps"),
    *(one.field for one in SLIDERS),
)
_ADDRESS = "(href) => { if (href) history.replaceState(null, '', href) }"
_DRAG = """(change) => {
  const found = Object.keys(change || {}).map((key) => key.match(/^shapes\\[(\\d+)\\]\\.yanchor$/)).find(Boolean)
  return found ? [Number(found[1]), change[`shapes[${found[1]}].xanchor`], change[found[0]]] : dash_clientside.no_update
}"""
_EXPLAIN = """(hover, click) => {
  const from = dash_clientside.callback_context.triggered.some((one) => one.prop_id.endsWith('clickData')) ? click : hover
  const said = from && from.points.map((one) => one.customdata).find((one) => typeof one === 'string')
  return said || dash_clientside.no_update
}"""


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    text = "begin with the ScaledObject in this file; - for standard input [default: an example]"
    parser.flag("scaledobject", Path, None, text, optional=True)
    parser.flag("name", str, "", "the ScaledObject of this name, or NAMESPACE/NAME, where several are in the file")
    text = "begin with this traffic: a YAML file, or the name of one in profiles/ [default: a spike]"
    parser.flag("profile", str, None, text, optional=True)
    parser.flag("port", whole(0, 65_535), 8051, "loopback port to serve on; 0 picks one", "0 to 65,535")


def run(options: Namespace) -> int:
    """Serve the page until interrupted. Returns the exit code."""
    state = begin(options)
    threading.Thread(target=answer.draw_keys, args=[state.traffic], daemon=True).start()
    with serving.listening(options.port) as listener:
        try:
            app = create().server
            serving.serve(listener, app, f"play: {serving.address(listener)}/{query_of(state)} (Ctrl-C ends it)")
        except KeyboardInterrupt:
            pass
    return HELD


def begin(options: Namespace) -> State:
    """The state that the page begins with. Raises :class:`InputError` for files that can't be used."""
    state = State()
    if options.scaledobject is not None:
        text, where = yamlfile.text(options.scaledobject), yamlfile.name(options.scaledobject)
        if options.name:
            text = yamltext.written(scaledobject_file.read(text, where, options.name).written.content)
        scaled_of(text, where)
        state = replace(state, policy=text)
    if options.profile is not None:
        own = steps_of(situation.read_profile(options.profile))
        profile_of(own)
        state = replace(state, traffic=options.profile if options.profile in profiles() else own)
    return state


def controls_of(state: State) -> dict[str, Any]:
    """The value of each control that shows ``state``."""
    named = state.traffic in profiles()
    values: dict[str, Any] = {one.field: getattr(state, one.field) for one in SLIDERS}
    values |= {"compare": [COMPARED] if state.second else [], "traffic": state.traffic if named else OWN}
    values["steps"] = steps_of(profiles()[state.traffic]) if named else state.traffic
    for policy in POLICIES:
        text, none = getattr(state, policy), {f"{policy}-{field.id}": None for field in FIELDS}
        values |= {f"{policy}-yaml": text} | none | _form(policy, text)
    return values


def _form(policy: str, text: str) -> dict[str, int | None]:
    """The values of the fields of a ``policy``; {} where its ``text`` can't be read."""
    try:
        form = form_of(scaled_of(text, POLICIES[policy]))
    except InputError:
        return {}
    return {f"{policy}-{name}": value for name, value in form.items()}


def follow(values: Mapping[str, Any], changed: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """What other controls show after those that ``changed``, and what is wrong with a policy's form, by policy.

    The YAML follows a field, the form follows the YAML, steps and name of the traffic follow each other, and a handle that is
    ``dragged`` (its step's place, minutes, messages/s) changes the steps.
    """
    found: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for policy, words in POLICIES.items():
        text = values[f"{policy}-yaml"] or ""
        form = {field.id: values[f"{policy}-{field.id}"] for field in FIELDS if f"{policy}-{field.id}" in changed}
        if f"{policy}-yaml" in changed:
            found |= _form(policy, text)
        elif form:
            try:
                found[f"{policy}-yaml"] = edited(text, words, form)
            except InputError as error:
                wrong[policy] = str(error)
    if "compare" in changed and values["compare"] and not values["second-yaml"]:
        text = values["policy-yaml"]
        found |= {"second-yaml": text, **_form("second", text)}
    if "dragged" in changed:
        place, minutes, rate = values["dragged"]
        with suppress(InputError, IndexError):  # of steps that can't be used, or were changed meanwhile
            found |= {"steps": steps_of(moved(profile_of(values["steps"] or ""), place, minutes, rate)), "traffic": OWN}
    elif "traffic" in changed and values["traffic"] != OWN:
        found["steps"] = steps_of(profiles()[values["traffic"]])
    elif "steps" in changed:
        found["traffic"] = OWN
    return found, wrong


def state_in(values: Mapping[str, Any]) -> State:
    """The state that controls with these ``values`` show."""
    return State(
        policy=values["policy-yaml"] or "",
        second=(values["second-yaml"] or "") if values["compare"] else "",
        traffic=values["traffic"] if values["traffic"] != OWN else values["steps"] or "",
        **{one.field: float(values[one.field]) for one in SLIDERS},
    )


def answers(state: State) -> tuple[dict[str, Answer | None], dict[str, str]]:
    """The answer for each policy of ``state``, None for one that has none, by its words; and what is wrong, by its name.

    Raises :class:`InputError` for traffic that can't be used.
    """
    profile_of(state.traffic)
    found: dict[str, Answer | None] = {}
    wrong = {}
    for policy, words in POLICIES.items():
        if policy == "second" and not state.second:
            continue
        try:
            found[words] = answer.answer(getattr(state, policy), words, replace(state, policy="", second=""))
        except InputError as error:
            found[words], wrong[policy] = None, str(error)
    return found, wrong


class Turns:
    """Lets one request at a time through. Of those that wait, only the newest is answered: the page drops older answers."""

    def __init__(self) -> None:
        self._newest, self._count, self._turn = 0, threading.Lock(), threading.Lock()

    def take(self) -> threading.Lock:
        """The lock to hold while answering. Raises ``PreventUpdate`` where a newer request came while this one waited."""
        with self._count:
            self._newest += 1
            number = self._newest
        self._turn.acquire()
        if number != self._newest:
            self._turn.release()
            raise PreventUpdate
        return self._turn


def create() -> Dash:
    """The page as a Dash application. Its state is in the page and in its address: the process keeps none."""
    app = Dash("lab.play", title="Elastic Lab: play", serve_locally=True, update_title="", assets_ignore=".*")
    app.index_string = page.PAGE
    app.server.before_request(serving.refuse)
    app.layout = page.layout()
    properties = dict.fromkeys(CONTROLS, "value")
    turns = Turns()

    @app.callback(
        output={
            "controls": {name: Output(name, what) for name, what in properties.items()},
            "places": {name: Output(name, what) for name, what in page.PLACES.items()},
            "words": {one.field: Output(f"{one.field}-words", "children") for one in SLIDERS},
            "wrong": {name: Output(f"{name}-wrong", "children") for name in page.WRONG},
            "second": Output("second", "style"),
        },
        inputs={
            "values": {name: Input(name, what) for name, what in properties.items()},
            "query": Input("url", "search"),
            "dragged": Input("dragged", "data"),
        },
    )
    def redraw(values: dict[str, Any], query: str | None, dragged: list[float] | None) -> dict[str, Any]:
        if query is None:  # the page does not know its address yet: another request follows
            raise PreventUpdate
        changed = {one["prop_id"].rpartition(".")[0] for one in ctx.triggered}
        if "url" in changed or not changed & {*CONTROLS, "dragged"}:
            return respond(*initial_values(query))
        turn = turns.take()
        try:
            found, wrong = follow(values | {"dragged": dragged}, sorted(changed))
            return respond(values | found, found, wrong)
        finally:
            turn.release()

    app.clientside_callback(_ADDRESS, Input("link", "href"))  # type: ignore[no-untyped-call]
    dragged = Output("dragged", "data"), Input("graph", "relayoutData")
    app.clientside_callback(_DRAG, *dragged, prevent_initial_call=True)  # type: ignore[no-untyped-call]
    pointed = Input("graph", "hoverData"), Input("graph", "clickData")
    app.clientside_callback(_EXPLAIN, Output("why", "children"), *pointed, prevent_initial_call=True)  # type: ignore[no-untyped-call]
    return app


def initial_values(query: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """The values of all controls for a link's ``query``, the same as changes, and what is wrong with the link."""
    try:
        values, wrong = controls_of(state_of(query)), {}
    except InputError as error:
        values, wrong = controls_of(State()), {"link": str(error)}
    return values, values, wrong


def respond(values: Mapping[str, Any], found: Mapping[str, Any], wrong: Mapping[str, str]) -> dict[str, Any]:
    """What the page shows where its controls have these ``values``, of which ``found`` are new to it."""
    state, errors = state_in(values), dict(wrong)
    try:
        said, mistakes = answers(state)
        errors = mistakes | errors
        places = page.results(state, said)
    except InputError as error:
        errors, places = errors | {"traffic": str(error)}, dict.fromkeys(page.PLACES, no_update)
    return {
        "controls": {name: found.get(name, no_update) for name in CONTROLS},
        "places": places,
        "words": page.slider_words(state),
        "wrong": {name: errors.get(name, "") for name in page.WRONG},
        "second": {} if values["compare"] else {"display": "none"},
    }
