"""PyTorch's own database of ops, run against the dynamic engine: `python -m tests.peers.opdb --help`.

samples.py       what is called: every sample of an op, in every way
sides.py         one call in one framework
comparing.py     whether both gave the same
adjudicated.py   where they differ on purpose, and why
running.py       many ops, side by side
"""
