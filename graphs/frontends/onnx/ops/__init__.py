"""The translations, one file for each kind of op; importing this package fills the table."""

from graphs.frontends.onnx.ops import control, elementwise, layers, pooling, shapes  # noqa: F401  (they fill the table)
