"""A Spark session for the ledger: offline, quiet, sized for two cores unless a master elsewhere is named."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession

from lab.components import jars
from lab.errors import LabFault
from lab.host import identity, processes, runs

# A ledger is short stages of new code: when there were 150, on 800,000 events, C2 cost more than it saved (31 s against 14 s).
# G1's own threads cost a tenth more CPU than one collector without any.
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_lock = threading.Lock()
_made: list[SparkSession] = []  # at most one: PySpark's own getActiveSession knows only the calling thread's
SHUFFLE_PARTITIONS = 8  # keeps a shuffled 20 M events at some 100 MB a task


def spark(master: str = "local[*]", heap: str = "2g", log_level: str = "fatal") -> SparkSession:
    """The session on ``master``, with the Kafka connector; a process has one, so a second call returns the first's.

    ``heap`` is the driver's, which on a local master does all the work. Nothing listens but Spark's own ports, on loopback
    when the master is local. ``log_level`` is log4j's: what goes wrong is raised, so Spark need not also print it. Raises
    :class:`LabFault` when there is no Java, no connector or Spark does not start.
    """
    with _lock:
        if not _made:
            _made.append(_start(master, heap, log_level))
        return _made[0]


def stop() -> None:
    """End this process's session, if there is one."""
    with _lock:
        while _made:
            _made.pop().stop()


def cancel() -> None:
    """End what this process's session is doing, if there is one: whoever waits for it gets an error."""
    for session in list(_made):
        for query in session.streams.active:
            query.stop()
        session.sparkContext.cancelAllJobs()


def _start(master: str, heap: str, log_level: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["JAVA_HOME"] = str(Path(jars.java(for_spark=True)).resolve().parent.parent)
    scratch = runs.open_run()
    atexit.register(processes.clear, scratch)  # before Spark registers its own, so it runs after it
    logging = scratch / "log4j2.properties"
    logging.write_text(jars.log4j(log_level))
    settings = {
        "spark.driver.memory": heap,
        "spark.jars": ",".join(map(str, jars.spark_kafka())),
        "spark.driver.extraJavaOptions": f"{_JVM} -Dlog4j2.configurationFile={logging}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
        }
    builder = SparkSession.builder.appName("elastic-lab ledger").master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        with identity.inherited(scratch):  # PySpark takes no other environment for its JVM
            return builder.getOrCreate()
    except Exception as error:
        raise LabFault(f"Spark on {master} did not start: {str(error).splitlines()[0]}") from error
    finally:
        # PySpark's handler cancels jobs first, and raises when Spark is gone: Ctrl-C would then leave a cluster half ended.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)
