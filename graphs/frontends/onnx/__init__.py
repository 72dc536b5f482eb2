"""ONNX models as functions over the op library: `graphs.onnx.load(path)`. Needs `graphduel[onnx]`.

`table` defines translations of ONNX ops, and the files in `ops/` fill it; `reading` reads a graph with it; `model` is
what users call.
"""

try:
    import onnx  # noqa: F401  (that it is there)
except ImportError as error:
    raise ImportError(f"graphs.onnx needs onnx ({error}); pip install 'graphduel[onnx]'") from error

from graphs.frontends.onnx.model import OnnxModel, load

__all__ = ["OnnxModel", "load"]
