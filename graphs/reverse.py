"""Reverse-mode accumulation, written once: the tape runs it on arrays, a trace runs it on symbols.

Both engines visit recorded ops from the last to the first, apply rules with the functions here and add contributions
in the order they arrive, so that the only difference between them is *when* this runs. The compiled tape repeats it
in C; tests compare the two bit for bit.

Read `accumulate` first, then `Pullback`: the residuals an op keeps, and how a cotangent passes back through it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from graphs import dims, dispatch
from graphs.dims import Shape
from graphs.errors import NotDifferentiableError, locate
from graphs.op import OUTPUT, Attrs, Op, PartCotangents, Rule, SliceCotangent
from graphs.ops.elementwise import add
from graphs.ops.movement import astype, reshape, wider
from graphs.ops.reductions import sum
from graphs.ops.shapes import dtype_of, shape_of
from graphs.ops.slicing import add_at, place

Value = Any
Entry = TypeVar("Entry", bound=Hashable)
PullNode = Callable[[Entry, Value], Iterator[tuple[Entry, Value]]]


def accumulate(entries: Iterable[Entry], cotangents: dict[Entry, Value], pull: PullNode[Entry]) -> None:
    """Carry cotangents from outputs to inputs.

    `entries` come last to first; `pull(entry, cotangent)` yields each input of the entry with its contribution.
    On return `cotangents` holds the cotangents of the entries that were not visited: the sources.
    """
    own: set[Entry] = set()  # sources whose cotangent was made here of slices, so that nobody else sees it
    for entry in entries:
        if entry in cotangents:
            own.discard(entry)
            for source, contribution in pull(entry, cotangents.pop(entry)):
                if type(contribution) is SliceCotangent:
                    _arrive_at_slice(cotangents, source, contribution, own)
                else:
                    arrive(cotangents, source, contribution)
                del contribution  # while the next rule runs, nothing but `cotangents` holds it


def _arrive_at_slice(
    cotangents: dict[Entry, Value], source: Entry, contribution: SliceCotangent, own: set[Entry]
) -> None:
    """Add the cotangent of a slice to that of a source: on arrays in place, so T slices do not cost T full arrays."""
    held, g = cotangents.get(source), contribution.g
    is_plain = type(g) is np.ndarray and not dispatch.observers and not dispatch.detours
    if is_plain and type(held) is np.ndarray and held.dtype == g.dtype:
        cotangents[source] = add_at(held, g, contribution.key, own=source in own)
    else:
        arrive(cotangents, source, whole(contribution))
    if is_plain:
        own.add(source)


def whole(contribution: Value) -> Value:
    """A contribution as a value of the full shape: the cotangent of a slice gets zeros around it."""
    if type(contribution) is not SliceCotangent:
        return contribution
    return place.apply((contribution.g,), {"shape": contribution.shape, "key": contribution.key})


def arrive(cotangents: dict[Entry, Value], source: Entry, contribution: Value) -> None:
    """Add a contribution to the cotangent of a source."""
    cotangents[source] = total(cotangents.pop(source), contribution) if source in cotangents else contribution


def total(held: Value, contribution: Value) -> Value:
    """The sum of two cotangents of one value. The cotangents of several tensors at once are summed into `held`."""
    if not isinstance(held, PartCotangents):
        return add(held, contribution)
    for i, g in contribution.items():
        held[i] = total(held[i], g) if i in held else g
    return held


def conform(cotangent: Value, shape: Shape, dtype: np.dtype[Any]) -> Value:
    """A cotangent summed over the axes that broadcasting added or stretched, and cast back to the input's dtype."""
    if dtype_of(cotangent) != dtype:
        cotangent = astype(cotangent, dtype)
    return unbroadcast(cotangent, shape)


def unbroadcast(cotangent: Value, shape: Shape) -> Value:
    """A cotangent summed over the axes that broadcasting added or stretched."""
    have = shape_of(cotangent)
    if dims.same_shape(have, shape):
        return cotangent
    axes = broadcast_axes(have, shape)
    summed = sum.apply((cotangent,), {"axis": axes, "keepdims": False})
    return summed if len(have) - len(axes) == len(shape) else reshape.apply((summed,), {"shape": shape})


def broadcast_axes(have: Shape, shape: Shape) -> tuple[int, ...]:
    """The axes of `have` that broadcasting a value of `shape` added or stretched."""
    added = len(have) - len(shape)
    stretched = (i + added for i, s in enumerate(shape) if dims.same(s, 1) and not dims.same(have[i + added], 1))
    return (*range(added), *stretched)


def check_seed(output: Value, seed: Value | None) -> None:
    """Raise NotDifferentiableError for an output that is no float, a non-scalar without seed, or an unfit seed."""
    shape, dtype = shape_of(output), dtype_of(output)
    if dtype.kind != "f":
        raise NotDifferentiableError(locate(f"gradient of {dtype} values; only floating point outputs have gradients"))
    if seed is None and not all(dims.same(size, 1) for size in shape):
        raise NotDifferentiableError(
            locate(
                f"gradient of an output of shape {shape}: only scalars have one gradient; "
                "reduce it (sum, mean), or give the cotangent"
            )
        )
    if seed is not None and not dims.same_shape(shape_of(seed), shape):
        raise NotDifferentiableError(
            locate(f"the cotangent has shape {shape_of(seed)}, the output {shape}; make them equal")
        )


Ndims = tuple[int | None, ...] | None
"""For each input the number of axes of a tensor, its complement (~2) of an array that is none, None of a number."""


COMMON = -1


class RuleStep(NamedTuple):
    """One gradient rule of a pullback. `places` index the saved values it reads, `last` those that no later rule reads.

    `number` is that of the input, or `COMMON` for the work that the other rules share, which comes first.
    """

    number: int
    rule: Rule
    places: tuple[int, ...]
    last: tuple[int, ...]


class Pullback:
    """One op with the inputs that want a gradient, `wanted` as a bit set; made once and shared by all its calls.

    ndims      the number of axes of each input, where a rule depends on it
    fields     the expression of each saved value in `inputs`, `out` and `attrs`
    save       `save(inputs, out, attrs)`: the residuals of all rules, each value once
    sources    for each saved value the number of the input that it is, `OUTPUT`, or None
    reads      whether a rule reads the value of an input or of the output
    frees      whether a backward pass frees residuals that are values of tensors; else the pass may be repeated
    """

    __slots__ = (
        "__weakref__", "count", "fields", "frees", "ndims", "op", "reads", "save", "sources", "steps", "wanted"
    )  # fmt: skip

    def __init__(self, op: Op, wanted: int, count: int, ndims: Ndims = None) -> None:
        self.op, self.wanted, self.count, self.ndims = op, wanted, count, ndims
        shared = {COMMON: op.common} if op.common else {}
        rules = shared | {i: cast(Rule, op.rule(i)) for i in range(count) if wanted >> i & 1}
        fields_of = {i: rule.fields(str(i)) for i, rule in rules.items()}
        self.fields = fields = list(dict.fromkeys(field for of_one in fields_of.values() for field in of_one))
        reader = {field: i for i, of_one in fields_of.items() for field in of_one}  # the last one stays
        places = {i: tuple([fields.index(field) for field in of_one]) for i, of_one in fields_of.items()}
        self.steps = [
            RuleStep(i, rule, places[i], tuple([p for p in places[i] if reader[fields[p]] == i]))
            for i, rule in rules.items()
        ]
        final = self.steps[-1]
        self.steps[-1] = final._replace(last=(*final.last, -1))  # the cotangent
        residuals = [(f, r) for i, rule in rules.items() for f, r in zip(fields_of[i], rule.residuals, strict=True)]
        source = {field: residual.source for field, residual in residuals}
        self.sources = [source[field] for field in fields]
        self.reads = op.holds or any(source is not None for source in self.sources)
        self.frees = op.holds or any(map(self._is_of_tensor, self.sources))
        text = "".join(field + ", " for field in fields)
        # One compiled expression, because this runs for every recorded op.
        self.save: Callable[[Sequence[Value], Value, Attrs], tuple[Value, ...]] = eval(  # noqa: S307
            f"lambda inputs, out, attrs: ({text})"
        )

    def _is_of_tensor(self, source: int | None) -> bool:
        """Whether a saved value is a tensor's, not a number or array that was given to the call beside tensors."""
        if source is None or source == OUTPUT or self.ndims is None:
            return source is not None
        ndim = self.ndims[source]
        return ndim is not None and ndim >= 0

    @property
    def axes(self) -> Ndims:
        """The number of axes of each input, whether it is a tensor or an array; None for a number."""
        return self.ndims and tuple([ndim if ndim is None else max(ndim, ~ndim) for ndim in self.ndims])

    def pull(
        self, inputs: Sequence[Any], values: list[Value], useful: Container[Any] | None = None
    ) -> Iterator[tuple[Any, Value]]:
        """Yield each input that wants a gradient with its contribution.

        `values` are the saved values and then the cotangent; each is dropped after the last rule that reads it.
        An input has a `shape` and a `dtype`; an input outside `useful` is skipped.
        """
        if self.op.widens:
            values[:] = map(wider, values)
        for step in self.steps:
            if step.number == COMMON:
                values[-1] = step.rule.apply(values[-1], *[values[slot] for slot in step.places])
                continue
            source = inputs[step.number]
            contribution = None
            if useful is None or source in useful:
                contribution = step.rule.apply(values[-1], *[values[slot] for slot in step.places])
            for slot in step.last:
                values[slot] = None
            if contribution is not None:
                if self.op.broadcasts or self.op.widens:
                    contribution = conform(contribution, source.shape, source.dtype)
                yield source, contribution


@functools.lru_cache(maxsize=4096)
def pullback(op: Op, wanted: int, count: int, ndims: Ndims = None) -> Pullback:
    """The cached pullback of an op with `count` inputs, for the inputs in the bit set `wanted`."""
    return Pullback(op, wanted, count, ndims)
