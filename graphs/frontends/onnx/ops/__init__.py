"""The translations, a file for each kind of op. Importing it fills the table."""

from graphs.frontends.onnx.ops import (  # noqa: F401  (imported for what they enter)
    control,
    elementwise,
    layers,
    picking,
    pooling,
    quantized,
    reductions,
    resizing,
    shapes,
)
