"""The static engine: a graph is traced and compiled once, then run."""
