"""A sample: one call of an op, on values made for it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs import tree
from graphs.op import Attrs, Op
from graphs.spec import spec_of

Array = npt.NDArray[Any]
Sizes = tuple[int, ...]
Given = tuple[tuple[Any, ...], dict[str, Any]]  # the arguments and options of a call
Case = tuple[str, tuple[Any, ...], dict[str, Any]]  # its title before these
Maker = Callable[[Op, "Values"], Iterator[Case]]


@dataclass(frozen=True)
class Sample:
    """One call, `op(*args, **attrs)`; floating point arrays in `args` are float64 and lie away from kinks.

    Calling the sample with other arrays in place of its own (tensors, symbols) makes the same call on them.
    """

    op: Op
    title: str
    args: tuple[Any, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, *arrays: Any) -> Any:
        """Make the same call with these arrays in place of the sample's own."""
        leaves, structure = tree.flatten(self.args)
        fresh = iter(arrays)
        return self.op(
            *tree.unflatten(structure, [next(fresh) if _is_array(leaf) else leaf for leaf in leaves]),
            **self.attrs,
        )

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays in `args`, in order: the inputs of the op."""
        return tuple(filter(_is_array, tree.leaves(self.args)))

    @property
    def differentiable(self) -> tuple[int, ...]:
        """The positions in `arrays` that have a gradient; none when the result is not floating point."""
        inputs, attrs = self.prepared()
        if self.op.infer(*map(spec_of, inputs), **attrs).dtype.kind != "f":
            return ()
        return tuple(i for i, a in enumerate(self.arrays) if a.dtype.kind == "f" and self.op.rule(i) is not None)

    def patterns(self) -> Iterator[tuple[int, ...]]:
        """Every choice of at least one differentiable input to require a gradient."""
        inputs = self.differentiable
        return chain.from_iterable(combinations(inputs, n) for n in range(1, len(inputs) + 1))

    def prepared(self) -> tuple[tuple[Array, ...], Attrs]:
        """The arrays and attributes that reach the kernel."""
        if self.op.prepare is None:
            return self.arrays, {}
        inputs, attrs = self.op.prepare(*self.args, **self.attrs)
        return tuple(inputs), attrs

    def cast(self, dtype: npt.DTypeLike) -> Sample:
        """The same call with its floating point arrays in another dtype; for ints and bools, 1 or more."""
        kind = np.dtype(dtype).kind

        def convert(leaf: Any) -> Any:
            if not _is_array(leaf) or leaf.dtype.kind != "f":
                return leaf
            with np.errstate(invalid="ignore"):  # NaN has no integer; any will do
                return np.asarray((leaf if kind == "f" else np.ceil(np.abs(leaf))).astype(dtype))

        return replace(self, args=tree.tree_map(convert, self.args))

    def __str__(self) -> str:
        return f"{self.op.name}-{self.title}"


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray)


class Values:
    """Arrays for one op, the same on every machine: the seed is the op's name."""

    def __init__(self, name: str) -> None:
        self._random = np.random.default_rng(zlib.crc32(name.encode()))

    def real(self, shape: Sizes) -> Array:
        """Numbers between -2 and 2, at least 0.1 away from whole and half numbers, where some op has a kink."""
        return np.asarray(self._whole(shape, -2, 2) + self._part(shape))

    def positive(self, shape: Sizes) -> Array:
        """Numbers between 0.1 and 2."""
        return np.asarray(self._whole(shape, 0, 2) + self._part(shape))

    def unit(self, shape: Sizes) -> Array:
        """Numbers between -0.8 and 0.8: inside the domain of the inverse sine."""
        return np.asarray(self._random.uniform(-0.8, 0.8, shape))

    def above_minus_one(self, shape: Sizes) -> Array:
        """Numbers between -0.9 and 1."""
        return np.asarray(self.positive(shape) - 1)

    def matrix(self, shape: Sizes) -> Array:
        """Matrices of full rank, whose singular values lie apart."""
        part = self._random.uniform(-0.4, 0.4, shape)
        return np.asarray(part + np.eye(shape[-2], shape[-1]) * (1 + np.arange(shape[-1])))

    def bools(self, shape: Sizes) -> Array:
        """Random bools."""
        return np.asarray(self._random.integers(0, 2, shape) == 1)

    def ints(self, shape: Sizes, low: int = -3, high: int = 4) -> Array:
        """Integers from `low` up to, but without, `high`; some occur twice."""
        return np.asarray(self._random.integers(low, high, shape))

    def _whole(self, shape: Sizes, low: int, high: int) -> Array:
        return np.asarray(self._random.integers(low, high, shape), np.float64)

    def _part(self, shape: Sizes) -> Array:
        return np.asarray(self._random.uniform(0.1, 0.4, shape) + 0.5 * self._random.integers(0, 2, shape))


def calls(cases: Mapping[str, Sequence[Any]], operands_of: Callable[..., Given]) -> Maker:
    """A call for each case: `given(values, *case)` makes its arguments and options."""

    def make(op: Op, values: Values) -> Iterator[Case]:
        for title, case in cases.items():
            yield title, *operands_of(values, *case)

    return make


def join_makers(*makers: Maker) -> Maker:
    """The calls of several makers, one after the other."""
    return lambda op, values: chain.from_iterable(maker(op, values) for maker in makers)


def real(values: Values, shape: Sizes, options: Mapping[str, Any] = MappingProxyType({})) -> Given:
    """One array of real numbers."""
    return (values.real(shape),), dict(options)
