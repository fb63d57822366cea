"""The images of the consumer's programs in other languages: franz-go's is one static binary, Java's is upon Kafka's own image.

Their entrypoint is the program, so each also stands for a user's own consumer, on a cluster that the lab did not make.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from lab.cluster import docker
from lab.cluster.images import catalog
from lab.cluster.images.make import LABEL, Recipe, binary_image, ensure_image, fingerprint
from lab.components import clients as programs
from lab.inputs.clients import FRANZ_GO, IMAGE, JAVA, program

IN_JAVA = """\
ARG BASE
FROM ${BASE}
COPY consumer-java /usr/bin/consumer-java
COPY classes /opt/elastic-lab/classes
COPY libs /opt/elastic-lab/libs
USER 65532:65532
ENTRYPOINT ["consumer-java"]
"""
FOLDER = "/usr/bin"  # on the PATH of Kafka's image, pulled or made here
IN_IMAGE = "/opt/elastic-lab"


def make(client: str, images: Mapping[str, str]) -> str:
    """Make the image of the program of ``client``, unless it is there; returns its name.

    ``images`` are a cluster's, by upstream's names. Raises :class:`LabFault` like :func:`lab.components.clients.ensure`.
    """
    return ensure_image(recipe(client, images))


def recipe(client: str, images: Mapping[str, str]) -> Recipe:
    """The image of the program of ``client``; its tag is the hash of its ingredients."""
    base = next(here for upstream, here in images.items() if catalog.made_here(upstream).startswith(f"{catalog.OURS}/kafka:"))
    digest = fingerprint(programs.key(), base, Path(__file__).read_text())
    image, path = f"{IMAGE}/{client}:{digest[:12]}", f"{FOLDER}/{program(client)}"
    if client == FRANZ_GO:
        own = [f"ENV PATH={FOLDER}"]
        return Recipe(image, digest, partial(binary_image, binary=program(client), path=path, changes=own))
    return Recipe(image, digest, partial(_java, base=base))


def _java(image: str, scratch: Path, made_of: str, *, base: str) -> None:
    classes, libraries = programs.in_java()
    context = scratch / "context"
    shutil.copytree(classes, context / "classes")
    (context / "libs").mkdir()
    for jar in libraries:
        shutil.copy(jar, context / "libs")
    path = f"{IN_IMAGE}/classes:{IN_IMAGE}/libs/*"
    start = context / program(JAVA)
    start.write_text(programs.script(["java", *programs.JVM, "-cp", path, programs.MAIN]))
    start.chmod(0o755)
    (context / "Dockerfile").write_text(IN_JAVA)
    docker.build(context, image, {"BASE": base}, {LABEL: made_of})
