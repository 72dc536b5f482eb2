"""A scheduled graph becomes straight-line Python that calls NumPy kernels, and is bound to sizes."""
