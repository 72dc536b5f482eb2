"""Pullbacks: what an op keeps for its gradient, and how a cotangent passes back through it, once for both engines."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, NamedTuple, cast

from graphs import reverse
from graphs.op import Attrs, Op, Rule

Value = Any
Ndims = tuple[int | None, ...] | None


COMMON = -1


class RuleStep(NamedTuple):
    """The rule of one input: the places of its residuals among the saved values, and those that no later rule reads.

    The number `COMMON` is of what the others share, which comes first.
    """

    number: int
    rule: Rule
    places: tuple[int, ...]
    last: tuple[int, ...]


class Pullback:
    """One op with the inputs that want a gradient, `wanted` as a bit set; made once and shared by all its calls.

    ndims      the number of axes of each input (None for a Python number), where the op's name in PyTorch depends on it
    fields     the expression of each saved value in `inputs`, `out` and `attrs`
    save       `save(inputs, out, attrs)`: the residuals of all rules, each value once
    sources    for each saved value the number of the input that it is, `OUTPUT`, or None
    """

    __slots__ = ("__weakref__", "count", "fields", "ndims", "op", "save", "sources", "steps", "wanted")

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
        text = "".join(field + ", " for field in fields)
        # One compiled expression, because this runs for every recorded op.
        self.save: Callable[[Sequence[Value], Value, Attrs], tuple[Value, ...]] = eval(  # noqa: S307
            f"lambda inputs, out, attrs: ({text})"
        )

    def pull(
        self, inputs: Sequence[Any], values: list[Value], useful: Container[Any] | None = None
    ) -> Iterator[tuple[Any, Value]]:
        """Each input that wants a gradient, with its contribution.

        `values` are the saved values and then the cotangent; each is dropped after the last rule that reads it.
        An input has a `shape` and a `dtype`; one that is not `useful` is passed over.
        """
        for step in self.steps:
            if step.number == COMMON:
                values[-1] = step.rule.apply(values[-1], *[values[place] for place in step.places])
                continue
            source = inputs[step.number]
            contribution = None
            if useful is None or source in useful:
                contribution = step.rule.apply(values[-1], *[values[place] for place in step.places])
            for place in step.last:
                values[place] = None
            if contribution is not None:
                if self.op.broadcasts:
                    contribution = reverse.conform(contribution, source.shape, source.dtype)
                yield source, contribution


@functools.lru_cache(maxsize=4096)
def pullback(op: Op, wanted: int, count: int, ndims: Ndims = None) -> Pullback:
    """The pullback of an op for the inputs in the bit set `wanted`, of `count`."""
    return Pullback(op, wanted, count, ndims)
