"""The functions that users call: `compile`, `jit`, executables, transforms, shape policies and saved graphs.

Read `compile` (a function and specs become an executable), then `executable` (a call of it) and `containers` (how
arguments are read and results are built). `jit` compiles when it is called, and says why it compiled again; `policies`
and `buckets` decide for which sizes. `functional` has the gradients, `step` a whole training step of PyTorch's (whose
trace is in `training`), `backend` the choice between NumPy's kernels and machine code, `artifact` the file of a saved
graph.
"""
