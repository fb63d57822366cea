"""The process node: a kubelet stand-in that runs each pod's command as a process of this machine.

It registers a Node, runs the pods bound to it with a kubelet's lifecycle (probes, restarts, SIGTERM, grace, SIGKILL),
and serves logs and resource metrics over HTTPS. It refuses what it can't do, with a Warning Event and a Failed pod. It
never ignores a field that would have changed what the pod does (see :mod:`lab.kubelet.refusal`).

Accepted without effect, because nothing here could give it one:

- resource limits: a plain process has no cgroup, so ``limits`` are not enforced; ``requests`` count for scheduling;
- ``dnsPolicy`` and ``enableServiceLinks``: a process uses the machine's own resolver and gets no service variables;
- ``imagePullPolicy`` and ``imagePullSecrets``: an image is a folder of this machine, and there is nothing to pull.

``python -m`` of listed modules is not executed but forked from an interpreter that has imported what they import (see
:mod:`lab.kubelet.zygote`). A pod can't tell the difference, but for the time that its start takes.

A pod's address is its own 127.x.y.z, so its servers must bind to that address (``status.podIP``), not to 0.0.0.0.
"""
