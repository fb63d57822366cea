"""How the play page looks: controls at the left, what follows from them at the right. Nothing comes from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import yaml
from dash import dcc, html

from lab.board.panels import ASKED, DELIVERED
from lab.commands.play import answer
from lab.commands.play.answer import HEIGHT, Answer
from lab.commands.play.state import FORM, SLIDERS, State, query_of, scaled_of
from lab.commands.play.traffic import profile_of, profiles
from lab.commands.text import number
from lab.errors import InputError
from lab.foresee.in_flight import InFlight

POLICIES = {"policy": "Policy A", "second": "Policy B"}
OWN = "steps"
COMPARED = "on"
POINT = "Point at a mark in the middle picture, or tap it: here stands why there are so many pods."
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>{%metas%}<title>{%title%}</title>{%css%}<style>
:root { --Dash-Fill-Interactive-Strong: #0072B2; --a: A_COLOUR; --b: B_COLOUR }
body { margin: 0; padding: 12px 18px; background: #f4f5f6; color: #222 }
body, pre, textarea { font: 15px/1.4 Liberation Sans, Arial, Helvetica, sans-serif }
h1 { font-size: 22px; margin: 0 0 4px } h2 { font-size: 16px; margin: 0 0 6px } p { margin: 0 0 8px }
header { max-width: 75em } small, .unit { color: #555 } code { font: 12px monospace; color: #555; overflow-wrap: anywhere }
#page { display: grid; gap: 10px }
#page { grid-template: "controls summary" "controls drawn" "controls results" 1fr / 350px minmax(0, 1fr) }
#summary { grid-area: summary } #drawn-section { grid-area: drawn } #controls { grid-area: controls }
#results { grid-area: results }
section { background: white; border: 1px solid #d4d6d8; border-radius: 4px }
section { padding: 10px 12px; margin-bottom: 10px; min-width: 0 }
#summary, #drawn-section { margin: 0 } #summary p { margin: 0; padding-left: 8px; border-left: 5px solid var(--a) }
#summary p + p { border-left: 5px dashed var(--b); margin-top: 5px }
fieldset { border: 0; padding: 0; margin: 0 0 8px } legend { font-weight: bold; padding: 0; margin-bottom: 2px }
.field { display: grid; grid-template-columns: minmax(0, 1fr) 92px 74px; gap: 0 6px; align-items: center; margin-bottom: 5px }
.field code { grid-column: 1 / -1 } .dash-input-stepper { display: none }
.slider label { display: block } .slider b { font-variant-numeric: tabular-nums }
.dash-input-container:has(input[type='range']) { border: 0 }
#page textarea { width: 100%; box-sizing: border-box; font: 12px/1.4 monospace } summary { cursor: pointer; padding: 4px 0 }
.wrong { color: #8a3b00; font-weight: bold; white-space: pre-wrap; overflow-wrap: anywhere } .wrong:empty { display: none }
#why { white-space: pre-wrap; overflow-wrap: anywhere; background: #f4f5f6; padding: 8px; margin: 0 }
#why { min-height: 7em; font-size: 14px }
table { border-collapse: collapse } td, th { padding: 3px 14px 3px 0; text-align: left; border-bottom: 1px solid #e4e6e8 }
td.number { text-align: right; font-variant-numeric: tabular-nums } .diff { overflow-x: auto; font: 12px monospace }
:focus-visible { outline: 3px solid #0072B2; outline-offset: 1px } a { color: #005a8c }
@media (max-width: 860px) {
  body { padding: 8px } #page { display: flex; flex-direction: column }
  #summary { position: sticky; top: 0; z-index: 5; box-shadow: 0 2px 4px #0003; font-size: 14px }
}
</style></head>
<body>{%app_entry%}<footer>{%config%}{%scripts%}{%renderer%}</footer></body>
</html>""".replace("A_COLOUR", DELIVERED).replace("B_COLOUR", ASKED)
PLACES = {
    "summary": "children", "graph": "figure", "drawn": "aria-label", "figures": "children", "steps-said": "children",
    "findings": "children", "link": "href", "command": "children", "take": "children",
}  # fmt: skip
WRONG = ("policy", "second", "traffic", "link")
ROWS = {  # what a figure is to whoever has never seen one
    "late_s": "Late: the oldest waiting message is older than {objective_s:g} s, for (s)",
    "worst_age_s": "Age of the oldest waiting message, at worst (s)",
    "peak_lag": "Messages waiting, at most",
    "flips": "Flips: pods were taken away and then needed again",
    "pod_minutes": "Pod-minutes: the price",
    "most_replicas": "Pods, at most",
    "reaction_s": "From more traffic until one more pod works (s)",
}


def results(state: State, found: Mapping[str, Answer | None]) -> dict[str, Any]:
    """What the page shows of the answers, by the place of each."""
    said = [answer.sentence(one, words, state.objective_s) for words, one in found.items() if one]
    shown: dict[str, Any] = {
        "summary": [html.P(line) for line in said] or [html.P("No answer: see what is wrong with the policy.")],
        "graph": answer.picture(state, found),
        "drawn": " ".join(said),
        "figures": _table(state, found),
        "steps-said": [_steps(words, one) for words, one in found.items() if one],
        "findings": [part for words, one in found.items() if one for part in _findings(words, one)],
        "link": f"/{query_of(state)}",
        "command": command(state, f"{_name(state.policy, POLICIES['policy'])}.yaml"),
        "take": _files(state),
    }
    return shown


def slider_words(state: State) -> dict[str, list[Any]]:
    """What each slider says, by its field."""
    return {one.field: [f"{one.words} ", html.B(f"{getattr(state, one.field):g} {one.unit}")] for one in SLIDERS}


def _table(state: State, found: Mapping[str, Answer | None]) -> html.Table:
    head = html.Tr([html.Th(""), *(html.Th(words) for words in found)])
    body = [
        html.Tr(
            [html.Th(words, scope="row", style={"fontWeight": "normal"}), *(html.Td(cell, className="number") for cell in row)]
        )
        for words, row in _rows(state, list(found.values()))
    ]
    return html.Table([html.Thead(head), html.Tbody(body)])


def _rows(state: State, found: Sequence[Answer | None]) -> Iterator[tuple[str, list[str]]]:
    """Each figure: what it is, and its number for each policy, "no data" with the reason, "" for one without an answer."""
    for name, words in ROWS.items():
        cells = []
        for one in found:
            figure = one.figures[name] if one else None
            cells.append(
                "" if figure is None else number(figure.value) if figure.value is not None else f"no data: {figure.why}"
            )
        yield words.format(objective_s=state.objective_s), cells


def command(state: State, file: str) -> str:
    """The command line that prints the same figures of a policy in ``file``."""
    traffic = state.traffic if state.traffic in profiles() else "steps.yaml"
    values = (state.pod_rate, state.partitions, state.start_s, InFlight(state.commit_s).mean_s, state.objective_s)
    names = ("pod-rate", "partitions", "start-s", "in-flight-s", "objective-s")
    words = [f"--{name} {value:.10g}" for name, value in zip(names, values, strict=True)]
    return " ".join([f"elastic-lab simulate --scaledobject {file} --profile {traffic}", *words])


def _steps(words: str, one: Answer) -> html.Details:
    steps = [html.Li(step.head) for step in one.told if step.before != step.after]
    return html.Details([html.Summary(f"{words}: each of its {len(steps)} steps, and why"), html.Ul(steps)])


def _findings(words: str, one: Answer) -> list[Any]:
    found: list[Any] = [
        html.Li(
            [
                html.B(f"{finding.severity}: "),
                html.Code(finding.field),
                f" {finding.sentence}. ",
                html.Details([html.Summary(f"Cure: {finding.cure}"), html.Pre(finding.diff, className="diff")])
                if finding.diff
                else f"Cure: {finding.cure}",
            ]
        )
        for finding in one.findings
    ]
    found += [html.Li([html.B("note: "), note]) for note in one.notes]
    return [
        html.H3(words, style={"fontSize": "15px", "margin": "8px 0 0"}),
        html.Ul(found) if found else html.P("Nothing is found."),
    ]


def _name(text: str, where: str) -> str:
    try:
        return scaled_of(text, where).name
    except InputError:
        return "scaledobject"


def _files(state: State) -> list[html.A]:
    """Links that save the policies and the traffic as files."""
    texts = {f"{_name(state.policy, POLICIES['policy'])}.yaml": ("Policy A as YAML", state.policy)}
    if state.second:
        texts[f"{_name(state.second, POLICIES['second'])}-b.yaml"] = ("Policy B as YAML", state.second)
    if state.traffic not in profiles():
        steps = yaml.safe_dump(profile_of(state.traffic).to_dict(), sort_keys=False)
        texts["steps.yaml"] = ("the traffic as YAML", steps)
    return [
        html.A(words, href=f"data:text/yaml;charset=utf-8,{quote(text)}", download=file)
        for file, (words, text) in texts.items()
    ]


def _editor(policy: str) -> html.Section:
    """The form and the YAML of a policy."""
    groups = [
        html.Fieldset([html.Legend(legend), *(_field(policy, index, legend) for index in range(len(FORM[legend])))])
        for legend in FORM
    ]
    line = "blue, solid" if policy == "policy" else "orange, dashed"
    text = dcc.Textarea(id=f"{policy}-yaml", spellCheck=False, rows=30, wrap="off")
    label = html.Label(f"YAML of {POLICIES[policy]}", htmlFor=f"{policy}-yaml")
    whole = html.Details([html.Summary("The same as YAML: paste yours here"), label, text])
    head = html.H2([f"{POLICIES[policy]} ", html.Small(f"({line})")])
    return html.Section([head, html.Div(id=f"{policy}-wrong", className="wrong", role="alert"), *groups, whole], id=policy)


def _field(policy: str, index: int, legend: str) -> html.Div:
    one = FORM[legend][index]
    id = f"{policy}-{one.id}"
    entry = dcc.Input(id=id, type="number", min=one.least, max=one.most, step=1, debounce=0.3, placeholder="none")
    parts = [html.Label(one.words, htmlFor=id), entry, html.Span(one.unit, className="unit"), html.Code(one.name)]
    return html.Div(parts, className="field")


def _slider(field: str, least: float, most: float, step: float) -> html.Div:
    moved = dcc.Input(id=field, type="range", min=least, max=most, step=step)
    return html.Div([html.Label(id=f"{field}-words", htmlFor=field), moved], className="slider")


def _traffic() -> html.Section:
    known = [{"label": "steps of your own", "value": OWN}]
    for name, one in profiles().items():
        rates = [step.rate for step in one.steps]
        words = f"{name}: {min(rates):,.4g} to {max(rates):,.4g} messages/s, {one.duration / 60:.0f} min"
        known.append({"label": words, "value": name})
    steps = dcc.Textarea(id="steps", spellCheck=False, rows=6)
    return html.Section(
        [
            html.H2(html.Label("The traffic", htmlFor="traffic")),
            dcc.Dropdown(id="traffic", options=known, clearable=False, searchable=False, maxHeight=400),
            html.Div(id="traffic-wrong", className="wrong", role="alert"),
            html.Details(
                [
                    html.Summary("Its steps: change them here, or drag a ◇ in the picture"),
                    html.Label("Seconds, messages/s, phase", htmlFor="steps"),
                    steps,
                ]
            ),
        ]
    )


def layout() -> html.Div:
    """The page as it is before its first answer."""
    controls = html.Div(
        [
            _editor("policy"),
            _traffic(),
            html.Section([html.H2("The pods"), *(_slider(one.field, one.least, one.most, one.step) for one in SLIDERS)]),
            html.Section(
                dcc.Checklist(id="compare", options=[{"label": " compare with a second policy", "value": COMPARED}], value=[])
            ),
            _editor("second"),
        ],
        id="controls",
    )
    graph = dcc.Graph(
        id="graph",
        config={"displayModeBar": False, "responsive": True, "edits": {"shapePosition": True}},
        style={"height": f"{HEIGHT}px"},
    )
    drawn = html.Section([html.Div(graph, id="drawn", role="img"), html.Pre(POINT, id="why")], id="drawn-section")
    below = html.Div(
        [
            html.Section([html.H2("In numbers"), html.Div(id="figures"), html.Div(id="steps-said")]),
            html.Section([html.H2("What the audit finds"), html.Div(id="findings")]),
            html.Section(
                [
                    html.H2("Take it along"),
                    html.P([html.A("a link that holds all of this", id="link"), ", as the address of this page does"]),
                    html.P(id="take", style={"display": "flex", "gap": "18px", "flexWrap": "wrap"}),
                    html.P(["The same figures in a terminal: ", html.Code(id="command")]),
                ]
            ),
        ],
        id="results",
    )
    header = html.Header(
        [
            html.H1("What would this ScaledObject do?"),
            html.P(
                "A group of pods reads a Kafka topic. A ScaledObject tells Kubernetes how many pods to run: it counts the "
                "messages that wait, the lag, and wants so many pods that each has few of them. Change a number, and see what "
                "follows. A model decides as the real autoscaler does: nothing is deployed, and nothing leaves this machine."
            ),
            html.Div(id="link-wrong", className="wrong", role="alert"),
        ]
    )
    summary = html.Section(id="summary", role="status")
    page = html.Main([summary, drawn, controls, below], id="page")
    return html.Div([dcc.Location(id="url", refresh=False), dcc.Store(id="dragged"), header, page])
