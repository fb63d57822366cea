"""Errors of one text are gathered, and what only follows from one is not said."""

import pytest

from lab.errors import LONGEST, InputError, Unusable, closest, refused, report, step, together
from lab.yamlfile import Fields, as_number


def lines(block):
    """What is said at the end of ``block``."""
    with pytest.raises(InputError) as error, together():
        block()
    return str(error.value).splitlines()


def test_errors_are_raised_together_at_the_end():
    """Reported ones, those that end a step, and the one that ends the block; a single one is itself."""

    def block():
        given = Fields({"a": "x", "b": -1, "c": 3}, "my.yaml")
        assert given.number("a", 0, 10) == 0
        with step():
            raise given.error("b", "0")
        given.known("a", "b")
        raise given.error("d", "there")

    assert lines(block) == [
        "my.yaml: a: 'x' is not allowed; allowed: a number from 0 to 10",
        "my.yaml: b: -1 is not allowed; allowed: 0",
        "my.yaml: c: 3 is not allowed; allowed: one of the fields a, b",
        "my.yaml: d: missing; allowed: there",
    ]
    with pytest.raises(InputError) as error, together():
        report(InputError("my.yaml", "a", 1, "2"))
    assert (error.value.field, error.value.value, len(error.value.each)) == ("a", 1, 1)


def test_what_follows_from_an_error_is_not_said():
    """The same field, what lies in it, and the field that a misspelt one stands for."""

    def block():
        given = Fields({"spec": 3, "meta": {}}, "my.yaml")
        given.known("spec", "metadata")
        given.under("metadata").text("name", "a name")
        given.under("spec").text("name", "a name")
        given.refuse("spec", "another")
        assert refused("my.yaml", "spec.name")
        assert not refused("other.yaml", "spec")

    assert lines(block) == [
        "my.yaml: meta: {} is not allowed; did you mean metadata?",
        "my.yaml: spec: 3 is not allowed; allowed: a mapping",
    ]


def test_without_a_block_the_first_error_is_raised():
    """A reader of one field stays strict, and nothing is left of a block that has ended."""
    with pytest.raises(InputError, match="a: missing"), together():
        report(InputError("x", "a", None, "there"))
    with pytest.raises(InputError, match="b: missing"):
        Fields({}, "x").text("b", "there")
    assert not refused("x", "a", "b")


def test_a_line_is_one_and_short():
    """Whatever is in it; of very many lines the first are said."""
    for error in (InputError("a\nb", "c\x1b[1m" * 200, "d" * 1000, "e" * 1000), Unusable("x" * 400, "\0")):
        assert str(error).isprintable()
        assert len(str(error)) <= LONGEST
    found = lines(lambda: [report(InputError("x", str(n), n, "")) for n in range(1000)])
    assert (len(found), found[-1]) == (41, "x: and 960 more like these")


def test_a_misspelt_word_is_known():
    """By letters of either case; not where nothing is like it."""
    fields = ("minReplicaCount", "triggers", "scaleTargetRef", "metadata")
    assert [closest(word, fields) for word in ("minReplicas", "Triggers", "meta", "x", 3, "y" * 10**6)] == [
        *("minReplicaCount", "triggers", "metadata"),
        *("", "", ""),
    ]


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        *(("300", "", "300"), ("1e3", "", "1000"), ("5m", "s", "300"), ("1.5h", "s", "5400"), ("250ms", "s", "0.25")),
        *(("30:00", "s", "1800"), ("1:30:00", "s", "5400"), ("5m", "pods", ""), ("soon", "s", ""), (5, "s", "")),
    ],
)
def test_a_number_that_is_written_otherwise_is_proposed(text, unit, number):
    """A duration and a time of day are seconds, where seconds are wanted."""
    assert as_number(text, unit) == number
