"""PyTorch: the adapter, its compilers, its control flow, a step, and its functions by our names."""
