"""The table of all ops and functions, as Markdown: `python -m graphs.testing.table > docs/ops.md`.

All of it is found out from the op library. Only the reasons why functions of the Python array API standard 2024.12 are
absent are written down; names are those of https://data-apis.org/array-api/2024.12/.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs import linalg, ops, tree
from graphs.errors import ControlFlowError, GraphError, LinAlgError
from graphs.frontends.numpy import functions as numpy_functions
from graphs.ir import graph_cost
from graphs.op import Op, registered_ops
from graphs.ops.shapes import dtype_of, shape_of
from graphs.testing import check_grads
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
    """The static and the dynamic engine; they are passed in, since graphs imports neither."""

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


def find_function(name: str) -> Function:
    """The public function of that name."""
    space, _, own = name.rpartition(".")
    function: Function = getattr(linalg if space else ops, own)
    return function


def calls(name: str) -> list[SampleCall]:
    """Sample calls of a public function. Raises GraphError when it has none."""
    function = find_function(name)
    if name in CALLS:
        args, options = CALLS[name](Values(name))
        return [SampleCall(function, args, options)]
    op = function.name if isinstance(function, Op) else name
    if op not in registered_ops():
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


def group_dtypes(names: Iterable[str]) -> str:
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
    """The sentences of the docstring about gradients, for ops where there is more than one choice."""
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


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_COMPLEX = "complex dtypes are not supported"
_FFT = "the transforms are complex"

CORE = _names(
    """
    e inf nan newaxis pi
    arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu zeros
    zeros_like
    astype broadcast_arrays broadcast_to can_cast finfo iinfo isdtype result_type
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or
    bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide greater
    greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and
    logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow real
    reciprocal remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc
    take take_along_axis
    __array_namespace_info__
    matmul matrix_transpose tensordot vecdot
    concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile unstack
    argmax argmin count_nonzero nonzero searchsorted where
    unique_all unique_counts unique_inverse unique_values
    argsort sort
    cumulative_prod cumulative_sum max mean min prod std sum var
    all any diff
    """
)
LINALG = _names(
    """
    cholesky cross det diagonal eigh eigvalsh inv matrix_norm matrix_power matrix_rank outer pinv qr slogdet solve svd
    svdvals trace vector_norm
    """
)
FFT = _names(
    """
    fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift
    """
)

REASONS: dict[str, str] = {
    **dict.fromkeys(("conj", "imag", "real"), _COMPLEX),
    **dict.fromkeys(FFT, _FFT),
    **dict.fromkeys(("fftfreq", "rfftfreq", "fftshift", "ifftshift"), "of use with the transforms alone"),
}


STANDARD = CORE | LINALG | FFT

_HEAD = """\
# Ops and functions

Made by `python -m graphs.testing.table`; do not edit. Each row is found out by asking and by trying:

* **NumPy** is the NumPy function that becomes this one when it is called on a tensor or a symbol; **std** marks what
  the [array API standard 2024.12](https://data-apis.org/array-api/2024.12/) has under this name.
* **dtypes** are those that the op's `infer` accepts for its floating point inputs, or for all where none is.
* **gradient in** names the inputs that have a gradient. **order** is the highest, of the three that were tried, to
  which it equals finite differences in both engines. **form** tells whether the gradient is *smooth*, has jumps
  (*piecewise*), or is 0 everywhere (*constant*). **At kinks** is what the docstring says of gradients where there is
  a choice; the choices are PyTorch's.
* **flops** are floating point operations per element, of the inputs or of the result, whichever are more, on a sample.
* **view** marks results that share memory with the input.

The same functions run on arrays, in both engines, and in gradients of gradients. What begins with `linalg.` is in
`graphs.linalg`, and so are `cross`, `matmul`, `vector_norm` and the like.
"""
_COLUMNS = ("name", "std", "NumPy", "family", "dtypes", "gradient in", "order", "form", "flops", "view", "at kinks")


def row(name: str, engines: Engines) -> tuple[str, ...]:
    """The cells of one function."""
    function, tried = find_function(name), calls(name)
    first = next((c for c in tried if all(a.size for a in c.arrays)), tried[0])
    gradient = _gradient(tried, engines)
    family = function.family if isinstance(function, Op) else function.__module__.rpartition(".")[2]
    return (
        f"`{name}`",
        "✓" if name.removeprefix("linalg.") in STANDARD else "",
        ", ".join(f"`{n}`" for n in _numpy_names().get(name, [])),
        family,
        group_dtypes(dtypes(first, engines)),
        *gradient,
        flops(first, engines),
        "✓" if any(is_view(call) for call in tried) else "",
        notes(function) if gradient[0] and family != "control" else "",
    )


def _gradient(calls: list[SampleCall], engines: Engines) -> tuple[str, str, str]:
    """The inputs with a gradient, its order and its form, from the first sample that has one."""
    for call in calls:
        positions = differentiable(call, engines) if all(a.size for a in call.arrays) else []
        if positions:
            names = dict.fromkeys(call.names()[i] for i in positions)
            return ", ".join(names), str(order(call, positions, engines)), form(call, positions, engines)
    return "", "", ""


@functools.cache
def _numpy_names() -> dict[str, list[str]]:
    """The names in NumPy of each function, as the NumPy protocols have them."""
    names: dict[str, list[str]] = {name: [] for name in functions()}
    for name, aliases in names.items():
        if isinstance(getattr(np, name, None), np.ufunc):
            aliases.append(name)
    for numpy_name, op in (numpy_functions.UFUNC_OPS | {"rint": ops.round}).items():
        if numpy_name not in names[op.name]:
            names[op.name].append(numpy_name)
    for function, ours in numpy_functions.FUNCTIONS.items():
        for name, aliases in names.items():
            if find_function(name) in _underlying_functions(ours) and function.__name__ not in aliases:
                aliases.append(function.__name__)
    return names


def _underlying_functions(function: Callable[..., Any]) -> list[Any]:
    """A function, and what its arguments are handed to when it only brings them into another order."""
    if isinstance(function, Op) or not hasattr(function, "__code__"):
        return [function]
    name = function.__name__
    called = [n for n in function.__code__.co_names if name in ("<lambda>", f"_{n}")]
    return [
        function,
        *(held for n, held in inspect.getclosurevars(function).nonlocals.items() if n != "join"),  # of an initial value
        *(getattr(space, n, None) for n in called for space in (ops, linalg)),
    ]


def _markdown(engines: Engines) -> Iterator[str]:
    yield _HEAD
    yield f"| {' | '.join(_COLUMNS)} |"
    yield f"|{'---|' * len(_COLUMNS)}"
    for name in functions():
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row(name, engines))} |"
    yield from _standard()


def _standard() -> Iterator[str]:
    present = sorted(name for name in STANDARD if name in ops.public or name in linalg.__all__)
    yield "\n## The array API standard 2024.12\n"
    for title, names in (("core", CORE), ("linalg", LINALG), ("fft", FFT)):
        yield f"* {title}: {len(names & set(present))} of {len(names)} names are here."
    yield f"\nPresent: {', '.join(f'`{name}`' for name in present)}.\n\nAbsent:\n"
    yield "| name | reason |\n|---|---|"
    for name in sorted(STANDARD - set(present)):
        yield f"| `{name}` | {REASONS[name]} |"


def table(engines: Engines) -> str:
    """The whole page."""
    with redirect_stderr(StringIO()):  # some ops print what they are given
        return "\n".join(_markdown(engines)) + "\n"


if __name__ == "__main__":
    # By name: graphs depends on neither engine, only this command does.
    sys.stdout.write(table(Engines(*map(importlib.import_module, ("static", "dynamic")))))
