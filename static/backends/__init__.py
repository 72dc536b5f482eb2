"""Backends: what turns a graph into something that runs. NumPy's kernels are the default; see `choice`."""
