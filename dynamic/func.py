"""`torch.func`: transforms of functions. `vmap` runs the function once for each row, and stacks what it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamic import functional
from graphs import tree
from graphs.errors import GraphError, ShapeError, locate
from graphs.frontends.torch.functions import stack

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "stack_module_state", "vjp", "vmap",
]  # fmt: skip

Function = Callable[..., Any]


def grad(func: Function, argnums: Any = 0, has_aux: bool = False) -> Function:
    """The function that returns the gradient of `func`, a scalar function."""
    return functional.grad(func, argnums, has_aux)


def grad_and_value(func: Function, argnums: Any = 0, has_aux: bool = False) -> Function:
    """The function that returns the gradient and the value."""
    both = functional.value_and_grad(func, argnums, has_aux)

    def wrapper(*args: Any, **named: Any) -> Any:
        value, gradient = both(*args, **named)
        return gradient, value

    return wrapper


def jacrev(func: Function, argnums: Any = 0) -> Function:
    """The function that returns the jacobian."""
    return functional.jacobian(func, argnums)


jacfwd = jacrev


def hessian(func: Function, argnums: Any = 0) -> Function:
    """The function that returns the second derivatives."""
    return functional.hessian(func, argnums)


def vjp(func: Function, *primals: Any) -> Any:
    """The outputs, and the function that pulls a cotangent back to the inputs."""
    return functional.vjp(func, *primals)


def jvp(func: Function, primals: Any, tangents: Any) -> Any:
    """The outputs, and the derivative along tangents."""
    return functional.jvp(func, primals, tangents)


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """The outputs, and the function from tangents to the derivative of the outputs along them."""
    return func(*primals), lambda *tangents: functional.jvp(func, primals, tangents)[1]


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters, and the buffers, of modules of one class, each stacked along a new first axis.

    They are what `vmap` of `functional_call` takes. Raises GraphError for no module, or for modules of several classes.
    """
    if len({*map(type, models)}) != 1:
        raise GraphError(locate("stack_module_state: give modules, all of one class; stack others one by one"))
    parameters = _stack_states([dict(model.named_parameters()) for model in models])
    requires = [parameter.requires_grad for parameter in models[0].parameters()]
    for value, wants in zip(parameters.values(), requires, strict=True):
        value.requires_grad_(wants)
    return parameters, _stack_states([dict(model.named_buffers()) for model in models])


def _stack_states(states: Any) -> dict[str, Any]:
    return {name: stack([state[name].detach() for state in states]) for name in states[0]}


def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Any = None) -> Any:
    """A module called with other parameters and buffers."""
    from dynamic.nn import utils

    return utils.stateless.functional_call(module, parameter_and_buffer_dicts, args, kwargs)


def vmap(
    func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: Any = None
) -> Function:
    """Map the function over rows: each argument is cut along its axis in `in_dims`; None keeps it whole.

    Keyword arguments stay whole. Raises ShapeError where arguments have different numbers of rows.
    """
    del randomness, chunk_size

    def wrapper(*args: Any, **named: Any) -> Any:
        dims = in_dims if isinstance(in_dims, (tuple, list)) else [in_dims] * len(args)
        rows = [_rows(arg, dim) for arg, dim in zip(args, dims, strict=True)]
        counts = {len(row) for row in rows if row is not None}
        if len(counts) != 1:
            raise ShapeError(
                locate(f"vmap: arguments have {sorted(counts)} rows; give all one number, or in_dims=None")
            )
        results = [
            func(*[arg if row is None else row[i] for arg, row in zip(args, rows, strict=True)], **named)
            for i in range(counts.pop())
        ]
        if not results:
            raise GraphError(locate("vmap of no rows has no result; check the size first"))
        return tree.tree_map(lambda *parts: stack(parts, out_dims), *results)

    return wrapper


def _rows(arg: Any, dim: Any) -> Any:
    """An argument, maybe a container, cut along an axis; None where it stays whole, or is empty."""
    if dim is None:
        return None
    leaves, structure = tree.flatten(arg)
    if not leaves:
        return None
    cut = [leaf.unbind(dim) for leaf in leaves]
    return [tree.unflatten(structure, list(parts)) for parts in zip(*cut, strict=True)]
