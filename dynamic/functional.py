"""Transforms of functions: gradients, vector products and matrices of derivatives, over nested containers.

Arguments are arrays or nested containers of them. Arrays in give arrays out; if any argument holds a Tensor, so does
the result. All nest: an outer transform differentiates the inner one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dynamic import mode
from dynamic.backward import grad_of, owned
from dynamic.tape import entries_before, wrap
from dynamic.tensor import Tensor, as_array
from graphs import promotion, transforms, tree
from graphs.errors import NotDifferentiableError, located
from graphs.ops.movement import identity
from graphs.transforms import Argnums, Function, Pull, Pullback


def grad(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that returns the gradient of `f`, a scalar function, in the arguments `argnums`.

    With `has_aux`, f returns `(value, anything else)`, and the function returns `(gradient, anything else)`.
    """
    return transforms.grad(_recorded_once, f, argnums, has_aux)


def value_and_grad(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that returns `(f(...), gradient)`.

    The gradient has the structure of the argument, or is a tuple of these when `argnums` is a sequence.
    With `has_aux`, f returns `(value, anything else)`, and only the value is differentiated.
    Raises NotDifferentiableError when f does not return one floating point number, or an argument holds ints.
    """
    return transforms.value_and_grad(_recorded_once, f, argnums, has_aux)


def vjp(f: Function, *primals: Any) -> tuple[Any, Pullback]:
    """`f(*primals)`, and the function that turns cotangents, laid out like it, into a tuple of gradients.

    The tape is kept for as long as that function is, which can be called any number of times.
    Raises NotDifferentiableError for primals of ints, ShapeError for cotangents of another structure or shape.
    """
    return transforms.vjp(_recorded, f, primals)


def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """`f(*primals)`, and its derivative along the tangents: two reverse passes (Townsend, 2017).

    Raises NotDifferentiableError for primals of ints, ShapeError for tangents of another structure or shape.
    """
    outputs, pushed = transforms.jvp(_recorded, f, primals, tangents)
    return outputs, tree.tree_map(lambda y, t: wrap(t) if type(y) is Tensor is not type(t) else t, outputs, pushed)


def jacobian(f: Function, argnums: Argnums = 0) -> Function:
    """The function that returns the derivatives of every output in every argument of `argnums`.

    Each leaf of the output becomes a container like the argument (a tuple of these when `argnums` is a sequence), of
    arrays of shape `output.shape + input.shape`. Costs one backward pass for every element of the output.
    """
    return transforms.jacobian(_recorded, f, argnums)


def hessian(f: Function, argnums: Argnums = 0) -> Function:
    """The function that returns the second derivatives: the jacobian of the jacobian.

    For a scalar function, arrays of shape `input.shape + input.shape`, and one backward pass for every element of
    the input.
    """
    return transforms.hessian(_recorded, f, argnums)


def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
    """The Hessian of the scalar function `f(*primals)` times the tangents: a tuple laid out like the primals.

    Costs about twice a gradient, and never makes the Hessian.
    """
    return transforms.hvp(_recorded, f, primals, tangents)


def _recorded(
    f: Callable[..., Any], args: Sequence[Any], positions: Sequence[int], retain: bool = True
) -> tuple[Any, Pull]:
    """Run `f(*args)` on tensors; its outputs, and what pulls cotangents back to the arguments in `positions`.

    What `graphs.transforms` is made of. Without `retain` the tape is freed by the first pull.
    """
    call, seen = _Call(args, positions), mode.is_grad_enabled()
    with mode.enable_grad():
        leaves, structure = tree.flatten(f(*call.args))
        results = [_result(leaf, call.variables) for leaf in leaves]
    for variable in call.variables:
        variable._requires_grad = False  # what it stood for is done: nobody else can ask for its gradient
    nested = seen and _reaches_beyond(results, call.variables)

    def pull(cotangents: Mapping[int, Any]) -> tuple[Any, ...]:
        seeds = {i: g for i, g in cotangents.items() if _is_recorded(results[i])}
        again = mode.is_grad_enabled() and (nested or any(map(_is_recorded, seeds.values())))
        reached = [results[i] for i in seeds]
        found = grad_of(reached, call.variables, list(seeds.values()), retain_graph=retain or again, create_graph=again)
        gradients = [_zeros(v) if g is None else g for g, v in zip(found, call.variables, strict=True)]
        plain = call.plain and not any(type(g) is Tensor for g in seeds.values())
        return call.regrouped(gradients if again else _owned(gradients, set(), plain))

    # Whoever gets the outputs may write to them, so that they share no memory with a tape that is read again.
    given = {id(r._data) for r in results if type(r) is Tensor and (retain or r._entry is None)}
    return tree.unflatten(structure, results if nested else _owned(results, given, call.plain)), pull


_recorded_once = functools.partial(_recorded, retain=False)


class _Call:
    """The arguments of one call: every array as a tensor, the differentiated ones apart from all else.

    `plain` tells that no argument held a tensor, so that the result holds none either.
    """

    def __init__(self, args: Sequence[Any], positions: Sequence[int]) -> None:
        self.args: list[Any] = []
        self.plain = True
        variables: dict[int, list[Tensor]] = {}
        structures: dict[int, tree.Structure] = {}
        for position, arg in enumerate(args):
            leaves, structure = tree.flatten(arg)
            self.plain = self.plain and not any(type(leaf) is Tensor for leaf in leaves)
            if position in positions:
                structures[position] = structure
                leaves = variables[position] = [_variable(leaf) for leaf in leaves]
            else:
                leaves = [_data(leaf) for leaf in leaves]
            self.args.append(tree.unflatten(structure, leaves))
        self.variables = [variable for position in positions for variable in variables[position]]
        self._structures = [structures[position] for position in positions]

    def regrouped(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """The flat list of gradients as one container per differentiated argument."""
        rest = iter(gradients)
        return tuple([tree.unflatten(s, [next(rest) for _ in range(s.num_leaves)]) for s in self._structures])


def _data(leaf: Any) -> Any:
    """An array as a tensor that is not differentiated, so that operators on data are ops too, as in a trace."""
    return wrap(leaf) if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biuf" else leaf


def _variable(leaf: Any) -> Tensor:
    """What stands for a leaf while it is differentiated: apart from every other use of the same value."""
    if isinstance(leaf, Tensor) and leaf.requires_grad and mode.is_grad_enabled():
        return identity(leaf)
    array = as_array(leaf, None) if isinstance(leaf, Tensor) or not np.isscalar(leaf) else np.asarray(leaf)
    if array.dtype.kind != "f":
        raise NotDifferentiableError(located(f"gradient with respect to {array.dtype} values; convert them to a float"))
    variable = wrap(array)
    variable._requires_grad = True
    return variable


def _result(leaf: Any, variables: Sequence[Tensor]) -> Any:
    """A leaf of the outputs as a tensor; an argument returned as it is gets a history of its own."""
    if type(leaf) is Tensor:
        return identity(leaf) if any(leaf is variable for variable in variables) else leaf
    known = isinstance(leaf, (np.ndarray, np.generic)) or promotion.is_scalar(leaf)
    return wrap(np.asarray(leaf)) if known else leaf


def _is_recorded(value: Any) -> bool:
    return type(value) is Tensor and value.requires_grad


def _owned(results: Sequence[Any], given: set[int], plain: bool) -> list[Any]:
    """Results as arrays, or as tensors without a history, that share no memory with each other or what is `given`."""
    arrays = [owned(r._data if type(r) is Tensor else r, given) if hasattr(r, "dtype") else r for r in results]
    return arrays if plain else [wrap(a) if isinstance(a, np.ndarray) else a for a in arrays]


def _zeros(variable: Tensor) -> Tensor:
    return wrap(np.zeros(variable.shape, variable.dtype))


def _reaches_beyond(results: Sequence[Any], variables: Sequence[Tensor]) -> bool:
    """Whether a result also depends on tensors that somebody else differentiates."""
    recorded = [r for r in results if _is_recorded(r)]
    if any(v._entry is not None for v in variables):
        return bool(recorded)
    own = {id(v) for v in variables}
    leaves = [r for r in recorded if r._entry is None]
    for entry in entries_before([r._entry for r in recorded if r._entry is not None]):
        leaves += [edge for edge in entry.edges if type(edge) is Tensor]
    return any(leaf._requires_grad and id(leaf) not in own for leaf in leaves)
