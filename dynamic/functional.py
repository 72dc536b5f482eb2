"""Transforms of functions: gradients, vector products and matrices of derivatives, over nested containers.

Arguments are arrays or nested containers of them. Arrays in give arrays out; if any argument holds a Tensor, so does
the result. All transforms nest: an outer one differentiates the inner one.

`Arguments`, at the end, are those of a function that is differentiated: every array as a tensor, some as variables.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from dynamic import grad_mode, tapes
from dynamic.gradients import pull_cotangents
from dynamic.node import Leaf, Node
from dynamic.tape import own_array, zeros
from dynamic.tensor import Tensor, as_array, wrap
from graphs import promotion, transforms, tree
from graphs.errors import NotDifferentiableError, locate
from graphs.ops.movement import identity
from graphs.transforms import Argnums, Function, Pull, VjpFunction


@transforms.with_argnum
def grad(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that returns the gradient of `f`, a scalar function, in the arguments `argnums`.

    With `has_aux`, f returns `(value, anything else)`, and the function returns `(gradient, anything else)`.
    """
    return transforms.grad(_differentiate_step, f, argnums, has_aux)


@transforms.with_argnum
def elementwise_grad(f: Function, argnums: Argnums = 0) -> Function:
    """The function that returns the derivative of each element of `f`, which works element by element.

    It is the gradient of the sum: where several elements of the result depend on one of the argument, derivatives add
    up.
    """
    return grad(transforms.total(f), argnums)


@transforms.with_argnum
def value_and_grad(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that returns `(f(...), gradient)`.

    The gradient has the structure of the argument, or is a tuple of these when `argnums` is a sequence.
    With `has_aux`, f returns `(value, anything else)`, and only the value is differentiated.
    Raises NotDifferentiableError when f does not return one floating point number, or an argument holds ints.
    """
    return transforms.value_and_grad(_differentiate_step, f, argnums, has_aux)


def vjp(f: Function, *primals: Any) -> tuple[Any, VjpFunction]:
    """`f(*primals)`, and the function that turns cotangents, laid out like the result, into a tuple of gradients.

    That function can be called any number of times, and keeps the tape alive.
    Raises NotDifferentiableError for primals of ints, ShapeError for cotangents of another structure or shape.
    """
    return transforms.vjp(_record, f, primals)


def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """`f(*primals)`, and its derivative along the tangents: two reverse passes (Townsend, 2017).

    Raises NotDifferentiableError for primals of ints, ShapeError for tangents of another structure or shape.
    """
    outputs, pushed = transforms.jvp(_record, f, primals, tangents)
    return outputs, tree.tree_map(lambda y, t: wrap(t) if type(y) is Tensor is not type(t) else t, outputs, pushed)


@transforms.with_argnum
def jacobian(f: Function, argnums: Argnums = 0) -> Function:
    """The function that returns the derivatives of every output in every argument of `argnums`.

    Each leaf of the output becomes a container like the argument (a tuple of these when `argnums` is a sequence), of
    arrays of shape `output.shape + input.shape`. Costs one backward pass for every element of the output.
    """
    return transforms.jacobian(_record, f, argnums)


@transforms.with_argnum
def hessian(f: Function, argnums: Argnums = 0) -> Function:
    """The function that returns the second derivatives: the jacobian of the jacobian.

    For a scalar function, arrays of shape `input.shape + input.shape`, and one backward pass for every element of
    the input.
    """
    return transforms.hessian(_record, f, argnums)


@transforms.with_argnum
def hessian_vector_product(f: Function, argnums: int = 0) -> Function:
    """The function of the arguments of `f` and a vector that returns the Hessian in one argument times the vector.

    autograd's form of `hvp`; the vector is laid out like the argument.
    """
    return transforms.hessian_vector_product(_record, f, argnums)


def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
    """The Hessian of the scalar function `f(*primals)` times the tangents: a tuple laid out like the primals.

    Costs about twice a gradient, and never makes the Hessian.
    """
    return transforms.hvp(_record, f, primals, tangents)


def _record(
    f: Callable[..., Any], args: Sequence[Any], positions: Sequence[int], retain: bool = True
) -> tuple[Any, Pull]:
    """Run `f(*args)` on tensors; its outputs, and `pull`, from cotangents to those of the arguments in `positions`.

    This is the `record` of `graphs.transforms`. Without `retain` the first pull frees the tape.
    """
    call, seen = Arguments(args, positions), grad_mode.now().recording
    run: Callable[..., tuple[Any, Any]] = _run if seen else grad_mode.enable_grad()(_run)
    return _finish_record(call, *run(f, call), retain, seen)


def _finish_record(
    call: Arguments, results: list[Any], structure: tree.Structure | None, retain: bool, seen: bool
) -> tuple[Any, Pull]:
    """Make outputs and `pull` from the results of a function that has run; `seen` tells if ops around are recorded."""
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
        gradients = pull_cotangents(outputs, seeds, edges, past, retain_graph=retain or again, create_graph=again)
        if again:
            return call.regroup([gradients[e] if e in gradients else wrap(zeros(e)) for e in edges])
        arrays = _collect_cotangents(gradients, edges)
        return call.regroup(list(map(wrap, arrays)) if tensors or not call.plain else arrays)

    outputs = results if nested else _copy_results(results, retain, call.plain)
    return outputs[0] if structure is None else tree.unflatten(structure, outputs), pull


def _differentiate_step(
    f: Callable[..., Any], args: tuple[Any, ...], positions: list[int], has_aux: bool
) -> tuple[Any, tuple[Any, ...]]:
    """The outputs of f and the gradients of its value: by one compiled call where that is possible."""
    compiled = None if has_aux else _try_compiled(f, args, positions) or _compiled_flat(f, args, positions)
    return compiled or _by_parts(f, args, positions, has_aux)


def _try_compiled(
    f: Callable[..., Any], args: Sequence[Any], positions: list[int]
) -> tuple[Any, tuple[Any, ...]] | None:
    """`_differentiate_step` by one compiled call, for arrays and dicts of arrays; None, with f not run, for others."""
    step = tapes.step(f, tuple(args), positions)
    if step is None:
        return None
    output, gradients, parts = step
    if parts is None:
        return output, gradients
    call = Arguments.of(parts)
    return transforms.value_and_gradients(*_finish_record(call, *_leaves(output, call), False, True), has_aux=False)


def _compiled_flat(
    f: Callable[..., Any], args: Sequence[Any], positions: list[int]
) -> tuple[Any, tuple[Any, ...]] | None:
    """`_differentiate_step` for nested containers: a compiled call of a function of the leaves, as dicts of arrays."""
    if not tapes.is_compiled():
        return None
    parted = [tree.partition(args[position]) for position in positions]
    constants = {i: constant(arg) for i, arg in enumerate(args) if i not in positions}
    if any(held_tensor for _, held_tensor in constants.values()):
        return None

    def of_leaves(*leaves: dict[int, Any]) -> Any:
        call = {i: arg for i, (arg, _) in constants.items()}
        for position, (_, grouped), values in zip(positions, parted, leaves, strict=True):
            call[position] = grouped(list(values.values()))
        return f(*[call[i] for i in range(len(args))])

    step = _try_compiled(of_leaves, [dict(enumerate(leaves)) for leaves, _ in parted], list(range(len(parted))))
    if step is None:
        return None
    output, gradients = step
    return output, tuple(grouped(list(values.values())) for (_, grouped), values in zip(parted, gradients, strict=True))


_by_parts = transforms.step_of(functools.partial(_record, retain=False))


def _run(f: Callable[..., Any], call: Arguments) -> tuple[list[Any], tree.Structure | None]:
    return _leaves(f(*call.args), call)


def _leaves(output: Any, call: Arguments) -> tuple[list[Any], tree.Structure | None]:
    """The leaves of a function's output, and their structure; None for a single tensor.

    From then on no other code can ask for the gradients of the variables.
    """
    if type(output) is Tensor:
        results, structure = [_result(output, call.edges)], None
    else:
        leaves, structure = tree.flatten(output)
        results = [_result(leaf, call.edges) for leaf in leaves]
    call.close()
    return results, structure


def _result(leaf: Any, edges: Sequence[Any]) -> Any:
    """A leaf of the outputs as a tensor; an argument that is returned unchanged gets a history of its own."""
    if issubclass(type(leaf), Tensor):
        return _compute_deferred(identity(leaf)) if _compute_deferred(leaf)._edge in edges else leaf
    is_array = isinstance(leaf, (np.ndarray, np.generic)) or promotion.is_scalar(leaf)
    return wrap(np.asarray(leaf)) if is_array else leaf


def _compute_deferred(tensor: Tensor) -> Tensor:
    """The tensor itself, after computing its values if `batched` has deferred them."""
    _ = tensor._data
    return tensor


def _is_recorded(value: Any) -> bool:
    return type(value) is Tensor and value._edge is not None


def _copy_results(results: Iterable[Any], retain: bool, plain: bool) -> list[Any]:
    """Results as arrays, or as tensors without a history, that share no memory with each other.

    The caller may write to them, so they share no memory with a tape that is read again either.
    """
    handed_out = {id(r._data) for r in results if type(r) is Tensor and (retain or type(r._edge) is not Node)}
    arrays = [own_array(r._data if type(r) is Tensor else r, handed_out) if hasattr(r, "dtype") else r for r in results]
    return arrays if plain else [wrap(a) if isinstance(a, np.ndarray) else a for a in arrays]


def _collect_cotangents(gradients: dict[Any, Any], edges: list[Any]) -> list[Any]:
    """The cotangents that arrived at the edges, each in memory of its own; zeros where none arrived."""
    handed_out: set[int] = set()
    return [own_array(gradients[edge], handed_out) if edge in gradients else zeros(edge) for edge in edges]


_is_closed = operator.attrgetter("closed")


class Arguments:
    """The arguments of one call: every array as a tensor, the differentiated ones apart from all others.

    variables  the tensors that are differentiated
    edges      where the gradients of the variables arrive
    plain      whether no argument held a tensor, so that the result holds none either
    inner      whether an outer transform or tape differentiates one of the variables as well
    """

    def __init__(self, args: Sequence[Any], positions: Sequence[int]) -> None:
        self.plain, self.inner = True, False
        self.variables: list[Tensor]
        self.edges: list[Any]
        self.variables, self.edges = [], []
        self._parts: list[tuple[int, Callable[[list[Any]], Any]]] = []  # leaves of an argument, and what groups them
        self.args = [None if i in positions else self._constants(arg) for i, arg in enumerate(args)]
        for position in positions:
            self.args[position] = self._differentiate_argument(args[position])

    @classmethod
    def of(cls, parts: tuple[Any, ...]) -> Self:
        """Arguments from the parts that the compiled tape has made: arrays, and dicts of arrays with their keys."""
        call = cls.__new__(cls)
        call.plain, call.inner = True, False
        call.args, call.variables, call.edges, keys_of_all = parts
        call._parts = [
            (1, operator.itemgetter(0)) if keys is None else (len(keys), functools.partial(_dict, keys))
            for keys in keys_of_all
        ]
        return call

    def _constants(self, arg: Any) -> Any:
        value, held_tensor = constant(arg)
        self.plain = self.plain and not held_tensor
        return value

    def _differentiate_argument(self, arg: Any) -> Any:
        leaves, grouped = tree.partition(arg)
        self.plain = self.plain and Tensor not in map(type, leaves)
        variables = list(map(_variable, leaves))
        edges = [variable._edge for variable in variables]
        self.inner = self.inner or Node in map(type, edges)
        self.variables += variables
        self.edges += edges
        self._parts.append((len(variables), grouped))
        return grouped(variables)

    def close(self) -> None:
        """Stop other code from asking for the gradients of the variables from now on."""
        for variable in self.variables:
            if type(variable._edge) is Leaf:
                variable._edge.closed = True
                variable._edge = None

    def regroup(self, gradients: list[Any]) -> tuple[Any, ...]:
        """Group the flat list of gradients into one container per differentiated argument."""
        rest = iter(gradients)
        return tuple([grouped(list(itertools.islice(rest, count))) for count, grouped in self._parts])


def _dict(keys: tuple[Any, ...], values: list[Any]) -> dict[Any, Any]:
    return dict(zip(keys, values, strict=True))


def constant(arg: Any) -> tuple[Any, bool]:
    """An argument that is not differentiated, its arrays as tensors, and whether it held a tensor before."""
    if type(arg) is np.ndarray:
        return _data(arg), False
    leaves, structure = tree.flatten(arg)
    return tree.unflatten(structure, list(map(_data, leaves))), Tensor in map(type, leaves)


def _data(leaf: Any) -> Any:
    """An array as a tensor that is not differentiated, so that operators on data are ops too, as in a trace."""
    return wrap(leaf) if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biuf" else leaf


def _variable(leaf: Any) -> Tensor:
    """The tensor that stands for a leaf while it is differentiated, apart from every other use of the same value."""
    if type(leaf) is not np.ndarray or leaf.dtype.kind != "f":
        if issubclass(type(leaf), Tensor) and leaf.requires_grad and grad_mode.is_grad_enabled():
            return identity(leaf)
        leaf = as_array(leaf, None) if issubclass(type(leaf), Tensor) or not np.isscalar(leaf) else np.asarray(leaf)
        if leaf.dtype.kind != "f":
            raise NotDifferentiableError(
                locate(f"gradient with respect to {leaf.dtype} values; convert them to a float")
            )
    variable = wrap(leaf)
    variable._edge = Leaf(variable)
    return variable
