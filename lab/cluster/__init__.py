"""One protocol, two runtimes: a cluster of real components that trials run on."""
