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
    if not isinstance(output, Tensor) or not output.requires_grad:
        value = output if plain or isinstance(output, Tensor) else Tensor(output)
        return value, [_zeros(v, plain) for v in variables]
    nested = _reaches_beyond(output, variables)
    found = grad_of([output], variables, [None], create_graph=nested)
    results = [output, *(_zeros(v, plain) if g is None else g for g, v in zip(found, variables, strict=True))]
    if not nested:
        results = _owned(results, plain)
    return results[0], results[1:]


def _owned(results: list[Any], plain: bool) -> list[Any]:
    """The results as arrays, or as tensors without a history, that share no memory."""
    given: set[int] = set()
    arrays = [owned(r._data if isinstance(r, Tensor) else r, given) for r in results]
    return arrays if plain else [wrap(a) for a in arrays]


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
