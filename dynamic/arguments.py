"""The arguments of a function that is to be differentiated: every array as a tensor, some of them variables."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from dynamic import grad_mode
from dynamic.node import Leaf, Node
from dynamic.tape import wrap
from dynamic.tensor import Tensor, as_array
from graphs import tree
from graphs.errors import NotDifferentiableError, located
from graphs.ops.movement import identity


class Arguments:
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
        self.variables, self.edges = [], []
        self._parts: list[tuple[int, Callable[[list[Any]], Any]]] = []  # leaves of an argument, and what groups them
        self.args = [None if i in positions else self._constants(arg) for i, arg in enumerate(args)]
        for position in positions:
            self.args[position] = self._differentiated(args[position])

    @classmethod
    def of(cls, parts: tuple[Any, ...]) -> Self:
        """Those that the compiled tape has taken apart: arrays, and dicts of arrays, whose keys it gives."""
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

    def _differentiated(self, arg: Any) -> Any:
        leaves, grouped = tree.parted(arg)
        self.plain = self.plain and Tensor not in map(type, leaves)
        variables = list(map(_variable, leaves))
        edges = [variable._edge for variable in variables]
        self.inner = self.inner or Node in map(type, edges)
        self.variables += variables
        self.edges += edges
        self._parts.append((len(variables), grouped))
        return grouped(variables)

    def close(self) -> None:
        """Let nobody else ask for the gradients of the variables from now on."""
        for variable in self.variables:
            if type(variable._edge) is Leaf:
                variable._edge.closed = True
                variable._edge = None

    def regrouped(self, gradients: list[Any]) -> tuple[Any, ...]:
        """The flat list of gradients as one container per differentiated argument."""
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
    """What stands for a leaf while it is differentiated: apart from every other use of the same value."""
    if type(leaf) is not np.ndarray or leaf.dtype.kind != "f":
        if issubclass(type(leaf), Tensor) and leaf.requires_grad and grad_mode.is_grad_enabled():
            return identity(leaf)
        leaf = as_array(leaf, None) if issubclass(type(leaf), Tensor) or not np.isscalar(leaf) else np.asarray(leaf)
        if leaf.dtype.kind != "f":
            raise NotDifferentiableError(
                located(f"gradient with respect to {leaf.dtype} values; convert them to a float")
            )
    variable = wrap(leaf)
    variable._edge = Leaf(variable)
    return variable
