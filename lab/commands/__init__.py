"""The commands of ``elastic-lab``, one module each."""
