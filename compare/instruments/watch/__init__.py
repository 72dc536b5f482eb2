"""A step that is watched: where its bytes go over time, and what each line of its source costs.

The ledger has each byte of a step in a class, over time, and says why the engines differ in how many they hold. A
timeline (`compare.instruments.watch.tape` for the dynamic engine, `compare.instruments.watch.graph` for the static one)
knows every array by what it is for; tracemalloc and the operating system say whether it knows all of them
(`compare.instruments.watch.ledger`). What separates the engines are deterministic counts that differ in one
thing (`compare.instruments.watch.ledger`).

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

Of the lines each has its time, its bytes and the tensors kept for backward. In the dynamic engine a kernel of the
forward pass is of the line that runs, and one of the backward pass of the line whose gradient it computes. In the
static engine a kernel is of the line that its node came from; inside a fused group each kernel has its own. A
framework's adapter tells the line of each op of an eager step, if it can (`Ops.lines`). What no line has is
`elsewhere`. All is read in a step that is watched, apart from the steps that are timed.
"""

from compare import engines

ARMS = engines.ours()
"""The arms that a ledger is kept of: one graph each, over one example."""
