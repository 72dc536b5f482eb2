"""The static engine: a function is traced to a fixed graph, compiled ahead of time, and run without Python."""

from static import debug, memory
from static.call import buckets
from static.call.compile import GraphBuilder, compile, export
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
from static.call.step import TrainingStep, trace_step
from static.convert import converted, plain, why
from static.trace import (  # noqa: F401
    changes,
    control,
    control_gradients,
    differentiate,
)
from static.trace.symbol import Symbol
from static.trace.tracing import trace

__all__ = [
    "Executable", "GraphBuilder", "Jitted", "Symbol", "TrainingStep", "buckets", "compile", "converted", "debug",
    "elementwise_grad", "export", "grad", "hessian", "hessian_vector_product", "hvp", "jacobian", "jit", "jvp", "load",
    "memory", "plain", "trace", "trace_step", "value_and_grad", "vjp", "why",
]  # fmt: skip
