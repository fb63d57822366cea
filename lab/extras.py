"""What each extra of the installation adds, and the line for an installation that lacks it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lab.errors import InputError

# The extra that brings a module. The core brings numpy, pandas, pyarrow, yaml and platformdirs.
EXTRAS = {
    "trial": (
        "aiohttp", "confluent_kafka", "cryptography", "google", "grpc", "grpc_health", "kubernetes", "prometheus_api_client",
        "prometheus_client", "psutil", "pyspark", "pytest_kind", "requests", "urllib3",
    ),
    "report": ("allure", "allure_commons", "altair", "filelock", "pytest", "vl_convert"),
    "board": ("dash", "grafana_foundation_sdk", "werkzeug"),
    "scenarios": ("gevent", "locust"),
}  # fmt: skip


@contextmanager
def needed() -> Iterator[None]:
    """Turn a module that is not installed, of those that an extra brings, into one line: :class:`InputError`."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        for extra, modules in EXTRAS.items():
            if module in modules:
                raise InputError("installation", module, None, f"pip install 'elastic-lab[{extra}]'") from None
        raise
