"""What each extra of the installation adds, and the line for an installation that lacks it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lab.errors import InputError

# The extra that brings a module; what the core brings is in none. Of the first three each has those before it, and board has
# trial and play.
EXTRAS = {
    "records": ("filelock", "pandas", "platformdirs", "pyarrow", "pydantic"),
    "report": ("allure", "allure_commons", "altair", "jinja2", "markupsafe", "pytest", "vl_convert"),
    "trial": (
        "aiohttp", "confluent_kafka", "cryptography", "google", "grpc", "grpc_health", "kubernetes", "prometheus_api_client",
        "prometheus_client", "psutil", "pyspark", "pytest_kind", "requests", "urllib3",
    ),
    "play": ("dash", "flask", "werkzeug"),
    "board": ("grafana_foundation_sdk",),
    "scenarios": ("gevent", "locust"),
}  # fmt: skip
_ORDER = list(EXTRAS)
RECORDS = _ORDER[0]


class NotInstalled(InputError):
    """A module that an extra brings is not there. One line: which, and what installs it."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__("installation", module, None, f"pip install 'elastic-lab[{extra}]'")
        self.args = (f"{module} is not installed: {self.allowed}",)


@contextmanager
def needed(least: str = RECORDS) -> Iterator[None]:
    """Turn a module that is not installed, of those that an extra brings, into :class:`NotInstalled`.

    What is done takes the extra ``least`` at least: that one is named, and not a smaller one which the first module is in.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        for extra, modules in EXTRAS.items():
            if module in modules:
                raise NotInstalled(module, max(extra, least, key=_ORDER.index)) from None
        raise
