"""What a public function of graphs does, found out by asking and by trying: dtypes, gradients, kinks, cost, views."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs import linalg, ops, tree
from graphs.cost import graph_cost
from graphs.errors import ControlFlowError, GraphError, LinAlgError
from graphs.op import Op, registered
from graphs.ops.shapes import dtype_of, shape_of
from graphs.testing.gradients import check_grads
from graphs.testing.sample import Values
from graphs.testing.samples import CALLS, samples

Array = npt.NDArray[Any]
Function = Callable[..., Any]

DTYPES = (
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
)
_GROUPS = {"bool": DTYPES[:1], "int": DTYPES[1:9], "float": DTYPES[9:]}
HIGHEST = 3  # orders of gradients that are tried


@dataclass(frozen=True)
class Engines:
    """The engine that traces and the one that records: given, since graphs imports neither."""

    static: ModuleType
    dynamic: ModuleType


@dataclass(frozen=True)
class SampleCall:
    """A function with sample arguments. Calling it with arrays puts them in place of its own."""

    function: Function
    args: tuple[Any, ...]
    options: dict[str, Any]

    @property
    def arrays(self) -> list[Array]:
        """The arrays among the arguments."""
        return [leaf for leaf in tree.leaves(self.args) if isinstance(leaf, np.ndarray)]

    def __call__(self, *arrays: Any) -> list[Any]:
        """The results that have a dtype."""
        fresh, leaves = iter(arrays), tree.leaves(self.args)
        filled = [next(fresh) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
        results = self.function(*tree.unflatten(tree.flatten(self.args)[1], filled), **self.options)
        return [leaf for leaf in tree.leaves(results) if hasattr(leaf, "shape") and hasattr(leaf, "dtype")]

    def names(self) -> list[str]:
        """The name of the parameter that each array is passed to."""
        named = _parameters(self.function)
        places = [i for i, arg in enumerate(self.args) for leaf in tree.leaves(arg) if isinstance(leaf, np.ndarray)]
        return [named[min(place, len(named) - 1)] for place in places]


def _parameters(function: Function) -> list[str]:
    """The names of the positional parameters; those of an op without a `prepare` are its rules'."""
    source = function.prepare if isinstance(function, Op) else function
    if source is None:
        return ["x", "y", "z"]
    kinds = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    return [p.name for p in inspect.signature(source).parameters.values() if p.kind in kinds] or ["x"]


def functions() -> list[str]:
    """The names of the public functions, ops and composites, in order; those of graphs.linalg alone with its name."""
    public = [name for name in ops.public if callable(getattr(ops, name)) and not isinstance(getattr(ops, name), type)]
    own = [name for name in linalg.__all__ if not isinstance(getattr(linalg, name), type) and name not in ops.public]
    return sorted([*public, *(f"linalg.{name}" for name in own)], key=lambda name: name.strip("_"))


def named(name: str) -> Function:
    """The public function of that name."""
    space, _, own = name.rpartition(".")
    function: Function = getattr(linalg if space else ops, own)
    return function


def calls(name: str) -> list[SampleCall]:
    """Sample calls of a public function. Raises GraphError when it has none."""
    function = named(name)
    if name in CALLS:
        args, options = CALLS[name](Values(name))
        return [SampleCall(function, args, options)]
    op = function.name if isinstance(function, Op) else name
    if op not in registered():
        raise GraphError(f"{name} has no sample call; add one to graphs/testing/samples.py")
    return [SampleCall(function, sample.args, dict(sample.attrs)) for sample in samples(op)]


# Dtypes -----------------------------------------------------------------------------------------------------------


def dtypes(call: SampleCall, engines: Engines) -> list[str]:
    """The dtypes that the floating point inputs may have; those of all inputs where none is floating point."""
    if not call.arrays:
        return []
    floats = any(a.dtype.kind == "f" for a in call.arrays)
    return [name for name in DTYPES if _accepts(call, name, floats, engines)]


def _accepts(call: SampleCall, dtype: str, floats: bool, engines: Engines) -> bool:
    arrays = [np.abs(a).astype(dtype) if a.dtype.kind == "f" or not floats else a for a in call.arrays]
    try:
        engines.static.trace(call, *arrays)
    except ControlFlowError:
        return True  # the sizes of its results depend on values, whatever their dtype
    except (GraphError, TypeError):
        return False
    return True


def grouped(names: Iterable[str]) -> str:
    """Names of dtypes in short: "bool, int, float32"."""
    left = list(names)
    short: list[str] = []
    for group, members in _GROUPS.items():
        if set(members) <= set(left):
            short.append(group)
        else:
            short += [m for m in members if m in left]
    return ", ".join(short)


# Gradients --------------------------------------------------------------------------------------------------------


def differentiable(call: SampleCall, engines: Engines) -> list[int]:
    """The arrays that have a gradient: those with which the result requires one."""
    return [i for i, a in enumerate(call.arrays) if a.dtype.kind == "f" and _requires(call, i, engines)]


def _requires(call: SampleCall, position: int, engines: Engines) -> bool:
    arrays: list[Any] = list(call.arrays)
    arrays[position] = engines.dynamic.tensor(arrays[position], requires_grad=True)
    try:
        results = call(*arrays)
    except GraphError:
        return False
    return any(getattr(r, "requires_grad", False) for r in results)


def order(call: SampleCall, positions: list[int], engines: Engines) -> int:
    """The highest order, up to `HIGHEST`, to which gradients exist in both engines and equal finite differences."""
    return min(_order(call, positions, engine) for engine in (engines.dynamic, engines.static))


def _order(call: SampleCall, positions: list[int], engine: ModuleType) -> int:
    for level in range(HIGHEST, 0, -1):
        try:
            check_grads(call, call.arrays, level, engine=engine, argnums=positions, rtol=1e-4, atol=1e-5)
        except (AssertionError, GraphError):
            continue
        return level
    return 0


def form(call: SampleCall, positions: list[int], engines: Engines) -> str:
    """One of "smooth", "piecewise" (the gradient jumps somewhere) and "constant" (the gradient is 0 everywhere)."""
    slope = _slope_along_a_line(call, positions, engines)
    points = np.linspace(-2.61, 2.57, 64)  # sample values lie between -2 and 2: every element crosses 0
    slopes = np.array([slope(t) for t in points])
    if not np.any(slopes[np.isfinite(slopes)]):
        return "constant"
    steepest = np.argsort(-np.nan_to_num(np.abs(np.diff(slopes))))[:4]
    return "piecewise" if any(_jumps(slope, points[i], points[i + 1]) for i in steepest) else "smooth"


def _slope_along_a_line(call: SampleCall, positions: list[int], engines: Engines) -> Callable[[float], float]:
    """The derivative of a weighted sum of the results, as one number moves all inputs along a direction."""
    random = np.random.default_rng(0)
    shapes = {i: call.arrays[i].shape for i in positions}
    directions = {i: random.choice([-1, 1], s) * random.uniform(0.9, 1.1, s) for i, s in shapes.items()}
    for i, array in enumerate(call.arrays):
        if i in directions and array.ndim > 1 and np.array_equal(array, array.mT):
            directions[i] = (directions[i] + directions[i].mT) / 2  # what is symmetric may have to stay so

    def total(t: Any) -> Any:
        arrays = [
            a if i not in directions else ops.add(a, ops.multiply(t, directions[i])) for i, a in enumerate(call.arrays)
        ]
        weights = np.random.default_rng(1)
        results = [r for r in call(*arrays) if dtype_of(r).kind == "f"]
        parts = [ops.sum(ops.multiply(r, weights.normal(size=shape_of(r)))) for r in results]
        return sum(parts[1:], parts[0])

    gradient = engines.dynamic.grad(total)

    def slope(t: float) -> float:
        with np.errstate(all="ignore"):
            try:
                return float(gradient(np.asarray(t)))
            except LinAlgError:
                return float("nan")  # a point at which the function has no value

    return slope


def _jumps(slope: Callable[[float], float], low: float, high: float) -> bool:
    """Whether a jump stays between two points that come closer, while the slope stays finite: no pole, no NaN."""
    left, right = slope(low), slope(high)
    for _ in range(24):
        middle = (low + high) / 2
        here = slope(middle)
        if abs(here - left) > abs(right - here):
            high, right = middle, here
        else:
            low, left = middle, here
    steepness = max(abs(left), abs(right))
    return abs(right - left) > 1e-4 * (1 + steepness) and steepness < 1e3


def notes(function: Function) -> str:
    """What the docstring says of gradients where there is more than one choice."""
    text = re.sub(r"\s+", " ", inspect.getdoc(function) or "")
    parts = re.split(r"(?<=[a-z0-9`)\]])[.;:] ", text.rstrip("."))
    return "; ".join(part.strip() for part in parts if re.search(r"gradient|constant (to|by) diff", part))


# Cost and views ---------------------------------------------------------------------------------------------------


def flops(call: SampleCall, engines: Engines) -> str:
    """Floating point operations for each element, of the inputs or of the results, whichever are more."""
    try:
        graph = engines.static.trace(call, *call.arrays)
    except GraphError:
        return ""
    sizes = [int(np.prod(s, dtype=int)) for s in _shapes(graph)]
    return f"{int(str(graph_cost(graph).flops)) / max(1, *sizes):.3g}"


def _shapes(graph: Any) -> Iterator[tuple[int, ...]]:
    yield ()
    yield from (node.spec.shape for node in (*graph.inputs, *graph.outputs))


def is_view(call: SampleCall) -> bool:
    """Whether the result of the call shares memory with an input."""
    return any(np.shares_memory(r, a) for r in call(*call.arrays) for a in call.arrays if isinstance(r, np.ndarray))
