"""Pullbacks: what a recorded op keeps, and how a cotangent passes back through it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple, cast

from dynamic import straight
from dynamic.entry import Entry
from dynamic.learned import learned
from graphs import reverse
from graphs.op import Attrs, Op, Rule


class Step(NamedTuple):
    """The rule of one input: where its residuals are in what is saved, and the places that nobody reads after it."""

    number: int
    rule: Rule
    places: tuple[int, ...]
    last: tuple[int, ...]


class Pullback:
    """One op with the inputs that want a gradient, `wanted` as a bit set; made once and shared by its entries.

    ndims      the number of axes of each input (None for a Python number), where something hangs on that
    fields     the expression of each saved value in `inputs`, `out` and `attrs`
    save       `save(inputs, out, attrs)`: what the rules need, each value once
    sources    for each saved value the number of the input that it is, `OUTPUT`, or None
    apply      `apply(entry, keep, cotangents)`: the quickest way there is to carry the cotangent of an entry to its
               inputs when all values are arrays; the entry is released unless it is to be kept
    """

    __slots__ = ("__weakref__", "apply", "count", "fields", "ndims", "op", "save", "sources", "steps", "wanted")

    def __init__(self, op: Op, wanted: int, count: int, ndims: tuple[int | None, ...] | None) -> None:
        self.op, self.wanted, self.count, self.ndims = op, wanted, count, ndims
        rules = {i: cast(Rule, op.rule(i)) for i in range(count) if wanted >> i & 1}
        found = {i: rule.fields(str(i)) for i, rule in rules.items()}
        self.fields = fields = list(dict.fromkeys(field for of_one in found.values() for field in of_one))
        reader = {field: i for i, of_one in found.items() for field in of_one}  # the last one stays
        places = {i: tuple([fields.index(field) for field in of_one]) for i, of_one in found.items()}
        self.steps = [
            Step(i, rule, places[i], tuple([p for p in places[i] if reader[fields[p]] == i]))
            for i, rule in rules.items()
        ]
        final = self.steps[-1]
        self.steps[-1] = final._replace(last=(*final.last, -1))  # the cotangent
        source = {field: s for i, rule in rules.items() for field, s in zip(found[i], rule.sources, strict=True)}
        self.sources = [None if field.endswith((".shape", ".dtype")) else source[field] for field in fields]
        text = "".join(field + ", " for field in fields)
        # One compiled expression, because this runs for every recorded op.
        self.save: Callable[[Sequence[Any], Any, Attrs], tuple[Any, ...]] = eval(  # noqa: S307
            f"lambda inputs, out, attrs: ({text})"
        )
        self.apply: straight.Code = self._compile

    def _compile(self, entry: Entry, keep: bool, cotangents: dict[Any, Any]) -> None:
        """What `apply` is until it is first called."""
        self.apply = by_hand.get(self.op) or self._foreseen() or self.by_rules
        self.apply(entry, keep, cotangents)

    def _foreseen(self) -> straight.Code | None:
        """The kernel calls of the rules, written down once; of the library's rules alone, which read nothing else."""
        if self.op.family == "custom" or not all(step.rule.is_ours for step in self.steps):
            return None
        found = straight.compiled(self) if straight.is_possible(self.op, self.ndims) else None
        return found or learned(self)

    def by_rules(self, entry: Entry, keep: bool, cotangents: dict[Any, Any]) -> None:
        """Carry the cotangent of an entry to its inputs by the rules."""
        edges, saved = entry.taken(keep)
        values = [*saved, cotangents.pop(entry)]
        del saved  # `pull` lets go of each value after its last reader
        self.pull(edges, values, cotangents, None)

    def pull(
        self, edges: Sequence[Any], values: list[Any], cotangents: dict[Any, Any], useful: Container[Any] | None
    ) -> None:
        """Carry a cotangent to the inputs by the rules, whatever the values are: the saved ones, and the cotangent.

        `values` is emptied on the way; inputs that are not `useful` are passed over.
        """
        for step in self.steps:
            edge = edges[step.number]
            contribution = None
            if useful is None or edge in useful:
                contribution = step.rule.apply(values[-1], *[values[place] for place in step.places])
            for place in step.last:
                values[place] = None
            if contribution is not None:
                if self.op.broadcasts:
                    contribution = reverse.conform(contribution, edge.shape, edge.dtype)
                reverse.arrive(cotangents, edge, contribution)


by_hand: dict[Op, straight.Code] = {}
"""What `apply` is for some ops, where more is known than the rules tell: they say what it computes all the same."""


@functools.lru_cache(maxsize=4096)
def pullback(op: Op, wanted: int, count: int, ndims: tuple[int | None, ...] | None) -> Pullback:
    """The pullback of an op for the inputs in the bit set `wanted`, of `count`."""
    return Pullback(op, wanted, count, ndims)
