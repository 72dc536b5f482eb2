"""The op library under the names of other libraries, loaded at first use.

`numpy` gives NumPy's names to tensors and symbols. `torch` has PyTorch's functions and methods, which `dynamic` and
traces share. `onnx` reads models as functions. `einops` lets einops work on values of both engines.
"""

from graphs.frontends import einops as _einops  # noqa: F401  (it waits for einops to be imported)
