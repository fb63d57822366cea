"""The Spark session leaves the process as it was."""

import signal


def test_ctrl_c_stays_pythons(session):
    """PySpark's own handler fails once Spark is stopped, and a teardown that Ctrl-C meets would end there."""
    assert session.range(3).count() == 3
    assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)  # the latter in a shell's background
