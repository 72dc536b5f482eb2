"""Transforms of functions: gradients, vector products and matrices of derivatives, over nested containers.

Arguments are arrays or nested containers of them. Arrays in give arrays out; if any argument holds a Tensor, so does
the result. All nest: an outer transform differentiates the inner one.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dynamic import mode, native
from dynamic.backward import pulled
from dynamic.batching.deferred import settled
from dynamic.entry import Entry, Leaf
from dynamic.gradients import owned
from dynamic.tape import history, wrap
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
    call, seen = _Call(args, positions), mode.state.recording
    run = call.run if seen else mode.enable_grad()(call.run)
    results, structure = run(f)
    edges = call.edges
    past = history([r._edge for r in results if type(r) is Tensor])
    nested = seen and ((call.inner and bool(past.entries)) or False in map(_is_closed, past.leaves))

    def pull(cotangents: Mapping[int, Any]) -> tuple[Any, ...]:
        outputs, seeds = [], []
        for i, seed in cotangents.items():
            if _is_recorded(results[i]):
                outputs.append(results[i])
                seeds.append(seed)
        tensors = Tensor in map(type, seeds)
        again = (nested or (tensors and any(map(_is_recorded, seeds)))) and mode.state.recording
        found = pulled(outputs, seeds, edges, past, retain_graph=retain or again, create_graph=again)
        if again:
            return call.regrouped([found[e] if e in found else wrap(_zeros(e)) for e in edges])
        arrays = _collected(found, edges)
        return call.regrouped(list(map(wrap, arrays)) if tensors or not call.plain else arrays)

    if nested:
        outputs = results
    elif structure is None and not retain and type(results[0]._edge) is Entry:
        array = owned(results[0]._data, set())
        outputs = [array if call.plain else wrap(array)]
    else:
        outputs = _handed_out(results, retain, call.plain)
    return outputs[0] if structure is None else tree.unflatten(structure, outputs), pull


_recorded_once = functools.partial(_recorded, retain=False)


class _Call:
    """The arguments of one call: every array as a tensor, the differentiated ones apart from all else.

    variables  what is differentiated
    edges      where the gradients of the variables arrive
    plain      whether no argument held a tensor, so that the result holds none either
    inner      whether a variable is what somebody else differentiates as well
    """

    def __init__(self, args: Sequence[Any], positions: Sequence[int]) -> None:
        self.plain, self.inner = True, False
        self.variables: list[Tensor]
        self.edges: list[Any]
        self._keys: list[tuple[Any, ...] | None] | None = None  # of what is differentiated, if all arguments are simple
        found = None if native.loops is None else native.loops.arguments(tuple(args), list(positions))
        if found is not None:
            self.args, self.variables, self.edges, self._keys = found
            return
        self.variables, self.edges = [], []
        self._parts: list[tuple[int, Callable[[list[Any]], Any]]] = []  # leaves of an argument, and what groups them
        self.args = [None if i in positions else self._constants(arg) for i, arg in enumerate(args)]
        for position in positions:
            self.args[position] = self._differentiated(args[position])

    def _constants(self, arg: Any) -> Any:
        if type(arg) is np.ndarray:
            return wrap(arg) if arg.dtype.kind in "biuf" else arg
        leaves, structure = tree.flatten(arg)
        self.plain = self.plain and Tensor not in map(type, leaves)
        return tree.unflatten(structure, list(map(_data, leaves)))

    def _differentiated(self, arg: Any) -> Any:
        leaves, grouped = tree.parted(arg)
        self.plain = self.plain and Tensor not in map(type, leaves)
        variables = list(map(_variable, leaves))
        edges = [variable._edge for variable in variables]
        self.inner = self.inner or Entry in map(type, edges)
        self.variables += variables
        self.edges += edges
        self._parts.append((len(variables), grouped))
        return grouped(variables)

    def run(self, f: Callable[..., Any]) -> tuple[list[Any], tree.Structure | None]:
        """The leaves of what f returns, and how they are laid out; None for a single tensor.

        From then on nobody else can ask for the gradients of the variables.
        """
        output = f(*self.args)
        if type(output) is Tensor:
            results, structure = [_result(output, self.edges)], None
        else:
            leaves, structure = tree.flatten(output)
            results = [_result(leaf, self.edges) for leaf in leaves]
        _close(self.variables)
        return results, structure

    def regrouped(self, gradients: list[Any]) -> tuple[Any, ...]:
        """The flat list of gradients as one container per differentiated argument."""
        if native.loops is not None and self._keys is not None:
            return native.loops.grouped(self._keys, gradients)
        if len(self._parts) == 1:
            return (self._parts[0][1](gradients),)
        rest = iter(gradients)
        return tuple([grouped(list(itertools.islice(rest, count))) for count, grouped in self._parts])


def _data(leaf: Any) -> Any:
    """An array as a tensor that is not differentiated, so that operators on data are ops too, as in a trace."""
    return wrap(leaf) if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biuf" else leaf


def _close(variables: list[Tensor]) -> None:
    """Let nobody else ask for the gradients of variables from now on."""
    if native.loops is not None:
        native.loops.close(variables)
        return
    for variable in variables:
        if type(variable._edge) is Leaf:
            variable._edge.closed = True
            variable._edge = None


def _variable(leaf: Any) -> Tensor:
    """What stands for a leaf while it is differentiated: apart from every other use of the same value."""
    if type(leaf) is not np.ndarray or leaf.dtype.kind != "f":
        if isinstance(leaf, Tensor) and leaf.requires_grad and mode.is_grad_enabled():
            return identity(leaf)
        leaf = as_array(leaf, None) if isinstance(leaf, Tensor) or not np.isscalar(leaf) else np.asarray(leaf)
        if leaf.dtype.kind != "f":
            raise NotDifferentiableError(
                located(f"gradient with respect to {leaf.dtype} values; convert them to a float")
            )
    variable = wrap(leaf)
    variable._edge = Leaf(variable)
    return variable


def _result(leaf: Any, edges: Sequence[Any]) -> Any:
    """A leaf of the outputs as a tensor; an argument returned as it is gets a history of its own."""
    if type(leaf) is not Tensor:
        leaf = settled(leaf)  # inside `batched`, what has not run yet
    if type(leaf) is Tensor:
        return identity(leaf) if leaf._edge in edges else leaf
    known = isinstance(leaf, (np.ndarray, np.generic)) or promotion.is_scalar(leaf)
    return wrap(np.asarray(leaf)) if known else leaf


def _is_recorded(value: Any) -> bool:
    return type(value) is Tensor and value._edge is not None


def _handed_out(results: Iterable[Any], retain: bool, plain: bool) -> list[Any]:
    """Results as arrays, or as tensors without a history, that share no memory with each other.

    Whoever gets them may write to them, so that they share none either with a tape that is read again.
    """
    given = {id(r._data) for r in results if type(r) is Tensor and (retain or type(r._edge) is not Entry)}
    arrays = [owned(r._data if type(r) is Tensor else r, given) if hasattr(r, "dtype") else r for r in results]
    return arrays if plain else [wrap(a) if isinstance(a, np.ndarray) else a for a in arrays]


def _collected(found: dict[Any, Any], edges: list[Any]) -> list[Any]:
    """The cotangents that arrived at the edges, none of which anybody else sees; zeros where nothing arrived."""
    if native.loops is not None:
        return native.loops.collect(found, edges, owned, _zeros)
    given: set[int] = set()
    return [owned(found[edge], given) if edge in found else _zeros(edge) for edge in edges]


def _zeros(edge: Entry | Leaf) -> np.ndarray[Any, Any]:
    return np.zeros(edge.shape, edge.dtype)


_is_closed = operator.attrgetter("closed")
