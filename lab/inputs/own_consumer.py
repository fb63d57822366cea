"""A user's own consumer in the place of the lab's: its image, its command, its variables, and how much it tells.

What it finds in its environment is what the lab's consumer finds: BOOTSTRAP_SERVERS, TOPIC, GROUP and the others of
docs/your-consumer.md. ``$(NAME)`` in a variable of its own stands for one of these, as in any manifest.
"""

from __future__ import annotations

import copy
import json
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.errors import InputError
from lab.flags import Kind
from lab.kafka import forms

BLACK_BOX, REPORTS, RECEIPTS = RUNGS = ("black-box", "reports", "receipts")
POD_NAME = "POD_NAME"
PROCESSES = "binary"  # the runtime whose pods are processes of this machine
EXISTING = "existing"
OFF = "producer/off"  # the driver of a trial whose traffic is the user's own too
SETTINGS = "KAFKA_SETTINGS"  # a login as JSON
LOGIN = {"KAFKA_USERNAME": "username", "KAFKA_PASSWORD": "password"}  # its parts by themselves, and their keys in its Secret
_SCRAPED = "prometheus.io/"


def login_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """The variables in which a consumer finds the login of these ``settings`` of librdkafka; none without one."""
    if not settings:
        return {}
    parts = forms.keda(settings)
    return {SETTINGS: json.dumps(dict(settings)), **{name: parts[key] for name, key in LOGIN.items() if key in parts}}


def _command(text: str) -> str:
    shlex.split(text)
    return text


def _env(text: str) -> str:
    variables(text)
    return text


COMMAND = Kind(_command, "a command and its arguments, as a shell takes them, or a list of them")
_NAME = re.compile(r"[-._A-Za-z][-._A-Za-z0-9]*")  # Kubernetes: validation.IsEnvVarName
ENV = Kind(_env, "a mapping of names (letters, digits, -, _ and .) to texts, or NAME=value separated by blanks")


def variables(text: str) -> dict[str, str]:
    """The variables in ``text``, NAME=value as a shell takes them. Raises ``ValueError`` for anything else."""
    found = {}
    for word in shlex.split(text):
        name, equals, value = word.partition("=")
        if not equals or not _NAME.fullmatch(name):
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
    if isinstance(env := made.get("env"), dict) and not any(isinstance(value, dict | list) for value in env.values()):
        made["env"] = shlex.join(f"{name}={_written(value)}" for name, value in env.items())
    if (made.get("command") or made.get("image")) and "rung" not in made:
        made["rung"] = BLACK_BOX
    return made


def _written(value: object) -> str:
    """A value of YAML as it was written."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def check(command: str, image: str, runtime: str, driver: str = "") -> None:
    """Raise :class:`InputError` for a consumer of one's own, if there is one, that can't be started on ``runtime``.

    The traffic of ``driver`` may be the user's own only on a cluster of theirs, and only their consumer can read it.
    """
    if driver == OFF and runtime != EXISTING:
        raise InputError("trial", "driver", driver, f"any other on {runtime}: your own traffic is on an existing cluster")
    if driver == OFF and not (command or image):
        raise InputError("trial", "driver", driver, "any other with the lab's consumer, which reads the lab's events alone")
    if runtime == PROCESSES and (command or image):
        program(command, "trial")
    elif command and not image:
        where = "an existing cluster" if runtime == EXISTING else runtime
        raise InputError("trial", "image", None, f"an image of your own consumer on {where}, where pods are containers")


def put(deployment: Mapping[str, Any], *, command: str, image: str, env: str, rung: str, runtime: str) -> dict[str, Any]:
    """The lab's consumer ``deployment`` with a user's consumer in it.

    Where pods are processes it is the ``command``, run in this process's folder with its PATH; elsewhere it is the ``image``,
    with its own entrypoint. Probes, port, metrics and the limit of memory were for the lab's consumer, and go.
    """
    made = copy.deepcopy(dict(deployment))
    template = made["spec"]["template"]
    annotations = template["metadata"]["annotations"]
    template["metadata"]["annotations"] = {name: one for name, one in annotations.items() if not name.startswith(_SCRAPED)}
    (container,) = template["spec"]["containers"]
    for field in ("command", "livenessProbe", "ports", "readinessProbe"):
        del container[field]
    del container["resources"]["limits"]["memory"]
    own = variables(env)
    if rung == BLACK_BOX:  # the observer reports: nothing is to be reported twice
        own = {"REPORTS_TOPIC": ""} | own
    if runtime == PROCESSES:
        container |= {"command": list(program(command, "trial")), "workingDir": str(Path.cwd())}
        own = {"PATH": os.environ.get("PATH", os.defpath)} | own
    else:
        container["image"] = image
    secret = next(one for one in container["env"] if one["name"] == SETTINGS)["valueFrom"]["secretKeyRef"]
    login = {name: secret | {"key": key} for name, key in LOGIN.items()}
    container["env"] += [{"name": name, "valueFrom": {"secretKeyRef": key}} for name, key in login.items()]
    container["env"] += [{"name": POD_NAME, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    container["env"] += [{"name": name, "value": value} for name, value in own.items()]
    return made
