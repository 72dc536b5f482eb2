"""Transforms of functions: gradients, vector products and matrices of derivatives, over nested containers.

Arguments are arrays or nested containers of them. Arrays in give arrays out; if any argument holds a Tensor, so does
the result. All nest: an outer transform differentiates the inner one.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dynamic import grad_mode, tapes
from dynamic.arguments import Arguments, constant
from dynamic.gradients import pulled
from dynamic.inplace import owned
from dynamic.node import Node
from dynamic.tape import wrap, zeros
from dynamic.tensor import Tensor
from graphs import promotion, transforms, tree
from graphs.ops.movement import identity
from graphs.transforms import Argnums, Function, Pull, VjpFunction


@transforms.with_argnum
def grad(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that returns the gradient of `f`, a scalar function, in the arguments `argnums`.

    With `has_aux`, f returns `(value, anything else)`, and the function returns `(gradient, anything else)`.
    """
    return transforms.grad(_stepped, f, argnums, has_aux)


@transforms.with_argnum
def elementwise_grad(f: Function, argnums: Argnums = 0) -> Function:
    """The function that returns the derivative of each element of `f`, which works element by element.

    It is the gradient of the sum: where an element of the result depends on several of the argument, these add up.
    """
    return grad(transforms.total(f), argnums)


@transforms.with_argnum
def value_and_grad(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that returns `(f(...), gradient)`.

    The gradient has the structure of the argument, or is a tuple of these when `argnums` is a sequence.
    With `has_aux`, f returns `(value, anything else)`, and only the value is differentiated.
    Raises NotDifferentiableError when f does not return one floating point number, or an argument holds ints.
    """
    return transforms.value_and_grad(_stepped, f, argnums, has_aux)


def vjp(f: Function, *primals: Any) -> tuple[Any, VjpFunction]:
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


@transforms.with_argnum
def jacobian(f: Function, argnums: Argnums = 0) -> Function:
    """The function that returns the derivatives of every output in every argument of `argnums`.

    Each leaf of the output becomes a container like the argument (a tuple of these when `argnums` is a sequence), of
    arrays of shape `output.shape + input.shape`. Costs one backward pass for every element of the output.
    """
    return transforms.jacobian(_recorded, f, argnums)


@transforms.with_argnum
def hessian(f: Function, argnums: Argnums = 0) -> Function:
    """The function that returns the second derivatives: the jacobian of the jacobian.

    For a scalar function, arrays of shape `input.shape + input.shape`, and one backward pass for every element of
    the input.
    """
    return transforms.hessian(_recorded, f, argnums)


@transforms.with_argnum
def hessian_vector_product(f: Function, argnums: int = 0) -> Function:
    """The function of the arguments of `f` and a vector that returns the Hessian in one argument times the vector.

    autograd's form of `hvp`; the vector is laid out like the argument.
    """
    return transforms.hessian_vector_product(_recorded, f, argnums)


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
    call, seen = Arguments(args, positions), grad_mode.now().recording
    run: Callable[..., tuple[Any, Any]] = _run if seen else grad_mode.enable_grad()(_run)
    return _taped(call, *run(f, call), retain, seen)


def _taped(
    call: Arguments, results: list[Any], structure: tree.Structure | None, retain: bool, seen: bool
) -> tuple[Any, Pull]:
    """The same once the function has run; `seen` is whether ops are recorded around it."""
    edges = call.edges
    past = tapes.history([r._edge for r in results if type(r) is Tensor])
    nested = seen and ((call.inner and bool(past.nodes)) or False in map(_is_closed, past.leaves))

    def pull(cotangents: Mapping[int, Any]) -> tuple[Any, ...]:
        outputs, seeds = [], []
        for i, seed in cotangents.items():
            if _is_recorded(results[i]):
                outputs.append(results[i])
                seeds.append(seed)
        tensors = Tensor in map(type, seeds)
        again = (nested or (tensors and any(map(_is_recorded, seeds)))) and grad_mode.now().recording
        gradients = pulled(outputs, seeds, edges, past, retain_graph=retain or again, create_graph=again)
        if again:
            return call.regrouped([gradients[e] if e in gradients else wrap(zeros(e)) for e in edges])
        arrays = _collected(gradients, edges)
        return call.regrouped(list(map(wrap, arrays)) if tensors or not call.plain else arrays)

    outputs = results if nested else _handed_out(results, retain, call.plain)
    return outputs[0] if structure is None else tree.unflatten(structure, outputs), pull


def _stepped(
    f: Callable[..., Any], args: tuple[Any, ...], positions: list[int], has_aux: bool
) -> tuple[Any, tuple[Any, ...]]:
    """The outputs of f, whose value is to be differentiated, and its gradients: by one compiled call as a rule."""
    compiled = None if has_aux else _compiled(f, args, positions) or _compiled_flat(f, args, positions)
    return compiled or _by_parts(f, args, positions, has_aux)


def _compiled(f: Callable[..., Any], args: Sequence[Any], positions: list[int]) -> tuple[Any, tuple[Any, ...]] | None:
    """The same of arrays and dicts of arrays; None, and f has not run, where an argument is more than that."""
    step = tapes.step(f, tuple(args), positions)
    if step is None:
        return None
    output, gradients, parts = step
    if parts is None:
        return output, gradients
    call = Arguments.of(parts)
    return transforms.differentiated(*_taped(call, *_leaves(output, call), False, True), has_aux=False)


def _compiled_flat(
    f: Callable[..., Any], args: Sequence[Any], positions: list[int]
) -> tuple[Any, tuple[Any, ...]] | None:
    """The same where containers are nested, of a function that takes the leaves of an argument as a dict of arrays."""
    if not tapes.is_compiled():
        return None
    parted = [tree.parted(args[position]) for position in positions]
    constants = {i: constant(arg) for i, arg in enumerate(args) if i not in positions}
    if any(held_tensor for _, held_tensor in constants.values()):
        return None

    def of_leaves(*leaves: dict[int, Any]) -> Any:
        call = {i: arg for i, (arg, _) in constants.items()}
        for position, (_, grouped), values in zip(positions, parted, leaves, strict=True):
            call[position] = grouped(list(values.values()))
        return f(*[call[i] for i in range(len(args))])

    step = _compiled(of_leaves, [dict(enumerate(leaves)) for leaves, _ in parted], list(range(len(parted))))
    if step is None:
        return None
    output, gradients = step
    return output, tuple(grouped(list(values.values())) for (_, grouped), values in zip(parted, gradients, strict=True))


_by_parts = transforms.step_of(functools.partial(_recorded, retain=False))


def _run(f: Callable[..., Any], call: Arguments) -> tuple[list[Any], tree.Structure | None]:
    return _leaves(f(*call.args), call)


def _leaves(output: Any, call: Arguments) -> tuple[list[Any], tree.Structure | None]:
    """The leaves of what a function returned, and how they are laid out; None for a single tensor.

    From now on nobody else can ask for the gradients of the variables.
    """
    if type(output) is Tensor:
        results, structure = [_result(output, call.edges)], None
    else:
        leaves, structure = tree.flatten(output)
        results = [_result(leaf, call.edges) for leaf in leaves]
    call.close()
    return results, structure


def _result(leaf: Any, edges: Sequence[Any]) -> Any:
    """A leaf of the outputs as a tensor; an argument returned as it is gets a history of its own."""
    if issubclass(type(leaf), Tensor):
        return _computed(identity(leaf)) if _computed(leaf)._edge in edges else leaf
    is_array = isinstance(leaf, (np.ndarray, np.generic)) or promotion.is_scalar(leaf)
    return wrap(np.asarray(leaf)) if is_array else leaf


def _computed(tensor: Tensor) -> Tensor:
    """The tensor itself: one that `batched` has deferred is computed when somebody looks at its values."""
    _ = tensor._data
    return tensor


def _is_recorded(value: Any) -> bool:
    return type(value) is Tensor and value._edge is not None


def _handed_out(results: Iterable[Any], retain: bool, plain: bool) -> list[Any]:
    """Results as arrays, or as tensors without a history, that share no memory with each other.

    Whoever gets them may write to them, so that they share none either with a tape that is read again.
    """
    handed_out = {id(r._data) for r in results if type(r) is Tensor and (retain or type(r._edge) is not Node)}
    arrays = [owned(r._data if type(r) is Tensor else r, handed_out) if hasattr(r, "dtype") else r for r in results]
    return arrays if plain else [wrap(a) if isinstance(a, np.ndarray) else a for a in arrays]


def _collected(gradients: dict[Any, Any], edges: list[Any]) -> list[Any]:
    """The cotangents that arrived at the edges, none of which anybody else sees; zeros where nothing arrived."""
    handed_out: set[int] = set()
    return [owned(gradients[edge], handed_out) if edge in gradients else zeros(edge) for edge in edges]


_is_closed = operator.attrgetter("closed")
