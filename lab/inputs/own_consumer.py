"""A user's own consumer in the place of the lab's: its image, its command, its variables, and how much it tells.

What it finds in its environment is what the lab's consumer finds: BOOTSTRAP_SERVERS, TOPIC, GROUP and the others of
docs/your-consumer.md. ``$(NAME)`` in a variable of its own stands for one of these, as in any manifest.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.errors import InputError
from lab.flags import Kind

BLACK_BOX, REPORTS, RECEIPTS = RUNGS = ("black-box", "reports", "receipts")
POD_NAME = "POD_NAME"


def _command(text: str) -> str:
    shlex.split(text)
    return text


def _env(text: str) -> str:
    variables(text)
    return text


COMMAND = Kind(_command, "a command and its arguments, as a shell takes them, or a list of them")
ENV = Kind(_env, "a mapping of names to values, or NAME=value separated by blanks")


def variables(text: str) -> dict[str, str]:
    """The variables in ``text``, NAME=value as a shell takes them. Raises ``ValueError`` for anything else."""
    found = {}
    for word in shlex.split(text):
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(text)
        found[name] = value
    return found


def program(command: str, where: object) -> tuple[str, ...]:
    """The words of ``command``, with the path of its program. Raises :class:`InputError` where there is no such program."""
    if not command:
        raise InputError(where, "command", None, "a command, which stands for the image where pods are processes")
    name, *arguments = shlex.split(command)
    if (found := shutil.which(name)) is None:
        raise InputError(where, "command", name, "a program that is there, by its path or on PATH")
    return str(Path(found).absolute()), *arguments


def flat(content: Mapping[str, Any]) -> dict[str, Any]:
    """The ``content`` of a Workload file, with a command that is a list, and variables that are a mapping, as one text each.

    Who brings a consumer and does not say how much it tells has a black box.
    """
    made = dict(content)
    if isinstance(command := made.get("command"), list):
        made["command"] = shlex.join(map(str, command))
    if isinstance(env := made.get("env"), dict):
        made["env"] = shlex.join(f"{name}={_written(value)}" for name, value in env.items())
    if (made.get("command") or made.get("image")) and "rung" not in made:
        made["rung"] = BLACK_BOX
    return made


def _written(value: object) -> str:
    """A value of YAML as it was written."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
