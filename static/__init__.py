"""The static engine: a function is traced to a fixed graph, compiled ahead of time, and run without Python."""

from static import debug, memory
from static.call import buckets
from static.call.compile import compile, export
from static.call.define import GraphBuilder
from static.call.executable import Executable, load
from static.call.functional import (
    elementwise_grad,
    grad,
    hessian,
    hessian_vector_product,
    hvp,
    jacobian,
    jvp,
    value_and_grad,
    vjp,
)
from static.call.jit import Jitted, jit
from static.convert import converted, plain, why
from static.trace import (
    concat_gradient,  # noqa: F401  (imported for what it registers: a gradient in one go)
    control,  # noqa: F401  (the tracing of control flow)
    control_gradients,  # noqa: F401  (and its gradients)
)
from static.trace.symbol import Symbol
from static.trace.tracing import trace

__all__ = [
    "Executable",
    "GraphBuilder",
    "Jitted",
    "Symbol",
    "buckets",
    "compile",
    "converted",
    "debug",
    "elementwise_grad",
    "export",
    "grad",
    "hessian",
    "hessian_vector_product",
    "hvp",
    "jacobian",
    "jit",
    "jvp",
    "load",
    "memory",
    "plain",
    "trace",
    "value_and_grad",
    "vjp",
    "why",
]
