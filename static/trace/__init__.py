"""A function becomes a graph: it runs once, on symbols, and each op appends a node.

Read `symbol` (a value that is not known yet, and the Python numbers of a loop), then `tracing` (the run that leaves the
graph). `differentiate` runs the gradient rules on symbols, which appends the backward pass. `control` traces branches
and bodies of loops to graphs of their own, and `control_gradients` differentiates them (`rounds` of a loop apart).
`views` says which values share memory, and `changes` what a change in place gives them. `known` has the values that
follow from constants, and `streams` refuses random numbers of Python's. `step` has the symbols of a training step,
which change as its tensors do.
"""
