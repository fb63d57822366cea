"""``python -m lab.kubelet``: run the process node until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import signal
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lab import paths
from lab.errors import InputError, LabFault
from lab.kubelet import environment, registration, server
from lab.kubelet.agent import Addresses, Agent, end_leftovers
from lab.kubelet.api import ApiServer, Sources, read_kubeconfig
from lab.kubelet.container import Tools
from lab.kubelet.events import Recorder
from lab.kubelet.forking import Zygote
from lab.kubelet.podspec import Images
from lab.kubelet.probe import Prober

log = logging.getLogger("lab.node")


@dataclass(frozen=True)
class Settings:
    """The command line, checked."""

    kubeconfig: Path
    name: str
    port: int
    pod_network: str
    run: Path
    tls_cert: Path
    tls_key: Path
    client_ca: Path
    images: Images
    fork: tuple[Path, tuple[str, ...]] | None
    backoff_base_s: float


def settings(arguments: list[str]) -> Settings:
    """Read and check the command line. Raises :class:`InputError` for a value that can't be used."""
    parser = argparse.ArgumentParser(prog="python -m lab.kubelet", description="Run pods as processes of this machine.")
    files = {"kubeconfig": None, "tls-cert": None, "tls-key": None, "client-ca": "clients must have a certificate signed by it"}
    for option, help_ in files.items():
        parser.add_argument(f"--{option}", required=True, type=Path, help=help_)
    parser.add_argument("--name", required=True, help="the Node's name")
    parser.add_argument("--port", required=True, type=int, help="of the HTTPS server on 127.0.0.1")
    parser.add_argument("--pod-network", required=True, help="a /16 of the loopback network, as 127.77")
    parser.add_argument("--run", required=True, type=Path, help="folder for logs and pid files")

    what = "an image and its executables"
    parser.add_argument("--image", required=True, action="append", dest="images", metavar="PREFIX=BINDIR", help=what)
    which = "modules whose python -m is forked from one interpreter of that image, which has imported what they import"
    parser.add_argument("--fork", metavar="PREFIX=MODULE,MODULE", help=which)
    parser.add_argument("--backoff-base-s", type=float, default=10.0, help="first wait of CrashLoopBackOff (default 10)")
    given = parser.parse_args(arguments)
    where = "command line"
    if not re.fullmatch(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?", given.name):
        raise InputError(where, "--name", given.name, "a DNS name in lower case")
    if not 0 < given.port < 65536:
        raise InputError(where, "--port", given.port, "1 to 65535")
    parts = re.fullmatch(r"127\.([0-9]{1,3})", given.pod_network)
    if not parts or not 1 <= int(parts[1]) <= 255:
        raise InputError(where, "--pod-network", given.pod_network, "127.1 to 127.255")
    if given.backoff_base_s <= 0:
        raise InputError(where, "--backoff-base-s", given.backoff_base_s, "more than 0")
    for option in files:
        file: Path = getattr(given, option.replace("-", "_"))
        if not file.is_file():
            raise InputError(where, f"--{option}", str(file), "a file that exists")
    folders = {}
    for image in given.images:
        prefix, _, folder = image.partition("=")
        if not prefix or not folder or not Path(folder).is_dir():
            raise InputError(where, "--image", image, "PREFIX=BINDIR with a folder that exists")
        folders[prefix] = Path(folder).absolute()
    fork = None
    if given.fork is not None:
        prefix, _, listed = given.fork.partition("=")
        modules = tuple(listed.split(","))
        if prefix not in folders or not all(re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", module) for module in modules):
            raise InputError(where, "--fork", given.fork, "PREFIX=MODULE,MODULE with the prefix of an --image")
        fork = (folders[prefix], modules)
    return Settings(**vars(given) | {"run": given.run.absolute(), "images": Images(folders), "fork": fork})


async def run(chosen: Settings) -> None:
    """Run the node until a signal. Raises the error that made it impossible to go on."""
    loop = asyncio.get_running_loop()
    if sys.version_info < (3, 12):  # later Pythons choose this watcher by themselves: it needs no thread for each process
        watcher = asyncio.PidfdChildWatcher()
        watcher.attach_loop(loop)
        asyncio.set_child_watcher(watcher)
    over: asyncio.Future[None] = loop.create_future()

    def finish(error: BaseException | None = None) -> None:
        if not over.done():
            if error is None:
                over.set_result(None)
            else:
                over.set_exception(error)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, finish)
    left = end_leftovers(chosen.run)
    if left:
        log.warning("ended %d processes that an earlier node process had left", left)
    address, context = read_kubeconfig(chosen.kubeconfig)
    since = datetime.now(UTC)
    async with ApiServer(address, context) as api:
        events = Recorder(api, chosen.name)
        # An image contains its jars; a process finds the jars that the lab has fetched.
        prober, around = Prober(chosen.run), environment.service(address) | {"ELASTIC_LAB_CACHE": str(paths.cache_dir())}
        zygote = Zygote(chosen.run, *chosen.fork) if chosen.fork else None
        tools = Tools(api, Sources(api), events, prober, chosen.images, chosen.run, chosen.backoff_base_s, around, zygote)
        agent = Agent(tools, Addresses(chosen.pod_network), finish)
        https = server.Server(agent.pods, server.tls(chosen.tls_cert, chosen.tls_key, chosen.client_ca), chosen.port)

        async def follow() -> None:
            async for change in api.pods(chosen.name):
                agent.apply(change)

        tasks: list[asyncio.Task[None]] = []
        try:
            if zygote:
                zygote.start()
            await https.start()
            tasks.append(asyncio.create_task(registration.register(api, chosen.name, chosen.port, since)))
            await asyncio.wait({tasks[0], over}, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0].done():
                tasks[0].result()
                log.info("node %s is registered; pods get addresses in %s.0.0/16", chosen.name, chosen.pod_network)
            for work in (registration.keep(api, chosen.name, chosen.port, since), events.run(), follow()):
                tasks.append(asyncio.create_task(work))
                tasks[-1].add_done_callback(lambda task: None if task.cancelled() else finish(task.exception()))
            await over
        finally:
            for task in tasks:
                task.cancel()
            await agent.stop()
            if zygote:
                zygote.stop()
            await https.stop()


def main() -> int:
    """Run the node as the command line says; bad input gives one line and code 2, a fault one line and code 1."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    try:
        asyncio.run(run(settings(sys.argv[1:])))
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    except (LabFault, OSError) as fault:
        print(fault, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
