"""What tests an op: sample calls of every op in the registry, and gradients against finite differences.

`check_grads` compares reverse mode with central differences, along random directions, to any order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import optree

from graphs import ops, tree
from graphs.errors import GraphError
from graphs.ops.shapes import dtype_of, shape_of
from graphs.testing.sample import Sample
from graphs.testing.samples import samples

__all__ = ["Sample", "check_grads", "samples"]


Point = list[npt.NDArray[np.float64]]
Scalar = Callable[[list[Any]], Any]

# The step that balances truncation (h^2) and rounding (eps / h) in a central difference: Nocedal and Wright,
# Numerical Optimization, 2nd edition, section 8.1.
STEP = float(np.finfo(np.float64).eps ** (1 / 3))


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 1,
    *,
    engine: ModuleType | None = None,
    argnums: Sequence[int] | None = None,
    seed: int = 0,
    rtol: float = 1e-5,
    atol: float = 1e-7,
) -> None:
    """Compare the gradients of `f(*args)` with central differences in float64, along random directions.

    `args` and what `f` returns may be nested containers. Arrays that are not floating point are held fixed,
    and so are the arguments that `argnums` leaves out. Order 2 differentiates the gradient along a random
    direction again, and so on. `engine` is the module `dynamic` or `static`, by default each that is loaded.

    There is one direction of length 1 per array; the step is cbrt(eps) times the larger of 1 and the largest
    value of the array (Nocedal and Wright, Numerical Optimization, 2nd edition, section 8.1).
    Raises AssertionError naming the argument, both numbers and the seed of the direction.
    """
    loss, point, names = _flat_problem(f, tuple(args), argnums, seed)
    for module in [engine] if engine else _imported_engines():
        _Check(module, names, seed, rtol, atol).run(loss, point, order, 1)


def _imported_engines() -> list[ModuleType]:
    engines = [sys.modules[name] for name in ("dynamic", "static") if name in sys.modules]
    if not engines:
        raise GraphError("check_grads needs an engine; import dynamic or static, or pass engine=")
    return engines


def _flat_problem(
    f: Callable[..., Any], args: tuple[Any, ...], argnums: Sequence[int] | None, seed: int
) -> tuple[Scalar, Point, list[str]]:
    """`f` as a scalar function of a list of float64 arrays, those arrays, and a name for each."""
    leaves, structure = tree.flatten(args)
    chosen = range(len(args)) if argnums is None else argnums
    roots = [path[0] for path in optree.tree_paths(args)]  # type: ignore[arg-type]
    active = [i for i, leaf in enumerate(leaves) if roots[i] in chosen and dtype_of(leaf).kind == "f"]

    def loss(values: list[Any]) -> Any:
        filled = list(leaves)
        for i, value in zip(active, values, strict=True):
            filled[i] = value
        # A scalar in which every floating point output takes part, each element with a weight of its own.
        outputs = f(*tree.unflatten(structure, filled))
        floats = [leaf for leaf in tree.leaves(outputs) if dtype_of(leaf).kind == "f"]
        if not floats:
            raise GraphError("check_grads: the function returns nothing that has a gradient; return a floating value")
        total: Any = 0.0
        for i, leaf in enumerate(floats):
            total = ops.add(total, ops.sum(ops.multiply(leaf, _normal(shape_of(leaf), seed, i))))
        return total

    names = tree.paths(f, args)
    return loss, [np.asarray(leaves[i], np.float64) for i in active], [names[i] for i in active]


def _normal(shape: Sequence[Any], *seed: int) -> npt.NDArray[np.float64]:
    return np.asarray(np.random.default_rng(seed).standard_normal(tuple(shape)))


@dataclass(frozen=True)
class _Check:
    engine: ModuleType
    names: list[str]
    seed: int
    rtol: float
    atol: float

    def run(self, loss: Scalar, point: Point, order: int, level: int) -> None:
        """Check the gradient of `loss` at `point`, then that of its slope along the directions."""
        compiles = hasattr(self.engine, "compile")
        value_and_grad = self.engine.value_and_grad(loss)
        if compiles:
            value_and_grad = self.engine.compile(value_and_grad, point)
        gradients = value_and_grad(point)[1]
        # To compile the slope of a gradient by itself takes longer than to run it with its own gradients.
        plain = (lambda values: value_and_grad(values)[0]) if compiles and level > 1 else loss
        directions = [self._direction(level, i, x.shape) for i, x in enumerate(point)]
        for i, direction in enumerate(directions):
            self._compare(level, i, float(np.sum(gradients[i] * direction)), _slope(plain, point, i, direction))
        if level < order:
            self.run(self._slope_of_gradient(loss, directions), point, order, level + 1)

    def _direction(self, level: int, i: int, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        direction = _normal(shape, self.seed, level, i)
        return direction / max(float(np.linalg.norm(direction)), np.finfo(np.float64).tiny)

    def _slope_of_gradient(self, loss: Scalar, directions: Point) -> Scalar:
        def slope(values: list[Any]) -> Any:
            gradients = self.engine.grad(loss)(values)
            total: Any = 0.0
            for gradient, direction in zip(gradients, directions, strict=True):
                total = ops.add(total, ops.sum(ops.multiply(gradient, direction)))
            return total

        return slope

    def _compare(self, level: int, i: int, reverse: float, numerical: float) -> None:
        if not np.isclose(reverse, numerical, rtol=self.rtol, atol=self.atol):
            raise AssertionError(
                f"{self.engine.__name__}: the gradient of order {level} in {self.names[i]} is {reverse!r} by "
                f"reverse mode but {numerical!r} by central differences, along the direction of seed "
                f"{(self.seed, level, i)}"
            )


def _slope(function: Scalar, point: Point, i: int, direction: npt.NDArray[np.float64]) -> float:
    """The central difference of a scalar function along a direction in one of its arrays."""
    step = STEP * max(1.0, float(np.max(np.abs(point[i]), initial=0.0)))

    def at(shift: float) -> float:
        return float(function([*point[:i], point[i] + shift * direction, *point[i + 1 :]]))

    return (at(step) - at(-step)) / (2 * step)
