"""The table of all ops and functions, as Markdown: `python -m graphs.testing.table > docs/ops.md`.

All of it is found out from the op library, by `graphs.testing.traits`; only the reasons why functions of the standard
are absent are written down, in `graphs.testing.table`.

The functions and constants of the Python array API standard 2024.12, and why some are not here.

Names are those of https://data-apis.org/array-api/2024.12/; the reasons are the only thing that is not found out.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

import numpy as np

from graphs import linalg, ops
from graphs.frontends.numpy import functions as numpy_functions
from graphs.op import Op
from graphs.testing import traits
from graphs.testing.traits import Engines, SampleCall


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
    function, calls = traits.named(name), traits.calls(name)
    first = next((c for c in calls if all(a.size for a in c.arrays)), calls[0])
    gradient = _gradient(calls, engines)
    family = function.family if isinstance(function, Op) else function.__module__.rpartition(".")[2]
    return (
        f"`{name}`",
        "✓" if name.removeprefix("linalg.") in STANDARD else "",
        ", ".join(f"`{n}`" for n in _numpy_names().get(name, [])),
        family,
        traits.grouped(traits.dtypes(first, engines)),
        *gradient,
        traits.flops(first, engines),
        "✓" if any(traits.is_view(call) for call in calls) else "",
        traits.notes(function) if gradient[0] and family != "control" else "",
    )


def _gradient(calls: list[SampleCall], engines: Engines) -> tuple[str, str, str]:
    """The inputs with a gradient, its order and its form, from the first sample that has one."""
    for call in calls:
        positions = traits.differentiable(call, engines) if all(a.size for a in call.arrays) else []
        if positions:
            names = dict.fromkeys(call.names()[i] for i in positions)
            return ", ".join(names), str(traits.order(call, positions, engines)), traits.form(call, positions, engines)
    return "", "", ""


@functools.cache
def _numpy_names() -> dict[str, list[str]]:
    """The names in NumPy of each function, as the NumPy protocols have them."""
    names: dict[str, list[str]] = {name: [] for name in traits.functions()}
    for name, aliases in names.items():
        if isinstance(getattr(np, name, None), np.ufunc):
            aliases.append(name)
    for numpy_name, op in (numpy_functions.UFUNC_OPS | {"rint": ops.round}).items():
        if numpy_name not in names[op.name]:
            names[op.name].append(numpy_name)
    for function, ours in numpy_functions.FUNCTIONS.items():
        for name, aliases in names.items():
            if traits.named(name) in _made_of(ours) and function.__name__ not in aliases:
                aliases.append(function.__name__)
    return names


def _made_of(function: Callable[..., Any]) -> list[Any]:
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
    for name in traits.functions():
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
