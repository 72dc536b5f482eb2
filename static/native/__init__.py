"""The native backend: machine code for exactly this graph, made by LLVM, with NumPy's kernels for the rest.

A graph goes through these files in this order:

    grouping     elementwise ops and reductions over one iteration space become one node, a group
    program      the scheduled graph as Python that calls NumPy's kernels and segments, which are runs of native nodes
    work         which kernels (`recipes`) run on which places (`placement`), and which errors they raise
    groups       a recipe becomes loop IR (`ir`): groups row by row, with `functions` for each op, of which `series` has
                 the long ones; `products` in tiles, `convolutions` with their `weight_gradients` over windows,
                 `pooling`, `picking` by positions
    emit         loop IR as LLVM IR; `link` makes it machine code, which `target` keeps on disk
    cores        a long kernel as several calls, which the threads of a `pool` share; `flow` has loops and branches
    binding      the segment as one function that Python calls: a table of addresses and a list of kernels. Its code is
                 in `entry` and `drivers`; `layouts` says where they find the fields that they read

`static` imports none of this before somebody asks for the backend.
"""
