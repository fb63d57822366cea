"""Command-line flags of the lab's programs, most of which may also come from the environment (a pod's ConfigMap)."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from lab.errors import BAD_INPUT, InputError, closest, one_line, shown

NAME = "elastic-lab"


@dataclass(frozen=True)
class Kind:
    """Turns text into a value; ``convert`` raises ``ValueError`` when the text is not what ``allowed`` says in words.

    ``schema`` says the same as a JSON Schema, as far as one can.
    """

    convert: Callable[[str], Any]
    allowed: str
    schema: Mapping[str, object] = field(default_factory=dict, compare=False)

    def __call__(self, text: str) -> Any:
        """The value. Raises ``ValueError``."""
        return self.convert(text)


class _Append(argparse.Action):
    """A flag that may be given again. What is given replaces the default, which argparse's own action would keep."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *_: Any) -> None:
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, [*([] if before is self.default or before is None else before), values])


class Flags(argparse.ArgumentParser):
    """A parser whose errors are one line; with ``environment`` its flag ``--process-ms`` defaults to ``PROCESS_MS``."""

    def __init__(self, prog: str, description: str | None = None, *, environment: bool = True) -> None:
        super().__init__(prog=prog, description=description)
        self._environment = environment
        self.defaults: Mapping[str, str] = {}  # by flag, before those of the program

    def flag(
        self,
        name: str,
        kind: Callable[[str], Any],
        default: object,
        text: str,
        allowed: str = "",
        *,
        optional: bool = False,
        many: bool = False,
    ) -> None:
        """Add ``--name``; ``kind`` turns text into a value and raises ``ValueError`` when it is not ``allowed``.

        Without a default it must be given unless it is ``optional``: then it is None, and ``text`` says what that means. With
        ``many`` it may be given again, and is a list. A ``kind`` that raises :class:`InputError` says itself what is shown and
        allowed.
        """
        variable = name.replace("-", "_").upper()
        allowed = allowed or getattr(kind, "allowed", "")

        def convert(value: str) -> Any:
            try:
                return kind(value)
            except (ValueError, OSError) as error:  # as a name that is too long for a file
                also = f" (also read from {variable})" if self._environment else ""
                given, may = (error.value, error.allowed) if isinstance(error, InputError) else (value, allowed)
                raise argparse.ArgumentTypeError(f"{shown(given)} is not allowed; allowed: {may}{also}") from None

        words = getattr(kind, "schema", {}).get("enum", ())
        given = os.environ.get(variable) if self._environment else self.defaults.get(name)
        start = default if given is None else given
        said = [variable] if self._environment else []
        if default is None:
            said += [] if optional else ["required"]
        else:
            said.append(f"default {'none' if default == '' else default}")
        if many and isinstance(start, str):  # argparse would leave one value where the command reads a list
            try:
                start = [convert(start)]
            except argparse.ArgumentTypeError as error:
                self.error(f"argument --{name}: {error}")
        action = self.add_argument(
            f"--{name}",
            action=_Append if many else "store",
            type=convert,
            default=start,
            required=start is None and not optional,
            help=f"{text} [{', '.join(said)}]" if said else text,
            metavar="|".join(words) or None,
        )
        if words:
            vars(action)["completer"] = lambda **_: words

    def serving(self, metrics_port: int) -> None:
        """Add where a program of a pod serves /metrics."""
        self.flag("pod-ip", str, "127.0.0.1", "address to serve /metrics on")
        self.flag("metrics-port", whole(0, 65_535), metrics_port, "port to serve /metrics on; 0 picks one", "0 to 65,535")

    @contextmanager
    def listening(self, port: int) -> Iterator[None]:
        """Turn a failure to bind within the block into one line that names the flag."""
        try:
            yield
        except OSError as error:
            self.error(f"argument --metrics-port: {port} is not allowed; allowed: a free port of --pod-ip ({error.strerror})")

    def words(self) -> Iterator[str]:
        """All flags, also those of its commands."""
        for action in self._actions:
            yield from action.option_strings
            for command in action.choices.values() if isinstance(action.choices, Mapping) else ():
                yield from command.words()

    def error(self, message: str) -> NoReturn:
        """Print the one line and exit with 2. That of a command begins as its other errors do."""
        if self._environment:
            self.exit(BAD_INPUT, f"{self.prog}: {one_line(message)}\n")
        unknown = re.match("unrecognized arguments: (--[^ =]+)", message)
        meant = closest(unknown[1], self.words()) if unknown else ""
        message += f"; did you mean {meant}?" if meant else ""
        message = re.sub("^the following arguments are required: (.*)", r"\1: missing", re.sub("^argument ", "", message))
        self.exit(BAD_INPUT, f"{NAME}: {one_line(f'command line: {message}')}\n")


def number(least: float, most: float) -> Kind:
    """Numbers within [least, most]."""

    def convert(text: str) -> float:
        value = float(text)
        if not least <= value <= most:
            raise ValueError(text)
        return value

    return Kind(convert, f"{least:,.10g} to {most:,.10g}", {"type": "number", "minimum": least, "maximum": most})


def whole(least: int, most: int) -> Kind:
    """Whole numbers within [least, most]."""

    def convert(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise ValueError(text)
        return value

    return Kind(convert, f"{least:,} to {most:,}", {"type": "integer", "minimum": least, "maximum": most})


def choice(*names: str) -> Kind:
    """One of ``names``."""

    def convert(text: str) -> str:
        if text not in names:
            raise ValueError(text)
        return text

    allowed = " or ".join(names) if len(names) == 2 else f"one of {', '.join(names)}"
    return Kind(convert, allowed, {"enum": [*names]})


def _url(text: str) -> str:
    from urllib.parse import urlsplit  # pods read their flags by this module, and no URL

    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:  # a port that is none raises
        raise ValueError(text)
    return text


URL = Kind(_url, "a URL such as http://localhost:9090")
SWITCH = choice("on", "off")
SEED = Kind(whole(0, 2**63 - 1), "a whole number from 0")
ANY = Kind(str, "any text")
