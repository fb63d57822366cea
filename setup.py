"""The packages of the wheel: acceptance/, fixtures/, manifests/ and profiles/ stand beside lab/ and are installed inside it.

Alone their names would be anyone's. All else is in pyproject.toml, which can't add to the packages that it finds.
"""

from setuptools import find_packages, setup

BESIDE = ("acceptance", "fixtures", "manifests", "profiles")

setup(
    packages=[*find_packages(include=["lab", "lab.*"]), *(f"lab.{name}" for name in BESIDE)],
    package_dir={f"lab.{name}": name for name in BESIDE},
)
