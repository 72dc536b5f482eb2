"""The static engine: a function is traced to a fixed graph, compiled ahead of time, and run without Python."""

from static import (
    buckets,
    concat_gradient,  # noqa: F401  (imported for what it registers: a gradient in one go)
    control,  # noqa: F401  (the tracing of control flow)
    control_gradients,  # noqa: F401  (and its gradients)
    debug,
    memory,
)
from static.artifact import load
from static.compile import compile
from static.define import Graph
from static.executable import Executable
from static.functional import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from static.jit import Jitted, jit
from static.symbol import Symbol
from static.trace import trace

__all__ = [
    "Executable",
    "Graph",
    "Jitted",
    "Symbol",
    "buckets",
    "compile",
    "debug",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jit",
    "jvp",
    "load",
    "memory",
    "trace",
    "value_and_grad",
    "vjp",
]
