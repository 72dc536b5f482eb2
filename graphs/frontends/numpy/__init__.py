"""NumPy's functions for both engines, with NumPy's parameters.

`protocol` answers calls of NumPy functions on tensors and symbols, and looks them up in the table of `functions`;
`statistics` and `linalg` are parts of that table. `protocol` also gives `import graphs as np` the names that the op
library does not have.
"""
