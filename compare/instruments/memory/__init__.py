"""Memory: the peak of a steady step, in NumPy's own allocations and as the operating system sees it."""
