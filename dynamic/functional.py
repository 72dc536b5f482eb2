"""Gradients of functions: `grad(f)` and `value_and_grad(f)`, over nested containers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dynamic import mode
from dynamic.backward import grad_of, owned
from dynamic.tape import entries_before, wrap
from dynamic.tensor import Tensor, as_array
from graphs import reverse, tree
from graphs.errors import NotDifferentiableError, located
from graphs.ops.movement import identity

Argnums = int | Sequence[int]


def grad(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The function that returns the gradient of `f`, a scalar function, in the arguments `argnums`."""
    both = value_and_grad(f, argnums)

    @functools.wraps(f)
    def gradient(*args: Any) -> Any:
        return both(*args)[1]

    return gradient


def value_and_grad(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The function that returns `(f(...), gradient)`.

    Arguments are arrays or nested containers of them. The gradient has the structure of the argument, or is a tuple
    of these when `argnums` is a sequence. Arrays in give arrays out; if any argument holds a Tensor, so does the
    result. Nests: an outer gradient differentiates the inner one.
    Raises NotDifferentiableError when f does not return one floating point number, or an argument holds ints.
    """
    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @functools.wraps(f)
    def both(*args: Any) -> tuple[Any, Any]:
        plain = not any(isinstance(leaf, Tensor) for leaf in tree.leaves(args))
        with mode.enable_grad():
            variables, called = _with_variables(args, positions)
            output = f(*called)
            value, gradients = _gradients(output, [v for group in variables for v in group], plain)
        grouped = _regrouped(args, positions, variables, gradients)
        return value, grouped[0] if isinstance(argnums, int) else tuple(grouped)

    return both


def _with_variables(args: Sequence[Any], positions: Sequence[int]) -> tuple[list[list[Tensor]], list[Any]]:
    """The arguments with the differentiated ones as fresh tensors, and those tensors by position."""
    called = list(args)
    variables = []
    for position in positions:
        leaves, structure = tree.flatten(args[position])
        variables.append([_variable(leaf) for leaf in leaves])
        called[position] = tree.unflatten(structure, list(variables[-1]))
    return variables, called


def _variable(leaf: Any) -> Tensor:
    """What stands for a leaf while it is differentiated: apart from every other use of the same value."""
    if isinstance(leaf, Tensor) and leaf.requires_grad:
        return identity(leaf)
    array = as_array(leaf, None) if isinstance(leaf, Tensor) or not np.isscalar(leaf) else np.asarray(leaf)
    if array.dtype.kind != "f":
        raise NotDifferentiableError(located(f"gradient with respect to {array.dtype} values; convert them to a float"))
    variable = wrap(array)
    variable._requires_grad = True
    return variable


def _gradients(output: Any, variables: list[Tensor], plain: bool) -> tuple[Any, list[Any]]:
    reverse.check_seed(output, None)
    if not isinstance(output, Tensor) or not output.requires_grad:
        value = output if plain or isinstance(output, Tensor) else Tensor(output)
        return value, [_zeros(v, plain) for v in variables]
    nested = _reaches_beyond(output, variables)
    found = grad_of([output], variables, [None], create_graph=nested)
    if not nested:
        given: set[int] = set()
        found = [None if g is None else owned(g, given) for g in found]
        found = found if plain else [None if g is None else wrap(g) for g in found]
    value = output if nested else (output._data if plain else output.detach())
    return value, [_zeros(v, plain) if g is None else g for g, v in zip(found, variables, strict=True)]


def _zeros(variable: Tensor, plain: bool) -> Any:
    zeros = np.zeros(variable.shape, variable.dtype)
    return zeros if plain else wrap(zeros)


def _reaches_beyond(output: Tensor, variables: list[Tensor]) -> bool:
    """Whether the output also depends on tensors that somebody else differentiates."""
    if output._entry is None:
        return False
    own = {id(v) for v in variables}
    own_entries = {id(v._entry) for v in variables if v._entry is not None}
    if own_entries:
        return True
    entries = entries_before([output._entry])
    return any(isinstance(edge, Tensor) and id(edge) not in own for entry in entries for edge in entry.edges)


def _regrouped(
    args: Sequence[Any], positions: Sequence[int], variables: list[list[Tensor]], gradients: list[Any]
) -> list[Any]:
    """The flat list of gradients as one container per differentiated argument."""
    result, start = [], 0
    for position, group in zip(positions, variables, strict=True):
        structure = tree.flatten(args[position])[1]
        result.append(tree.unflatten(structure, gradients[start : start + len(group)]))
        start += len(group)
    return result
