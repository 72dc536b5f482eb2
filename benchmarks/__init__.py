"""What the engines cost beside hand-written NumPy and beside peers: `python -m benchmarks.table`, or pytest."""
