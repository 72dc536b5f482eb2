"""One program as a function with nested arguments, what it shall give, and how near that two results have to be."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import dynamic
import graphs as g
from graphs.errors import GraphError
from tests.fuzz.mix import EVERYTHING
from tests.helpers.random_graphs import BATCH, Program, random_program

TOLERANCE = {8: 1e-8, 4: 1e-3, 2: 0.1}  # by the bytes of the smallest float in a program
STEP = 1e-6
SCALE = 1.5  # a Python number among the arguments, which a graph is specialised to
Array = np.ndarray


class Split(NamedTuple):
    """The inputs of a program by what they are as arguments: floats have a gradient, the others are data."""

    floats: list[int]
    others: list[int]

    def arguments(self, inputs: Any) -> tuple[Any, Any]:
        """Nested containers of the inputs, and a Python number among them."""
        first, *rest = [inputs[i] for i in self.floats]
        params = {"b": (first, [rest[0]]), "a": rest[1:]} if rest else [first]
        return params, {"n": SCALE, "whole": [inputs[i] for i in self.others]}

    def inputs(self, params: Any, data: Any) -> list[Any]:
        """The inputs in their order again."""
        found: dict[int, Any] = dict(zip(self.others, data["whole"], strict=True))
        if isinstance(params, dict):
            floats = [params["b"][0], params["b"][1][0], *params["a"]]
        else:
            floats = list(params)
        found.update(zip(self.floats, floats, strict=True))
        return [found[i] for i in range(len(found))]


class Case:
    """A program, its arguments, and what all ways to run it are compared with, found out when somebody asks."""

    def __init__(self, program: Program) -> None:
        self.program = program
        kinds = [x.dtype.kind for x in program.inputs]
        self.split = Split([i for i, k in enumerate(kinds) if k == "f"], [i for i, k in enumerate(kinds) if k != "f"])
        self.args = self.split.arguments(program.inputs)
        self.random = np.random.default_rng(program.seed)
        self.tolerance = TOLERANCE[program.smallest]

    def at(self, inputs: Any) -> tuple[Any, Any]:
        """Arguments that hold other inputs."""
        return self.split.arguments(inputs)

    def step(self, params: Any, data: Any) -> tuple[Any, list[Any]]:
        """A scalar, and the outputs of the program beside it."""
        values = self.program.values(self.split.inputs(params, data))
        return self.result(values, data["n"])

    def result(self, values: list[Any], scale: float = SCALE) -> tuple[Any, list[Any]]:
        """What `step` makes of all values."""
        return self.program.scalar(values) * scale, [values[i] for i in self.program.outputs]

    def outputs(self, params: Any, data: Any) -> list[Any]:
        """The outputs alone."""
        return self.step(params, data)[1]

    def slices(self) -> tuple[int, int]:
        """The first and the end of some steps in a row."""
        start, end = sorted(self.random.integers(0, len(self.program.steps) + 1, 2))
        return int(start), int(end)

    def through(self, inputs: list[Any], part: tuple[int, int], call: Callable[..., Any]) -> list[Any]:
        """All values, where a few steps in a row are done by what `call` makes of a function that does them."""
        start, end = part
        before = self.program.values(inputs, end=start)
        after = call(lambda *values: self.program.values(values, start, end)[len(values) :])(*before)
        return self.program.values([*before, *after], end)

    @functools.cached_property
    def expected(self) -> Any:
        """((scalar, outputs), gradient), by the dynamic engine as it is."""
        return dynamic.value_and_grad(self.step, has_aux=True)(*self.args)

    @functools.cached_property
    def refusal(self) -> type[GraphError] | None:
        """What every way has to raise, if the program breaks a rule."""
        try:
            self.program.values(self.program.inputs)
        except GraphError as error:
            return type(error)
        return None

    @property
    def batch(self) -> int | None:
        """The size of the first axis that may be symbolic, if an argument has one."""
        sizes = [x.shape[0] for x in self.program.inputs if x.ndim and x.shape[0] in BATCH]
        return sizes[0] if sizes else None

    def resized(self, size: int) -> list[Array]:
        """The inputs with a larger or smaller batch."""
        return [
            np.resize(x, (size, *x.shape[1:])) if x.ndim and x.shape[0] in BATCH else x for x in self.program.inputs
        ]


def case_of(seed: int) -> Case:
    """The case of this seed."""
    return Case(random_program(seed, EVERYTHING))


# Comparison ---------------------------------------------------------------------------------------------------------


def agree(found: Any, expected: Any, tolerance: float, what: str = "") -> None:
    """Assert that structures, shapes and dtypes are the same, and values but for rounding."""
    ours, structure = g.tree.flatten(found)
    others, expected_structure = g.tree.flatten(expected)
    assert structure == expected_structure, f"{what}: {structure} is not {expected_structure}"
    for number, (a, b) in enumerate(zip(ours, others, strict=True)):
        near(plain(a), plain(b), tolerance, f"{what} leaf {number}")


def plain(value: Any) -> Array:
    """A result as an array."""
    return value.detach().numpy() if isinstance(value, dynamic.Tensor) else np.asarray(value)


def near(a: Array, b: Array, tolerance: float, what: str) -> None:
    """Assert that two arrays have the same shape and dtype, and the same values but for rounding."""
    assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{what}: {a.dtype}{a.shape} is not {b.dtype}{b.shape}"
    if b.dtype.kind == "f":
        finite = np.abs(b[np.isfinite(b)])
        scale = 1 + np.max(finite, initial=0)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale, err_msg=what)
    else:
        np.testing.assert_array_equal(a, b, err_msg=what)


def same_bits(found: Any, expected: Any, what: str = "") -> None:
    """Assert that every bit is the same."""
    agree(found, expected, 0.0, what)
    for a, b in zip(g.tree.leaves(found), g.tree.leaves(expected), strict=True):
        assert plain(a).tobytes() == plain(b).tobytes(), f"{what}: bits differ"
