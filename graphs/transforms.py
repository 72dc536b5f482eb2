"""Transforms of functions, written once: each engine supplies `record`, and every transform is built on it.

`record(f, args, positions)` runs `f(*args)` and returns its outputs and `pull`. `pull({i: cotangent})` takes a
cotangent for some leaves of the outputs by number (None is the 1 of a scalar) and returns, for each argument in
`positions`, a container of gradients laid out like it. It can be called again, and can itself be differentiated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from graphs import dims, promotion, reverse, tree
from graphs.errors import GraphError, NotDifferentiableError, ShapeError, locate
from graphs.ops.control import scan
from graphs.ops.creation import arange, zeros_like
from graphs.ops.elementwise import equal
from graphs.ops.movement import astype, broadcast_to, cast, reshape
from graphs.ops.shapes import dtype_of, shape_of
from graphs.spec import TensorSpec, spec_of

Argnums = int | Sequence[int]
Function = Callable[..., Any]
Pull = Callable[[Mapping[int, Any]], tuple[Any, ...]]
RecordFunction = Callable[[Function, Sequence[Any], Sequence[int]], tuple[Any, Pull]]
VjpFunction = Callable[[Any], tuple[Any, ...]]
Transform = TypeVar("Transform", bound=Callable[..., Function])
Differentiate = Callable[[Function, tuple[Any, ...], list[int], bool], tuple[Any, tuple[Any, ...]]]


def with_argnum(transform: Transform) -> Transform:
    """Let a transform also take `argnum`, autograd's word for `argnums`."""

    @functools.wraps(transform)
    def wrapper(f: Function, *args: Any, **options: Any) -> Any:
        if "argnum" in options:
            options["argnums"] = options.pop("argnum")
        return transform(f, *args, **options)

    return wrapper  # type: ignore[return-value]  # the same parameters, and one more


def step_of(record: RecordFunction) -> Differentiate:
    """Make of `record` a function that runs f and returns its outputs and gradients at once."""

    def step(f: Function, args: tuple[Any, ...], positions: list[int], has_aux: bool) -> tuple[Any, tuple[Any, ...]]:
        return value_and_gradients(*record(f, args, positions), has_aux)

    return step


def value_and_gradients(outputs: Any, pull: Pull, has_aux: bool) -> tuple[Any, tuple[Any, ...]]:
    """The outputs of a function, and the gradients of its value.

    Raises NotDifferentiableError unless the value is one floating point number.
    """
    _check_value(outputs, has_aux)
    return outputs, pull({0: None})


def value_and_grad(step: Differentiate, f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that returns `(f(...), gradient)`; with `has_aux`, f returns `(value, anything else)`.

    Keyword arguments are not differentiated.
    """
    chosen = functools.cache(
        functools.partial(_select_arguments, argnums)
    )  # by the number of arguments: every step asks

    @functools.wraps(f)
    def both(*args: Any, **named: Any) -> tuple[Any, Any]:
        positions, picked = chosen(len(args))
        outputs, gradients = step(functools.partial(f, **named) if named else f, args, positions, has_aux)
        return outputs, picked(gradients)

    return both


def grad(step: Differentiate, f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that returns the gradient of `f`; with `has_aux`, `(gradient, anything else)`."""
    both = value_and_grad(step, f, argnums, has_aux)

    @functools.wraps(f)
    def gradient(*args: Any, **named: Any) -> Any:
        outputs, gradients = both(*args, **named)
        return (gradients, outputs[1]) if has_aux else gradients

    return gradient


def total(f: Function) -> Function:
    """Wrap `f` to return the sum of all elements of its output: its gradient is the sum of the elements' gradients."""

    @functools.wraps(f)
    def sum_of_outputs(*args: Any) -> Any:
        return sum(f(*args))

    return sum_of_outputs


def vjp(record: RecordFunction, f: Function, primals: Sequence[Any]) -> tuple[Any, VjpFunction]:
    """The outputs of `f(*primals)`, and the function from their cotangents to those of the primals."""
    outputs, pull = record(f, primals, range(len(primals)))
    specs = tree.tree_map(spec_of, outputs)  # the shapes are all that is needed of the outputs

    def pullback(cotangents: Any) -> tuple[Any, ...]:
        return pull(pair_leaves("vjp: the cotangents", cotangents, "the outputs", specs))

    return outputs, pullback


def jvp(record: RecordFunction, f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The outputs of `f(*primals)`, and their derivative along the tangents.

    The pullback is linear, and its own pullback is the forward derivative: two reverse passes in place of a rule
    for each op (J. Townsend, "A new trick for calculating Jacobian vector products", 2017).
    """
    outputs, pull = record(f, primals, range(len(primals)))
    leaves, structure = tree.flatten(outputs)
    floats = [i for i, leaf in enumerate(leaves) if dtype_of(leaf).kind == "f"]
    directions = pair_leaves("jvp: the tangents", tuple(tangents), "the primals", tuple(primals))

    def pull_floats(*cotangents: Any) -> tuple[Any, ...]:
        return pull(dict(zip(floats, cotangents, strict=True)))

    anywhere = [zeros_like(leaves[i]) for i in floats]
    push = record(pull_floats, anywhere, range(len(floats)))[1]
    pushed = dict(zip(floats, push(directions), strict=True))
    return outputs, tree.unflatten(structure, [pushed.get(i, zeros_like(leaf)) for i, leaf in enumerate(leaves)])


def jacobian(record: RecordFunction, f: Function, argnums: Argnums = 0) -> Function:
    """The function that returns, for each leaf of the outputs, derivatives of shape `output.shape + input.shape`."""

    @functools.wraps(f)
    def derivatives(*args: Any, **named: Any) -> Any:
        positions, picked = _select_arguments(argnums, len(args))
        outputs, pull = record(functools.partial(f, **named) if named else f, args, positions)
        leaves, structure = tree.flatten(outputs)
        return tree.unflatten(structure, [picked(_rows(pull, i, spec_of(leaf))) for i, leaf in enumerate(leaves)])

    return derivatives


def hessian(record: RecordFunction, f: Function, argnums: Argnums = 0) -> Function:
    """The function that returns second derivatives, of shape `output.shape + input.shape + input.shape`."""
    return jacobian(record, jacobian(record, f, argnums), argnums)


def hvp(record: RecordFunction, f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
    """The Hessian of a scalar function times the tangents, laid out like the primals.

    The Hessian is symmetric, so the pullback of the gradient computes the product: reverse over reverse, one pass less
    than forward over reverse (Pearlmutter, "Fast exact multiplication by the Hessian", 1994).
    """
    gradient = grad(step_of(record), f, range(len(primals)))
    pull = record(gradient, primals, range(len(primals)))[1]
    return pull(pair_leaves("hvp: the tangents", tuple(tangents), "the primals", tuple(primals)))


def hessian_vector_product(record: RecordFunction, f: Function, argnums: int = 0) -> Function:
    """The function of the arguments of `f` and a vector like argument `argnums`: the Hessian in it times the vector."""
    gradient = grad(step_of(record), f, argnums)

    def product(*args: Any) -> Any:
        *primals, vector = args
        (position,), _ = _select_arguments(argnums, len(primals))
        pull = record(gradient, primals, [position])[1]
        return pull(pair_leaves("hessian_vector_product: the vector", vector, "the argument", primals[position]))[0]

    return product


def pair_leaves(what: str, container: Any, other: str, like: Any) -> dict[int, Any]:
    """Map the number of each floating point leaf of `like` to the value in its place, in the leaf's dtype.

    Raises ShapeError when the containers or the shapes differ.
    """
    (values, layout), (leaves, structure) = tree.flatten(container), tree.flatten(like)
    if layout != structure:
        ways = tree.describe(layout), tree.describe(structure)
        raise ShapeError(locate(f"{what} are laid out as {ways[0]}, {other} as {ways[1]}; give one for each"))
    return {
        i: _cast_leaf(what, value, other, spec_of(leaf))
        for i, (value, leaf) in enumerate(zip(values, leaves, strict=True))
        if dtype_of(leaf).kind == "f"
    }


def _cast_leaf(what: str, value: Any, other: str, spec: TensorSpec) -> Any:
    if not dims.same_shape(shape_of(value), spec.shape):
        raise ShapeError(locate(f"{what} have the shape {shape_of(value)} where {other} have {spec.shape}"))
    array = value if hasattr(value, "dtype") else np.asarray(value, spec.dtype)
    return cast(array, spec.dtype)


def _select_arguments(argnums: Argnums, count: int) -> tuple[list[int], Callable[[tuple[Any, ...]], Any]]:
    """The positions asked for, each once and from the front, and a function that arranges results as `argnums` does.

    Raises ValueError when there is no such argument.
    """
    asked = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not all(-count <= position < count for position in asked):
        raise ValueError(locate(f"argnums is {argnums}, and the function was called with {count} arguments"))
    wanted = [position % count for position in asked]
    positions = list(dict.fromkeys(wanted))

    def pick(gradients: tuple[Any, ...]) -> Any:
        return gradients[0] if isinstance(argnums, int) else tuple([gradients[positions.index(p)] for p in wanted])

    return positions, pick


def _check_value(outputs: Any, has_aux: bool) -> None:
    """Raise NotDifferentiableError unless the value of the function is one float; with `has_aux` it comes in a pair."""
    if has_aux and not (isinstance(outputs, tuple) and len(outputs) == 2):
        raise GraphError(locate("with has_aux the function returns a pair: its value, and anything else"))
    value = outputs[0] if has_aux else outputs
    if type(value) is np.ndarray and value.shape == () and value.dtype.kind == "f":
        return  # as in every step of a training
    if value is None:
        raise NotDifferentiableError(locate("gradient of None: the function returns nothing; return its value"))
    if not hasattr(value, "dtype") and not promotion.is_scalar(value):
        raise NotDifferentiableError(
            locate(
                f"gradient of a {type(value).__name__}: only scalars have one gradient; return one number, or use vjp"
            )
        )
    reverse.check_seed(value, None)


def _rows(pull: Pull, number: int, spec: TensorSpec) -> tuple[Any, ...]:
    """The derivatives of one output, with one backward pass for each of its elements."""
    if not spec.is_float:
        raise NotDifferentiableError(locate(f"jacobian of {spec.dtype} values; only floating point outputs have one"))
    if spec.shape == ():
        return pull({number: None})
    if dims.same(spec.size, 0):
        return tree.tree_map(lambda g: broadcast_to(g, (*spec.shape, *shape_of(g))), pull({}))

    def row(state: tuple[()], element: Any) -> tuple[tuple[()], tuple[Any, ...]]:
        basis = astype(equal(arange(spec.size), element), spec.dtype)
        return state, pull({number: reshape(basis, spec.shape)})

    stacked = scan(row, (), arange(spec.size))[1]
    return tree.tree_map(lambda g: reshape(g, (*spec.shape, *shape_of(g)[1:])), stacked)
