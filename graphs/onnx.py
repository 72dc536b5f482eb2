"""ONNX models as functions over the op library: `graphs.onnx.load(path)`. Needs `graphduel[onnx]`."""

from graphs.frontends.onnx import OnnxModel, load

__all__ = ["OnnxModel", "load"]
