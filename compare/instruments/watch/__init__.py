"""Instruments that watch a step: where its bytes go over time, and what each line of its source costs.

The ledger puts each byte of a step into a class, over time, and tells why the engines differ in how many they hold. A
timeline (`compare.instruments.watch.tape` for the dynamic engine, `compare.instruments.watch.graph` for the static one)
classifies every array by its purpose; tracemalloc and the operating system show whether it has all of them. The
difference of the engines is split by deterministic counts, each of which differs from the last in one thing
(`compare.instruments.watch.ledger`).

parameters   the arguments of a step; the same arrays in both engines
structure    the graph or the tape as Python objects, with generated code; of NumPy data, the constants of a graph
plan         Python objects of the memory plan
activations  results of the forward pass that backward does not need
saved        results of the forward pass that are kept for backward
gradients    the results of a step
workspace    cotangents on their way, and memory that kernels need while they run
caches       bytes that an engine holds between steps beside these
slack        bytes of the arena in which nothing lives at that moment
untold       bytes of NumPy data that the ledger does not know

Each line has its time, its bytes and the tensors kept for backward. In the dynamic engine a kernel of the forward pass
belongs to the line that runs, and one of the backward pass to the line whose gradient it computes. In the static
engine a kernel belongs to the line that its node came from; inside a fused group each kernel has its own. A
framework's adapter tells the line of each op of an eager step, if it can (`Ops.lines`). The rest is `elsewhere`. All
this is read in a step that is watched, apart from the steps that are timed.
"""

from compare import engines

MODES = engines.ours()
"""The modes that have a ledger, with one graph each, over one example."""
