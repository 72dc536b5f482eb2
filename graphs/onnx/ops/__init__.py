"""The translations, a file for each kind of op. Importing it fills the table."""

from graphs.onnx.ops import (
    control,  # noqa: F401  (imported for what they enter)
    creation,  # noqa: F401
    elementwise,  # noqa: F401
    layers,  # noqa: F401
    losses,  # noqa: F401
    picking,  # noqa: F401
    pooling,  # noqa: F401
    quantized,  # noqa: F401
    recurrent,  # noqa: F401
    reductions,  # noqa: F401
    resizing,  # noqa: F401
    sampling,  # noqa: F401
    sequences,  # noqa: F401
    shapes,  # noqa: F401
    signal,  # noqa: F401
)
