"""Settings of the lab's programs: each is declared once, as a field of a dataclass, and everything else follows from that.

Field ``commit_interval_ms`` is flag ``--commit-interval-ms``, environment variable ``COMMIT_INTERVAL_MS``, a field of a
Workload, a part of the trial's identity and a line of docs/workload.md. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from lab.errors import InputError, report
from lab.flags import SWITCH, Flags, Kind
from lab.kafka.login import kafka_flags

if TYPE_CHECKING:  # a consumer's pod starts with this module, and needs no YAML
    from lab.inputs.scale import Scale

_KEY = "setting"


@dataclass(frozen=True)
class Scaling:
    """How a trial's scale changes a setting: ``apply`` to its value, and the same in words."""

    text: str
    apply: Callable[[Any, Scale], Any]


@dataclass(frozen=True)
class Setting:
    """One declared setting; :func:`setting` says what its parts are."""

    name: str
    default: Any
    kind: Kind
    text: str
    unit: str
    scaling: Scaling | None
    client: str

    @property
    def flag(self) -> str:
        """The flag's name, without its two hyphens."""
        return self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable's name."""
        return self.name.upper()

    @property
    def help(self) -> str:
        """The sentence with its unit."""
        return f"{self.text}, {self.unit}" if self.unit else self.text

    def convert(self, text: str) -> Any:
        """``text`` as plain data of the default's type. Raises ``ValueError`` when it is not allowed."""
        self.kind(text)
        return type(self.default)(text)

    def read(self, value: object, where: object) -> Any:
        """``value``, which a person wrote in YAML, as plain data. Reports an :class:`InputError` when it is not allowed."""
        if self.kind is SWITCH and isinstance(value, bool):  # to YAML an unquoted on is true
            value = ("off", "on")[value]
        try:
            return self.convert(str(value))
        except ValueError:
            unit = f" {self.unit}" if self.unit else ""
            report(InputError(where, self.name, value, f"{self.kind.allowed}{unit}"))
            return self.default

    def json_schema(self) -> dict[str, object]:
        """The JSON Schema of its value in YAML."""
        content = dict(self.kind.schema) or {"type": ["string", "number"]}
        if self.kind is SWITCH:  # to YAML 1.1 an unquoted on is true
            content = {"enum": ["on", "off", True, False]}
        return {"description": f"{self.help}; {self.kind.allowed}", "default": self.default, **content}

    def scaled(self, value: Any, scale: Scale) -> Any:
        """``value`` at ``scale``."""
        return self.scaling.apply(value, scale) if self.scaling else value


def setting(
    default: str | int | float, kind: Kind, text: str, unit: str = "", *, scaling: Scaling | None = None, client: str = ""
) -> Any:
    """Declare a dataclass field as a setting of the type of ``default``. ``kind`` checks it, ``text`` says what it is.

    ``unit`` is what it is counted in, ``client`` librdkafka's property that takes the value as it is.
    """
    made = Setting("", default, kind, text, unit, scaling, client)
    return field(default=default, metadata={_KEY: made})


def declared(owner: Any) -> Iterator[Setting]:
    """The settings of a dataclass, or of an instance of one, in the order of their declaration."""
    for one in fields(owner):
        if _KEY in one.metadata:
            yield replace(one.metadata[_KEY], name=one.name)


def add_flags(parser: Flags, owner: Any) -> None:
    """Give ``parser`` a flag, which may come from the environment, for each setting of ``owner``."""
    for one in declared(owner):
        parser.flag(one.flag, one.convert, one.default, one.help, one.kind.allowed)


def program(owner: Any, name: str, text: str | None, metrics_port: int, *, kafka: bool = True) -> Flags:
    """The flags of the program ``lab.programs.NAME``, whose settings ``owner`` declares and which ``text`` describes."""
    parser = Flags(prog=f"python -m lab.programs.{name}", description=text)
    if kafka:
        kafka_flags(parser)
    parser.serving(metrics_port)
    add_flags(parser, owner)
    return parser


def read(owner: Any, content: Mapping[str, Any], where: object) -> dict[str, Any]:
    """The settings in ``content`` as plain data. Reports an :class:`InputError` for each that is not allowed."""
    known = {one.name: one for one in declared(owner)}
    return {name: known[name].read(value, where) for name, value in content.items()}


def plain(given: Any) -> dict[str, Any]:
    """The settings of ``given`` by name, each of its default's type: 45 and 45.0 are one setting."""
    return {one.name: type(one.default)(getattr(given, one.name)) for one in declared(given)}


def environment(given: Any, owner: Any, scale: Scale) -> dict[str, str]:
    """The settings that ``owner`` declares, with the values of ``given`` at ``scale``, as environment variables."""
    return {one.variable: str(one.scaled(getattr(given, one.name), scale)) for one in declared(owner)}


def client(given: Any) -> dict[str, Any]:
    """The properties of librdkafka that are settings of ``given``."""
    return {one.client: getattr(given, one.name) for one in declared(given) if one.client}
