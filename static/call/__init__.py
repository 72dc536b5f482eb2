"""What the user calls: `compile`, `jit`, executables, transforms, shape policies and saved graphs.

Read `compile` (a function and specs become an executable), then `executable` (what a call does) and `containers` (how
arguments and results are read and built). `jit` compiles when it is called, and says why once more; `policies`,
`buckets` and `widening` say for which sizes. `functional` has the gradients, `step` a whole training step of PyTorch's,
`backend` the choice between NumPy's kernels and machine code, `artifact` the file of a saved graph, `stepping` what a
debugger waits with.
"""
