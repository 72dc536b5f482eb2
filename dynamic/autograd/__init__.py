"""`torch.autograd`: gradients of tensors, functions with a backward of the user's own, and `functional`."""

from __future__ import annotations

from typing import Any

from dynamic import node
from dynamic.anomaly import is_anomaly_enabled, set_detect_anomaly
from dynamic.anomaly import nan_in_gradients as detect_anomaly
from dynamic.autograd import functional
from dynamic.autograd.function import Function
from dynamic.autograd.functional import gradcheck, gradgradcheck
from dynamic.checkpoint import save_on_cpu, saved_tensors_hooks
from dynamic.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from dynamic.gradients import backward as _backward
from dynamic.gradients import grad_of
from dynamic.paths import file_of, submodule
from dynamic.tensor import Tensor, as_array, wrap
from graphs.errors import GraphError, locate
from graphs.ops.creation import zeros_like
from graphs.ops.movement import stop_gradient
from graphs.surface import Surface

__all__ = [
    "Function", "Variable", "backward", "detect_anomaly", "enable_grad", "forward_ad", "functional", "grad",
    "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_anomaly_enabled", "no_grad", "set_detect_anomaly",
    "set_grad_enabled",
]  # fmt: skip

graph = file_of(
    __name__,
    "graph",
    {
        "Node": node.Node,
        "register_multi_grad_hook": node.register_multi_grad_hook,
        "save_on_cpu": save_on_cpu,
        "saved_tensors_hooks": saved_tensors_hooks,
    },
)
forward_ad = file_of(
    __name__,
    "forward_ad",
    {name: getattr(functional, name) for name in ("UnpackedDualTensor", "dual_level", "make_dual", "unpack_dual")},
)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of the outputs, summed, in each input: `dynamic.grad_of` with PyTorch's parameters.

    `only_inputs` changes nothing, as in PyTorch. Raises GraphError for batched cotangents, and what `grad_of` raises.
    """
    del only_inputs
    if is_grads_batched:
        raise GraphError(locate("grad: is_grads_batched is not supported; call grad for each cotangent"))
    roots, sources = [[value] if isinstance(value, Tensor) else list(value) for value in (outputs, inputs)]
    if hasattr(roots[0], "gradients"):  # a symbol, where a trace differentiates inside
        may_be_none = bool(allow_unused) or materialize_grads
        gradients: tuple[Any, ...] = roots[0].gradients(roots, sources, grad_outputs, may_be_none=may_be_none)
        if not create_graph:
            gradients = tuple([None if g is None else stop_gradient(g) for g in gradients])
        if materialize_grads:
            gradients = tuple([zeros_like(x) if g is None else g for g, x in zip(gradients, sources, strict=True)])
        return gradients
    return grad_of(
        roots, sources, grad_outputs, retain_graph=retain_graph, create_graph=create_graph, allow_unused=allow_unused,
        materialize_grads=materialize_grads,
    )  # fmt: skip


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradient of tensors to the `grad` of every leaf that they depend on, or of `inputs` alone."""
    _backward(tensors, grad_tensors, retain_graph=retain_graph, create_graph=create_graph, inputs=inputs)


def Variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Tensor:  # noqa: N802  (PyTorch's name)
    """A tensor that shares the memory of `data`: since PyTorch 0.4 variables are tensors."""
    del volatile
    held: Any = data if isinstance(data, Surface) else wrap(as_array(data, None))  # also a symbol of a graph
    return held.detach().requires_grad_() if requires_grad else held


def __getattr__(name: str) -> object:
    return submodule(__name__, name)
