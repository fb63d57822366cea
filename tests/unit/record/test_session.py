"""The Spark session leaves the process as it was."""

import signal

from lab.record.ledger import session as ledger_session


def test_ctrl_c_stays_pythons(session):
    """PySpark's own handler fails once Spark is stopped, and a teardown that Ctrl-C meets would end there."""
    assert session.range(3).count() == 3
    assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)  # the latter in a shell's background


def test_a_fault_names_the_jvms_reason():
    """Py4J's first line names a call and no cause; another error has one line."""
    py4j = "An error occurred while calling None.org.Context.\n: org.SparkException: 768 MiB/worker\n\tat org.Context"
    assert ledger_session.reason(RuntimeError(py4j)) == "org.SparkException: 768 MiB/worker"
    assert ledger_session.reason(RuntimeError("no Java")) == "no Java"
