"""A Spark session for the ledger: offline, quiet, sized for this machine's free memory unless a master elsewhere is named."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from lab.components import jars
from lab.errors import LabFault
from lab.host import identity, machine, processes, runs

# A ledger is short stages of new code: when there were 150, on 800,000 events, C2 cost more than it saved (31 s against 14 s).
# G1's own threads cost a tenth more CPU than one collector without any. A ledger of many millions runs the same code for
# minutes, and C2 pays. Its fetches fill the young generation within a second, and two threads collect that faster than one.
_SHORT, _LONG = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "-XX:+UseParallelGC"
GIB = 2**30
LEAST_HEAP, MOST_HEAP = 1 * GIB, 8 * GIB  # beyond it a ledger of 100 million gains nothing
SHARE = 4  # of the memory that is free the heap gets a part; Python's workers, Arrow and the page cache have the rest
BATCH = 100_000  # rows that go to a Python worker at a time: a call for each 10,000 costs half as much again
logging.getLogger("py4j").setLevel(logging.CRITICAL)  # what fails it raises too; the rest is how connections end
_lock = threading.Lock()
_cancelled: set[str] = set()  # the runs of queries
_made: list[SparkSession] = []  # at most one: PySpark's own getActiveSession knows only the calling thread's


def spark(master: str = "local[*]", heap: str | None = None, log_level: str = "fatal", *, long: bool = False) -> SparkSession:
    """The process's one session, on ``master``, with the Kafka connector; on a local one it listens on loopback only.

    ``heap`` is the driver's, by default a part of the free memory; ``long`` is for many millions of events. Raises
    :class:`LabFault` when there is no Java, no connector or Spark does not start.
    """
    with _lock:
        if not _made:
            part = min(max(machine.available_bytes() // SHARE, LEAST_HEAP), MOST_HEAP)
            _made.append(_start(master, heap or f"{part // 2**20}m", log_level, long))
        return _made[0]


def stop() -> None:
    """End this process's session, if there is one."""
    with _lock:
        while _made:
            _made.pop().stop()


def cancel() -> None:
    """End what this process's session is doing, if there is one. Its jobs raise an error.

    A query that is stopped ends like one that is through: :func:`was_cancelled` tells them apart.
    """
    for session in list(_made):
        for query in session.streams.active:
            _cancelled.add(str(query.runId))
            query.stop()
        session.sparkContext.cancelAllJobs()


def was_cancelled(query: StreamingQuery) -> bool:
    """Whether ``query``, which has ended, was ended by :func:`cancel`."""
    return str(query.runId) in _cancelled


def _start(master: str, heap: str, log_level: str, long: bool) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["JAVA_HOME"] = str(Path(jars.java(for_spark=True)).resolve().parent.parent)
    scratch = runs.open_run()
    atexit.register(processes.clear, scratch)  # before Spark registers its own, so it runs after it
    log4j = scratch / "log4j2.properties"
    log4j.write_text(jars.log4j(log_level))
    jvm = _LONG if long else _SHORT
    settings = {
        "spark.driver.memory": heap,
        "spark.driver.maxResultSize": "0",  # the ends of millions of receipts
        "spark.jars": ",".join(map(str, jars.spark_kafka())),
        "spark.driver.extraJavaOptions": f"{jvm} -Dlog4j2.configurationFile={log4j} -Djava.io.tmpdir={scratch}",
        "spark.executor.extraJavaOptions": jvm,  # of workers elsewhere; a local master has none
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH),
    }
    if master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if master.startswith("local-cluster"):  # its workers are processes that look for this machine's address
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ["SPARK_WORKER_DIR"] = str(scratch / "work")
    elif master.startswith("local"):  # by a secret that Spark makes for itself: a port on loopback is open to every local user
        settings["spark.authenticate"] = "true"
    builder = SparkSession.builder.appName("elastic-lab ledger").master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        with identity.inherited(scratch):  # PySpark takes no other environment for its JVM
            return builder.getOrCreate()
    except Exception as error:
        raise LabFault(f"Spark on {master} did not start: {reason(error)}") from error
    finally:
        # PySpark's handler cancels jobs first, and raises when Spark is gone: Ctrl-C would then leave a cluster half ended.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)


def reason(error: Exception) -> str:
    """The line with the JVM's exception, which Py4J puts second and after a colon, or the only line there is."""
    lines = str(error).splitlines()
    return next((line[2:] for line in lines[1:] if line.startswith(": ")), lines[0])
