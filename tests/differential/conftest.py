"""The option of a longer search."""


def pytest_addoption(parser):
    """How many walks are run."""
    parser.addoption("--walks", type=int, metavar="N", help="walks of the differential run (default: 20; 80 when thorough)")
