"""Passes, each from a graph to a graph.

Read `pipeline` first: the passes in their order, and which of them keep every bit. `rewrite` is the one walk over a
graph that all of them use.
"""
