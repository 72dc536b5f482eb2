"""What a workload is: plain functions over graphs ops, with the data and the sizes they are measured at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Expect = Literal["tie", "static", "dynamic", "open"]
WorkloadKind = Literal[
    "control",
    "chains of ops",
    "networks over batches",
    "sequences of varying length",
    "structure that varies",
    "loops until done",
    "real models",
    "own",
]
Array = Any
Params = dict[str, Any]
Example = tuple[Any, ...]
Dims = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """One workload at one size: the function, its parameters, and the stream of examples it meets.

    loss         `loss(params, *example) -> scalar`, a plain function over graphs ops
    params       nested dicts of float32 arrays
    examples     the stream, in order; one element when nothing varies
    lengths      the useful size of each example (elements asked for); all equal when nothing varies
    masked       `masked(params, *example, mask) -> scalar`: the loss that stays right when a policy pads the
                 example. The harness passes `mask = ones(length, bool)`; padding extends it with False.
                 None when the workload cannot be padded.
    dims         the varying axes of `(params, *example)` as `static.jit` takes them, e.g. `(None, ("T",))`
    static_loss  the loss rewritten without Python control flow on values, for a trace that does not convert it;
                 None where `loss` has none
    scanned      the loss with its loop over a varying axis as `graphs.scan`, so that one graph with a symbolic size
                 serves every length; None where there is no such loop
    branches     whether `loss` decides on values with Python's own control flow, which the static engine converts where
                 there is no `static_loss`
    argnum       the argument of `(params, *example)` whose gradients a step takes; None for the output alone
    """

    loss: Callable[..., Any]
    params: Any
    examples: tuple[Example, ...]
    lengths: tuple[int, ...]
    masked: Callable[..., Any] | None = None
    dims: Dims | None = None
    static_loss: Callable[..., Any] | None = None
    scanned: Callable[..., Any] | None = None
    branches: bool = False
    argnum: int | None = 0

    def __post_init__(self) -> None:
        if not self.examples or len(self.examples) != len(self.lengths):
            raise ValueError(f"one length per example, got {len(self.lengths)} for {len(self.examples)} examples")

    @property
    def varies(self) -> bool:
        """Whether the examples form a stream rather than one fixed input."""
        return len(self.examples) > 1

    def masked_example(self, index: int) -> Example:
        """The example with the mask that `masked` takes as its last argument."""
        return (*self.examples[index], np.ones(self.lengths[index], dtype=bool))


@dataclass(frozen=True)
class Workload:
    """A case at each of several sizes, what it shows, and which engine should win if theory is right.

    kind      what a claim about this kind of workload judges it among; "control" and "own" are judged among none
    sizes     small, medium, large -> the keyword arguments of `make`
    policies  the static shape policies that apply: "exact" where shapes are fixed, "converted" where the loss has
              control flow on values that the static engine converts
    """

    name: str
    title: str
    shows: str
    expect: Expect
    kind: WorkloadKind
    sizes: Mapping[str, Mapping[str, int]]
    make: Callable[..., Case]
    policies: tuple[str, ...] = ("exact",)

    def case(self, size: str) -> Case:
        """The case of that size. Raises KeyError naming the sizes there are."""
        if size not in self.sizes:
            raise KeyError(f"{self.name} has no size {size!r}; its sizes are {', '.join(self.sizes)}")
        return self.make(**self.sizes[size])

    @property
    def modes(self) -> tuple[str, ...]:
        """What is measured side by side: the dynamic engine, and the static one under each policy."""
        return ("dynamic", *(f"static-{policy}" for policy in self.policies))
