"""An ONNX file in the place of a Python file: a module with its model, and calls made from what the model takes."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from compare.errors import InputsError
from graphs.errors import GraphError
from graphs.spec import TensorSpec

SUFFIX, MODEL = ".onnx", "model"
OPEN_SIZE = 8
"""What a size is that the model leaves open."""


def module_of(path: Path, name: str) -> ModuleType:
    """The module of that name. Raises InputsError where the model cannot be read, or takes what is no tensor."""
    try:
        from graphs.onnx import load

        model = load(path)
    except (ImportError, GraphError) as error:
        raise InputsError(f"{path.name}: {error}") from None
    model.__module__, model.__qualname__ = name, MODEL  # by which a worker finds it
    module = ModuleType(name)
    module.__file__ = str(path)
    rng = np.random.default_rng(0)
    call = tuple(_made(rng, label, spec) for label, spec in model.inputs.items())
    vars(module).update({MODEL: model, "inputs": [call]})
    return module


def _made(rng: np.random.Generator, label: str, spec: TensorSpec | None) -> Any:
    """Normal numbers, zeros and ones, or bools: small integers are places that most tables have."""
    if spec is None:
        raise InputsError(f"the input {label} of the model is no tensor; write a function in Python that calls it")
    shape = [size if isinstance(size, int) else OPEN_SIZE for size in spec.shape]
    values = rng.standard_normal(shape) if spec.is_float else rng.integers(0, 2, shape)
    return np.asarray(values).astype(spec.dtype)
