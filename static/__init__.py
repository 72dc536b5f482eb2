"""The static engine: a function is traced to a fixed graph, compiled ahead of time, and run without Python."""

from static import (
    control,  # noqa: F401  (imported for what it registers: the tracing of control flow)
    memory,
)
from static.artifact import load
from static.compile import compile
from static.differentiate import grad, value_and_grad
from static.executable import Executable
from static.jit import Jitted, jit
from static.symbol import Symbol
from static.trace import trace

__all__ = [
    "Executable",
    "Jitted",
    "Symbol",
    "compile",
    "grad",
    "jit",
    "load",
    "memory",
    "trace",
    "value_and_grad",
]
