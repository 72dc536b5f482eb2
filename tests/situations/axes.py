"""What a situation is made of, what goes together, and which pairs a set of rows leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from random import Random

Values = tuple[str, ...]
Pair = tuple[tuple[str, str], tuple[str, str]]

AXES: dict[str, Values] = {
    "asked": ("loss", "step", "inference"),
    "framework": ("torch", "stand-in", "graphduel", "jax", "tensorflow", "autograd"),
    "dtype": ("float32", "float64", "bfloat16 autocast", "float16"),
    "state": ("none", "buffer assigned", "buffer in place", "running statistics", "counter", "EMA"),
    "training": ("none", "AdamW", "schedule that ends", "clipping", "accumulation"),
    "calls": ("list", "DataLoader", "dict", "dataclass", "keywords"),
    "outputs": ("number", "tuple", "dict", "ModelOutput", "None"),
    "form": ("plain", "compiled already", "regionally compiled", "checkpointed", "compile disabled"),
    "where": ("file", "package", "method", "notebook", "installed", "closure"),
}

_PLAIN: dict[str, Values] = {
    "asked": ("loss", "inference"),
    "dtype": ("float32", "float64"),
    "state": ("none",),
    "calls": ("list", "dict", "keywords"),
    "outputs": ("number", "tuple", "dict"),
    "form": ("plain",),
}

ADMITS: dict[str, dict[str, Values]] = {
    "loss": {"training": ("none",), "outputs": ("number", "tuple", "dict", "ModelOutput")},
    "step": {"training": ("AdamW", "schedule that ends", "clipping", "accumulation")},
    "inference": {"training": ("none",), "outputs": ("number", "tuple", "dict", "ModelOutput")},
    "torch": {},
    "stand-in": {
        "dtype": ("float32", "float64"),
        "form": ("plain", "checkpointed"),
        "where": ("file", "package", "method", "installed", "closure"),
    },
    "jax": {
        "state": ("none", "running statistics", "counter", "EMA"),
        "calls": ("list", "dict", "dataclass", "keywords"),
        "outputs": ("number", "tuple", "dict", "ModelOutput"),
        "form": ("plain", "compiled already", "regionally compiled", "checkpointed"),
    },
    "tensorflow": {
        "state": ("none", "running statistics", "counter", "EMA"),
        "calls": ("list", "DataLoader", "dict", "keywords"),
        "form": ("plain", "compiled already", "regionally compiled"),
    },
    "graphduel": _PLAIN,
    "autograd": _PLAIN,
}
"""What a question, or a framework, takes of each axis; all of it where nothing is said.

The stand-in is our engine, which runs a file of PyTorch's.
"""


def admits(owner: str, axis: str, value: str) -> bool:
    """Whether a question or a framework goes with a value."""
    return value in ADMITS[owner].get(axis, AXES[axis])


def is_possible(values: Mapping[str, str]) -> bool:
    """Whether values, of some axes or of all, go together in some situation."""
    return any(
        all(values.get(axis, owner) == owner for axis, owner in (("asked", asked), ("framework", framework)))
        and admits(framework, "asked", asked)
        and all(admits(owner, axis, value) for axis, value in values.items() for owner in (asked, framework))
        for asked in AXES["asked"]
        for framework in AXES["framework"]
    )


def possible_pairs() -> Iterator[Pair]:
    """Each two values of two axes that go together."""
    for (one, ones), (other, others) in combinations(AXES.items(), 2):
        for pair in (((one, a), (other, b)) for a in ones for b in others):
            if is_possible(dict(pair)):
                yield pair


def pairs_of(values: Mapping[str, str]) -> set[Pair]:
    """The pairs that a row has."""
    return set(combinations(((axis, values[axis]) for axis in AXES), 2))


def missing(rows: Iterable[Mapping[str, str]]) -> list[Pair]:
    """The pairs that no row has."""
    found = {pair for values in rows for pair in pairs_of(values)}
    return [pair for pair in possible_pairs() if pair not in found]


def covering(rows: Iterable[Mapping[str, str]], tries: int = 40) -> Iterator[dict[str, str]]:
    """Rows that have every pair that these leave out; of some random ones each is that with the most new pairs."""
    left, random = set(missing(rows)), Random(0)
    while left:
        first = min(left)
        row = max((_filled(dict(first), random) for _ in range(tries)), key=lambda row: len(left & pairs_of(row)))
        left -= pairs_of(row)
        yield row


def _filled(values: dict[str, str], random: Random) -> dict[str, str]:
    for axis in sorted(AXES, key=lambda axis: random.random()):
        if axis not in values:
            values[axis] = random.choice([value for value in AXES[axis] if is_possible({**values, axis: value})])
    return values
