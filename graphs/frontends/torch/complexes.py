"""Complex numbers as pairs: two real tensors of one shape, of real and imaginary parts, behind the surface of a tensor.

Tensors stay real. `view_as_complex`, `complex` and `polar` make a pair; an op on one goes to a rule here, which is
written in ops on the parts, so that both engines run it and gradients need no code. A pair is no parameter, no buffer
and no input of a compiled function: there give its parts, by `view_as_real`. An op without a rule is refused by name.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from graphs import capture, dispatch, ops
from graphs.errors import DTypeError, locate
from graphs.frontends.torch import dtypes, picking
from graphs.frontends.torch.names import Methods, hold_pairs, name
from graphs.frontends.torch.words import promote, stand_ins
from graphs.op import RuleTable
from graphs.ops.shapes import dtype_of, shape_of
from graphs.surface import Surface

Rule = Callable[[Any, Sequence[Any], dict[str, Any]], Any]
_NUMBER = builtins.complex


class Complex(Methods, Surface):  # type: ignore[misc]  # max and min are PyTorch's here, not NumPy's
    """A pair of real tensors; `real` and `imag` are its parts."""

    __slots__ = ("imag", "real")
    __class__ = property(lambda self: capture.tensors[0] if capture.tensors else type(self))  # for isinstance

    real: Any
    imag: Any

    def __init__(self, real: Any, imag: Any) -> None:
        """A pair of parts of one shape and dtype."""
        self.real, self.imag = real, imag

    @property
    def shape(self) -> tuple[Any, ...]:
        """The size of each axis."""
        return shape_of(self.real)

    @property
    def dtype(self) -> Any:
        """complex128 of float64, else complex64."""
        return dtypes.complex128 if dtype_of(self.real) == np.float64 else dtypes.complex64

    @property
    def size(self) -> Any:
        """The number of elements; `size()` is the shape."""
        return self.real.size

    @property
    def device(self) -> Any:
        """The CPU."""
        return self.real.device

    @property
    def requires_grad(self) -> bool:
        """Whether operations on a part are recorded."""
        return bool(self.real.requires_grad or self.imag.requires_grad)

    def numel(self) -> Any:
        """The number of elements."""
        return self.real.numel()

    def dim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def clone(self) -> Complex:
        """A copy in the graph."""
        return Complex(self.real.clone(), self.imag.clone())

    def detach(self) -> Complex:
        """The pair without its history."""
        return Complex(self.real.detach(), self.imag.detach())

    def to(self, *args: Any, **options: Any) -> Self:
        """The pair itself: it is on the CPU. Raises DTypeError for a real dtype, which would lose a part."""
        wanted = {*args, *options.values()} - {self.dtype}
        if any(isinstance(value, (type, np.dtype, dtypes.dtype)) for value in wanted):
            raise DTypeError(locate(f"to: a pair of {self.dtype} has two parts; convert .real and .imag"))
        return self

    def contiguous(self, memory_format: Any = None) -> Self:
        """The pair itself."""
        del memory_format
        return self

    def conj(self) -> Complex:
        """The conjugate: the imaginary part with the other sign."""
        return Complex(self.real, ops.negative(self.imag))

    def angle(self) -> Any:
        """The angle of each number, between -pi and pi."""
        return ops.atan2(self.imag, self.real)

    @property
    def H(self) -> Complex:  # noqa: N802
        """The conjugate of a matrix with its axes swapped."""
        return self.mH

    @property
    def mH(self) -> Complex:  # noqa: N802
        """The conjugate with the last two axes swapped."""
        return ops.matrix_transpose(self.conj())

    def numpy(self, *, force: bool = False) -> np.ndarray[Any, Any]:
        """The values as an array of complex numbers. Raises GraphError as that of a tensor does."""
        return np.asarray(self.real.numpy(force=force) + 1j * self.imag.numpy(force=force))

    def item(self) -> Any:
        """The value of a pair of one number."""
        return self.numpy().item()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise DTypeError(locate("a complex pair is no array and no parameter; use view_as_real for one, or numpy()"))

    def tolist(self) -> Any:
        """The values as nested lists."""
        return self.numpy().tolist()

    def __getitem__(self, key: Any) -> Any:
        return picking.part(self, key)

    def _assign(self, result: Any) -> Self:
        pair = _pair(result)
        self.real._assign(pair.real)
        self.imag._assign(pair.imag)
        return self

    def _before(self, *operands: Any) -> Complex:
        return Complex(self.real._before(*operands), self.imag._before(*operands))

    def __repr__(self) -> str:
        return f"complex({self.real!r}, {self.imag!r})"


def _pair(value: Any) -> Any:
    """A value as a pair: of a real one the imaginary part is 0."""
    if type(value) is Complex:
        return value
    if isinstance(value, _NUMBER):
        return Complex(value.real, value.imag)
    return Complex(value, ops.zeros_like(value) if hasattr(value, "shape") else 0.0)


# PyTorch's functions --------------------------------------------------------------------------------------------------


@name()
def polar(abs: Any, angle: Any) -> Complex:
    """A pair of absolute values and angles."""
    return Complex(ops.multiply(abs, ops.cos(angle)), ops.multiply(abs, ops.sin(angle)))


@name(pairs=True)
def complex(real: Any, imag: Any) -> Complex:
    """A pair of real and imaginary parts. Raises DTypeError for parts of two shapes or dtypes."""
    if shape_of(real) != shape_of(imag) or dtype_of(real) != dtype_of(imag):
        raise DTypeError("the parts have one shape and one dtype; use broadcast_to or .to before")
    return Complex(real, imag)


@name()
def view_as_complex(tensor: Any) -> Complex:
    """A pair of a tensor whose last axis holds the two parts. Raises DTypeError for another last axis."""
    if not shape_of(tensor) or shape_of(tensor)[-1] != 2:
        raise DTypeError(f"the last axis holds real and imaginary parts, of {shape_of(tensor)}; give it the size 2")
    return Complex(tensor[..., 0], tensor[..., 1])


@name(pairs=True)
def view_as_real(tensor: Any) -> Any:
    """The parts of a pair along a new last axis: a copy here."""
    return ops.stack([tensor.real, tensor.imag], axis=-1)


# Ops ------------------------------------------------------------------------------------------------------------------


def _refuse(op: Any, args: Sequence[Any], attrs: dict[str, Any]) -> Any:
    raise DTypeError(locate(f"{op.name} has no rule for complex numbers; compute with .real and .imag"))


def _by_parts(op: Any, args: Sequence[Any], attrs: dict[str, Any]) -> Complex:
    """An op that is linear in its values: it runs on each part. Ints among the operands are places, of both."""
    pairs = [Complex(x, x) if _is_place(x) and not op.broadcasts else _pair(x) for x in args]
    parts = [x.real for x in pairs], [x.imag for x in pairs]
    return Complex(*[op.apply(promote(*part) if op.broadcasts else part, attrs) for part in parts])


def _is_place(x: Any) -> bool:
    return hasattr(x, "dtype") and x.dtype.kind in "biu"


rules: RuleTable[Rule] = RuleTable(
    "pairs of real and imaginary parts", otherwise=_refuse, families={"movement": _by_parts}
)
rules.enter(dict.fromkeys(("add", "subtract", "negative", "positive", "sum", "mean", "cumulative_sum"), _by_parts))
rules.enter({"astype": _refuse, "pad": _refuse, "scatter_add": _refuse, "add_along_axis": _refuse})


@rules.for_op("multiply", "matmul")
def _product(op: Any, args: Sequence[Any], attrs: dict[str, Any]) -> Complex:
    def times(x: Any, y: Any) -> Any:
        return op.apply(promote(x, y), attrs)

    a, b = [_pair(x) if isinstance(x, _NUMBER) else x for x in args]
    if type(a) is not Complex:
        return Complex(times(a, b.real), times(a, b.imag))
    if type(b) is not Complex:
        return Complex(times(a.real, b), times(a.imag, b))
    return Complex(times(a.real, b.real) - times(a.imag, b.imag), times(a.real, b.imag) + times(a.imag, b.real))


@rules.for_op("abs")
def _abs(op: Any, args: Sequence[Any], attrs: dict[str, Any]) -> Any:
    return ops.hypot(args[0].real, args[0].imag)


@rules.for_op("reciprocal")
def _reciprocal(op: Any, args: Sequence[Any], attrs: dict[str, Any]) -> Complex:
    z = args[0]
    size = z.real * z.real + z.imag * z.imag
    return Complex(z.real / size, -z.imag / size)


@rules.for_op("divide")
def _divide(op: Any, args: Sequence[Any], attrs: dict[str, Any]) -> Complex:
    a, b = args
    return Complex(a.real / b, a.imag / b) if type(b) is not Complex else a * ops.reciprocal(b)


@rules.for_op("exp")
def _exp(op: Any, args: Sequence[Any], attrs: dict[str, Any]) -> Complex:
    return polar(ops.exp(args[0].real), args[0].imag)


@rules.for_op("log")
def _log(op: Any, args: Sequence[Any], attrs: dict[str, Any]) -> Complex:
    return Complex(ops.log(ops.abs(args[0])), args[0].angle())


@rules.for_op("equal")
def _equal(op: Any, args: Sequence[Any], attrs: dict[str, Any]) -> Any:
    a, b = map(_pair, args)
    return ops.logical_and(ops.equal(a.real, b.real), ops.equal(a.imag, b.imag))


stand_ins[_NUMBER] = _pair
hold_pairs(Complex)
dispatch.interpret(Complex, lambda op, args, attrs: rules[op](op, args, attrs))
