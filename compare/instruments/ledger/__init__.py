"""The ledger: each byte of a step in a class, over time, and why the engines differ in how many they hold.

A timeline (`compare.instruments.ledger.tape` for the dynamic engine, `compare.instruments.ledger.graph` for the static
one) knows every array by what it is for; tracemalloc and the operating system say whether it knows all of them
(`compare.instruments.ledger.measure`). What separates the engines are deterministic counts that differ in one
thing (`compare.instruments.ledger.attribution`).

parameters   what a step is given; the same arrays in both engines
structure    the graph or the tape as Python objects, with generated code; of NumPy data, the constants of a graph
plan         Python objects of the memory plan
activations  results of the forward pass that backward does not need
saved        results of the forward pass that are kept for backward
gradients    what a step hands out
workspace    cotangents on their way, and what kernels need while they run
caches       what an engine holds between steps beside these
slack        bytes of the arena in which nothing lives at that moment
untold       bytes of NumPy data that the ledger knows nothing about
"""

from compare import engines

ARMS = engines.ours()
"""The arms that a ledger is kept of: one graph each, over one example."""
