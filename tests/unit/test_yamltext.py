"""YAML and JSON text is read as Kubernetes' tools read it, and what they refuse is said in one line with its place."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lab import yamlfile, yamltext
from lab.errors import InputError, together
from lab.yamlnodes import DEEPEST

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdef", "bcdefg", strict=True)
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 10)}], {name}: 1}}\n"
    for before, name in zip("abcdef", "bcdefg", strict=True)
)


def said(text):
    """The lines with which ``text`` is refused."""
    with pytest.raises(InputError) as error, together():
        yamltext.documents(text, "my.yaml")
    return str(error.value).splitlines()


def contents(text):
    """The documents of ``text`` as plain data."""
    return [one.content for one in yamltext.documents(text, "my.yaml")]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("---\n# Source: a.yaml\n---\na: 1\n---\n", [{"a": 1}]),
        ("a: 1\n---\nb: 2\n...\n", [{"a": 1}, {"b": 2}]),
        ("\n# nothing\n", []),
        ('{\n\t"a": 1e3, "b": "\\ud83d\\ude00"\n}', [{"a": 1000.0, "b": "😀"}]),
        ("at: 10:00\nday: 2026-02-30\nn: 1_000\nm: 0x10\no: 010\nx: 1.5\n", [{"at": "10:00", "day": "2026-02-30"}]),
        ("a: &a {x: 1}\nb: {<<: *a, y: 2}\n", [{"a": {"x": 1}, "b": {"x": 1, "y": 2}}]),
    ],
)
def test_documents_json_and_words_that_look_like_numbers(text, content):
    """Empty documents are none. A date and a time of day are text; a number is one wherever Kubernetes has one."""
    found = contents(text)
    assert len(found) == len(content)
    for one, wanted in zip(found, content, strict=True):
        assert one.items() >= wanted.items()
    if "n: 1_000" in text:
        assert (found[0]["n"], found[0]["m"], found[0]["o"], found[0]["x"]) == (1000, 16, 8, 1.5)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        *(("1e1", 10.0), ("10.", 10.0), ("08", 8.0), ("012", 10), ("0o12", 10), ("-.5", -0.5), ("1_0e1", 100.0), ("+3", 3)),
        *(("1e999", "1e999"), ("0o9", "0o9"), ("1.2.3", "1.2.3"), ("30:00", "30:00"), ("1k", "1k"), ("9" * 200, "9" * 200)),
    ],
)
def test_a_number_is_what_kubernetes_tools_take_for_one(word, value):
    """Source: ``resolve`` in go.yaml.in/yaml/v2. An exponent needs neither point nor sign; 08 is decimal, not octal."""
    (found,) = contents(f"n: {word}\n")
    assert (found["n"], type(found["n"])) == (value, type(value))
    assert contents(yamltext.written({"n": word})) == [{"n": word}]


def test_what_is_written_stays_text_to_go_too():
    """There y is true and n false."""
    assert yamltext.written({"a": ["y", "N", "yes", "1e3", "orders"]}, default_flow_style=True) == (
        "{a: ['y', 'N', 'yes', '1e3', orders]}\n"
    )


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a: 1\nb: {c: 1, c: 2}\na: 3\n", ["my.yaml:3: a is written twice, first in line 1", "my.yaml:2: b.c is written"]),
        ('{"a": {"b": 1, "b": 2}}', ["my.yaml: b is written twice in one object"]),
        ("a: b: c\n", ["my.yaml:1: no YAML at column 5: mapping values are not allowed"]),
        ("a: 1\nb: \0\n", ["my.yaml:2: no YAML: "]),
        ("a: !!python/name:os.system x\n", ["my.yaml:1: the tag !!python/name:os.system: write plain data"]),
        ("a: !!int many\n", ["my.yaml:1: a value that can't be read"]),
        ("a: !!int\n", ["my.yaml:1: a value that can't be read"]),
        ("a: !!set {b}\n", ["my.yaml:1: the tag !!set"]),
        ("? [a, b]\n: 1\n", ["my.yaml:1: a mapping or a list stands where a field's name must be"]),
        ("a: &a [*a]\n", ["my.yaml:1: an alias that stands for itself"]),
        ("a: *b\n", ["my.yaml:1: no YAML"]),
        (BOMB, ["my.yaml:1: aliases that blow the text up"]),
        (MERGES, ["my.yaml:1: aliases that blow the text up"]),
        ("[" * 100_000, ["my.yaml:1: "]),
        ("a: " + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), ["my.yaml:1: more than 100 levels"]),
        ('{"a":' * 200 + "1" + "}" * 200, ["my.yaml:1: more than 100 levels"]),
        ("- " * 5000 + "x", ["my.yaml:1: more than 100 levels"]),
        ('a: "\\ud800"\n', ["my.yaml:1: "]),
        ("a: {{ .Values.a }}\n", ["my.yaml:1: {{ .Values.a }} is left of a template: render it first"]),
        ('{{- if eq .Values.a "k" }}\nkind: x\n{{- end }}\n', ['my.yaml:1: {{- if eq .Values.a "k" }} is left of a template']),
        ("# {{ x }}\na: '{{ y }}'\nb: ${c}\nd: {e: {{f}}}\n", ["my.yaml:3: ${c} is left of a template"]),
        ('{"a": ${most}}', ["my.yaml:1: ${most} is left of a template"]),
    ],
    ids=range(22),
)
def test_what_can_not_be_read_is_said_with_its_line(text, lines):
    """In words, whatever the parser of YAML calls it."""
    found = said(text)
    assert len(found) == len(lines)
    assert all(any(one.startswith(line) for one in found) for line in lines), found


@pytest.mark.parametrize("code", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_says_how_a_file_is_written(code, tmp_path):
    """PowerShell writes UTF-16. What is no text is said as such."""
    (tmp_path / "my.yaml").write_bytes("a: é\n".encode(code))
    assert yamlfile.read(tmp_path / "my.yaml") == {"a": "é"}
    (tmp_path / "my.yaml").write_bytes("a: é\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"my.yaml: no text: byte 3 is not UTF-8"):
        yamlfile.read(tmp_path / "my.yaml")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "my.yaml: nothing is in it"),
        ("just words", "my.yaml: str is all that is in it; allowed: a mapping of fields"),
        ("a: 1\n---\nb: 2\n", "my.yaml:3: 2 documents are in it; allowed: one"),
    ],
)
def test_a_file_of_one_document_has_one(text, line):
    """And that is a mapping."""
    with pytest.raises(InputError) as error:
        yamlfile.parse(text, "my.yaml")
    assert str(error.value).startswith(line)


KEYS = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=8).map(lambda name: f"k{name}")
PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**62), 2**62), st.floats(-1e9, 1e9), KEYS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, PLAIN, min_size=1, max_size=4))
def test_what_is_written_is_what_is_read(content):
    """As YAML in either style, and as JSON."""
    texts = (yaml.safe_dump(content), yaml.safe_dump(content, default_flow_style=True), json.dumps(content))
    assert [contents(text) for text in texts] == [[content]] * 3


def test_a_source_knows_the_line_of_each_field():
    """Of the last part that is written, where a field is missing; below a List's item; in the second document."""
    text = "a: 1\n---\nitems:\n- x: 1\n- spec:\n    triggers:\n    - type: kafka\n      metadata:\n        a.b/c: 1\n"
    where = yamltext.documents(text, "my.yaml")[1].where.under("items", 1)
    for field, line in (
        ("spec", 5),
        ("spec.triggers", 6),
        ("spec.triggers[0].type", 7),
        ("spec.triggers[0].metadata.a.b/c", 9),
        ("spec.triggers[0].name", 7),
        ("spec.triggers[3].name", 6),
        ("kind", 5),
    ):
        assert where.line(field) == line
