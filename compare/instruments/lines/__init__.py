"""A step line by line of its source: the time, the bytes and the tensors kept for backward of each.

In the dynamic engine a kernel of the forward pass is of the line that runs, and one of the backward pass of the line
whose gradient it computes (`compare.instruments.lines.tape`). In the static engine a kernel is of the line that its
node came from; inside a fused group each kernel has its own (`compare.instruments.lines.graph`). A framework's adapter
tells the line of each op of an eager step, if it can (`Engine.lines`).

All is read in a step that is watched, apart from the steps that are timed. What no line has is `elsewhere`.
"""
