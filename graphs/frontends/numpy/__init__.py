"""NumPy's functions for both engines: what each is called on tensors and symbols, with NumPy's parameters."""
