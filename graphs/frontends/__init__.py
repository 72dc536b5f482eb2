"""Words of other libraries for the one op library, loaded when they are asked for.

`numpy` gives NumPy's names to tensors and symbols, `torch` PyTorch's functions and methods, which `dynamic` and traces
share, and `onnx` reads models as functions.
"""
