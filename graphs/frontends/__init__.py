"""The op library under the names of other libraries, loaded at first use.

`numpy` gives NumPy's names to tensors and symbols. `torch` has PyTorch's functions and methods, which `dynamic` and
traces share. `onnx` reads models as functions.
"""
