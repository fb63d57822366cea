"""The hand-rolled controller as a program: it reads a group's lag and patches its Deployment, in place of KEDA and the HPA."""
