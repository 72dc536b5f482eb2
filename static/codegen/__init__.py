"""A scheduled graph becomes straight-line Python that calls NumPy's kernels, and is bound to sizes.

Read `lowering` (a line for each node), then `kernels` (how a kernel is called, and the memory of large results) and
`groups` (a fused group as a loop over blocks). `binding` lays out the arena for sizes and makes the function to call.
"""
