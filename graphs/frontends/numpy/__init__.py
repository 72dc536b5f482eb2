"""NumPy's functions for both engines: what each is called on tensors and symbols, with NumPy's parameters.

`protocol` is asked by NumPy, and looks a function up in the table of `functions`; `statistics` and `linalg` are parts
of that table. `names` gives `import graphs as np` the names that the op library does not have.
"""
