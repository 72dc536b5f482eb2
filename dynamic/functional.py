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
        call = _Call(args, positions)
        with mode.enable_grad():
            output = f(*call.args)
            value, gradients = _gradients(output, call.variables, call.plain)
        for variable in call.variables:
            variable._requires_grad = False  # what it stood for is done: nobody else can ask for its gradient
        grouped = call.regrouped(gradients)
        return value, grouped[0] if isinstance(argnums, int) else tuple(grouped)

    return both


class _Call:
    """The arguments of one call: every array as a tensor, the differentiated ones apart from all else.

    `plain` tells that no argument held a tensor, so that the result holds none either.
    """

    def __init__(self, args: Sequence[Any], positions: Sequence[int]) -> None:
        self.args: list[Any] = []
        self.variables: list[Tensor] = []
        self.plain = True
        self._structures: dict[int, tree.Structure] = {}
        wanted = {position % len(args) for position in positions}
        self._positions = [position % len(args) for position in positions]
        for position, arg in enumerate(args):
            leaves, structure = tree.flatten(arg)
            self.plain = self.plain and not any(isinstance(leaf, Tensor) for leaf in leaves)
            seen = [_variable(leaf) if position in wanted else _data(leaf) for leaf in leaves]
            self.args.append(tree.unflatten(structure, seen))
            if position in wanted:
                self._structures[position] = structure
        self.variables = [leaf for p in self._positions for leaf in tree.leaves(self.args[p])]

    def regrouped(self, gradients: list[Any]) -> list[Any]:
        """The flat list of gradients as one container per differentiated argument."""
        rest = iter(gradients)
        structures = [self._structures[position] for position in self._positions]
        return [tree.unflatten(s, [next(rest) for _ in range(s.num_leaves)]) for s in structures]


def _data(leaf: Any) -> Any:
    """An array as a tensor that is not differentiated, so that operators on data are ops too, as in a trace."""
    return wrap(leaf) if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biuf" else leaf


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
    output = output if isinstance(output, Tensor) else wrap(np.asarray(output))
    nested = output.requires_grad and _reaches_beyond(output, variables)
    found: list[Any] = [None] * len(variables)
    if output.requires_grad:
        found = grad_of([output], variables, [None], create_graph=nested)
    found = [_zeros(v) if g is None else g for g, v in zip(found, variables, strict=True)]
    return (output, found) if nested else _owned(output, found, plain)


def _owned(output: Tensor, gradients: list[Any], plain: bool) -> tuple[Any, list[Any]]:
    """The results as arrays, or as tensors without a history, that share no memory with each other or anyone."""
    given = {id(output._data)} if output._entry is None else set()  # an argument, or what the function has captured
    arrays = [owned(r._data if isinstance(r, Tensor) else r, given) for r in (output, *gradients)]
    results = arrays if plain else [wrap(a) for a in arrays]
    return results[0], results[1:]


def _zeros(variable: Tensor) -> Tensor:
    return wrap(np.zeros(variable.shape, variable.dtype))


def _reaches_beyond(output: Tensor, variables: list[Tensor]) -> bool:
    """Whether the output also depends on tensors that somebody else differentiates."""
    own = {id(v) for v in variables}
    if output._entry is None:
        return id(output) not in own
    own_entries = {id(v._entry) for v in variables if v._entry is not None}
    if own_entries:
        return True
    entries = entries_before([output._entry])
    leaves = (edge for entry in entries for edge in entry.edges if isinstance(edge, Tensor))
    return any(leaf._requires_grad and id(leaf) not in own for leaf in leaves)
