"""Code generators: each turns a scheduled graph into a Program. The default calls NumPy kernels."""
