"""The machine that the lab runs on: its processes and runs, its locks, its disk, and what a record says of it."""
