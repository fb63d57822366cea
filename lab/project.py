"""A project's own defaults: ``[tool.elastic-lab]`` in the nearest pyproject.toml, by the names of options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import InputError, closest, report, together

TABLE = "elastic-lab"
FILES = (".yaml", ".yml", ".json")  # a value that ends so is a file, seen from the folder of pyproject.toml
FOLDERS = ("results",)
USER_FILES = {"scaledobject": "ScaledObject", "profile": "traffic profile", "workload": "workload"}
# What commands take too. The scale of a session is none of it: most commands answer at real time.
COMMON = (
    *USER_FILES,
    *(
        "results",
        "hpa-sync-s",
        "pod-rate",
        "partitions",
        "topics",
        "balancer",
        "start-s",
    ),
    *("start-each-s", "stop-s", "notice-s", "round-s", "join-each-s", "in-flight-s", "objective-s", "tail-s"),
)


@dataclass(frozen=True)
class Project:
    """The ``values`` by option, such as "scale" or "start-s", each as text; ``file`` has them, None where there is none."""

    file: Path | None = None
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def common(self) -> dict[str, str]:
        """The values of what commands take too."""
        return {name: value for name, value in self.values.items() if name in COMMON}

    def check(self, known: tuple[str, ...]) -> None:
        """Raise :class:`InputError` for each name that is not ``known``."""
        with together():
            for name, value in self.values.items():
                if name not in known:
                    allowed = f"one of {', '.join(sorted(known))}"
                    report(InputError(self.file, f"[tool.{TABLE}] {name}", value, allowed, closest(name, known)))


def read(folder: Path) -> Project:
    """The defaults of the project that ``folder`` is in. Raises :class:`InputError` where they can't be used."""
    for above in (folder.absolute(), *folder.absolute().parents):
        if (file := above / "pyproject.toml").is_file():
            break
    else:
        return Project()
    import tomllib  # which few calls need

    text = ""
    try:
        text = file.read_text(encoding="utf-8")
        table = tomllib.loads(text)["tool"][TABLE]
    except (OSError, ValueError, LookupError, TypeError) as error:  # what else is in it is not the lab's to judge
        if isinstance(error, tomllib.TOMLDecodeError) and f"tool.{TABLE}" in text:
            raise InputError(file, f"[tool.{TABLE}]", str(error), "TOML") from None
        return Project()
    if not isinstance(table, dict):
        raise InputError(file, f"[tool.{TABLE}]", table, "a table of options")
    values = {}
    for name, value in table.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise InputError(file, f"[tool.{TABLE}] {name}", value, "text or a number")
        text = str(value)
        values[name] = str(above / text) if name in FOLDERS or text.endswith(FILES) else text
    return Project(file, values)
