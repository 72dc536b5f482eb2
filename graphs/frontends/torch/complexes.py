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
from graphs.errors import DTypeError, OptionError, locate
from graphs.frontends.torch import dtypes
from graphs.frontends.torch.names import Methods, hold_pairs, name, with_named_errors
from graphs.frontends.torch.words import as_dtype, floats, place, promote, stand_ins
from graphs.op import RuleTable
from graphs.ops.linalg import fourier
from graphs.ops.shapes import dtype_of, shape_of

Transform = Callable[..., Any]
Rule = Callable[[Any, Sequence[Any], dict[str, Any]], Any]
_NUMBER = builtins.complex


class Complex(Methods):
    """A pair of real tensors; `real` and `imag` are its parts."""

    __slots__ = ("imag", "real")
    __array_priority__ = 1000
    weak = False  # no number
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
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

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
        return self.ndim

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
        real, imag = self.real.numpy(force=force), self.imag.numpy(force=force)
        pair = np.empty(real.shape, np.result_type(real, np.complex64))
        pair.real, pair.imag = real, imag  # a product with 1j would make infinite parts NaN
        return pair

    def item(self) -> Any:
        """The value of a pair of one number."""
        return self.numpy().item()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise DTypeError(
            locate("tensors hold real numbers, and a pair of complex ones is no parameter; use view_as_real(z)")
        )

    def tolist(self) -> Any:
        """The values as nested lists."""
        return self.numpy().tolist()

    def __getitem__(self, key: Any) -> Any:
        return Complex(self.real[key], self.imag[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        pair = _pair(value)
        self.real[key], self.imag[key] = pair.real, pair.imag

    def __len__(self) -> int:
        return int(self.shape[0])

    def __neg__(self) -> Any:
        return ops.negative(self)

    def __abs__(self) -> Any:
        return ops.abs(self)

    def __eq__(self, other: object) -> Any:
        return ops.equal(self, other)

    __hash__ = object.__hash__

    def _assign(self, result: Any) -> Self:
        pair = _pair(result)
        self.real._assign(pair.real)
        self.imag._assign(pair.imag)
        return self

    def _before(self, *operands: Any) -> Complex:
        return Complex(self.real._before(*operands), self.imag._before(*operands))

    def __repr__(self) -> str:
        return f"complex({self.real!r}, {self.imag!r})"


def _operator(op: Any, *, swapped: bool = False) -> Callable[[Any, Any], Any]:
    return (lambda self, other: op(other, self)) if swapped else lambda self, other: op(self, other)


for _word, _op in {
    "add": ops.add, "sub": ops.subtract, "mul": ops.multiply, "truediv": ops.divide, "matmul": ops.matmul,
    "pow": ops.pow, "lt": ops.less, "gt": ops.greater,
}.items():  # fmt: skip
    setattr(Complex, f"__{_word}__", _operator(_op))
    setattr(Complex, f"__r{_word}__", _operator(_op, swapped=True))


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
    """A pair of absolute values and angles, which broadcast. Raises DTypeError unless they are floats of one dtype."""
    _check_parts(abs, angle)
    return Complex(ops.multiply(abs, ops.cos(angle)), ops.multiply(abs, ops.sin(angle)))


def _check_parts(*parts: Any) -> None:
    kinds = {dtype_of(part) if hasattr(part, "dtype") else None for part in parts}
    if len(kinds) > 1 or getattr(kinds.pop(), "kind", "") != "f":
        raise DTypeError("the parts are tensors of floats of one dtype; convert them with .to(dtype)")


@name(pairs=True)
def complex(real: Any, imag: Any) -> Complex:
    """A pair of real and imaginary parts, which broadcast. Raises DTypeError unless they are floats of one dtype."""
    _check_parts(real, imag)
    same = shape_of(real) == shape_of(imag)
    return Complex(real, imag) if same else Complex(*ops.broadcast_arrays(real, imag))


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
    error = DTypeError("there is no rule for complex numbers; compute with .real and .imag")
    raise dispatch.explain_error(op, args, error)


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
dispatch.interpret(Complex, lambda op, args, attrs: rules[op](op, args, attrs), compound=True)


# The Fourier transform: `torch.fft` -----------------------------------------------------------------------------------


def _along(x: Any, n: int | None, dim: int, norm: str | None, *, inverse: bool) -> Complex:
    """The transform of n numbers along an axis, which are cut off or followed by zeros."""
    axis = place(dim, len(x.shape))
    z = _pair(_cut_or_pad(x if dtype_of(x).kind == "c" else floats(x), n, axis))
    count = z.shape[axis]
    moved = fourier(view_as_real(z), axis=axis, inverse=inverse)
    result = Complex(moved[..., 0], moved[..., 1])
    power = {None: inverse, "backward": inverse, "forward": not inverse, "ortho": 0.5}
    if norm not in power:
        raise OptionError(f"norm is None, 'backward', 'ortho' or 'forward', not {norm!r}")
    return result * count ** -float(power[norm]) if power[norm] else result


def _cut_or_pad(x: Any, n: int | None, axis: int) -> Any:
    """The first n numbers along an axis; zeros follow where there are fewer."""
    if n is None or n == x.shape[axis]:
        return x
    if n < x.shape[axis]:
        return x[(slice(None),) * axis + (slice(n),)]
    if type(x) is Complex:
        return Complex(_cut_or_pad(x.real, n, axis), _cut_or_pad(x.imag, n, axis))
    return ops.pad(x, [(0, n - size if i == axis else 0) for i, size in enumerate(x.shape)])


def fft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Complex:
    """The transform along an axis."""
    return _along(input, n, dim, norm, inverse=False)


def ifft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Complex:
    """The inverse transform along an axis."""
    return _along(input, n, dim, norm, inverse=True)


def rfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Complex:
    """The first half of the transform of real numbers; the other one is its conjugate."""
    axis = place(dim, len(input.shape))
    whole = _along(input, n, axis, norm, inverse=False)
    return _cut_or_pad(whole, whole.shape[axis] // 2 + 1, axis)


def irfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The n real numbers that have such a half of a transform; by default 2 * (size - 1)."""
    axis = place(dim, len(input.shape))
    n = 2 * (input.shape[axis] - 1) if n is None else n
    half = _cut_or_pad(_pair(input), n // 2 + 1, axis)
    before = (slice(None),) * axis
    rest = ops.flip(half[(*before, slice(1, (n + 1) // 2))], axis=axis)
    whole = ops.concat([half, Complex(rest.real, ops.negative(rest.imag))], axis=axis)
    return _along(whole, None, axis, norm, inverse=True).real


def _over_axes(
    last: Callable[..., Any], others: Callable[..., Any], axes: tuple[int, ...] | None
) -> Callable[..., Any]:
    """A transform over several axes: the last by one function, first or last, and the others by another."""
    is_first = last is not irfft

    def transform(input: Any, s: Any = None, dim: Any = axes, norm: str | None = None) -> Any:
        dim = range(-len(s or input.shape), 0) if dim is None else dim
        sizes = [None] * len(dim) if s is None else list(s)
        steps = [*zip([others] * (len(dim) - 1) + [last], sizes, dim, strict=True)]
        for step, n, axis in reversed(steps) if is_first else steps:
            input = step(input, n, axis, norm)
        return input

    return transform


def fftfreq(n: int, d: float = 1.0, **options: Any) -> Any:
    """The frequencies of a transform of n numbers, which are `d` apart."""
    return capture.tensors[0](np.fft.fftfreq(n, d).astype(as_dtype(None)), **options)


def rfftfreq(n: int, d: float = 1.0, **options: Any) -> Any:
    """The frequencies of the first half."""
    return capture.tensors[0](np.fft.rfftfreq(n, d).astype(as_dtype(None)), **options)


def fftshift(input: Any, dim: Any = None) -> Any:
    """The frequency 0 in the middle of each axis."""
    return _shift(input, dim, lambda size: size // 2)


def ifftshift(input: Any, dim: Any = None) -> Any:
    """The frequency 0 first again."""
    return _shift(input, dim, lambda size: -(size // 2))


def _shift(x: Any, dim: Any, shift_of: Callable[[int], int]) -> Any:
    axes = range(len(x.shape)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return ops.roll(x, [shift_of(x.shape[axis]) for axis in axes], axis=[place(axis, len(x.shape)) for axis in axes])


def _public(called: str, function: Callable[..., Any]) -> Callable[..., Any]:
    function.takes_pairs = True  # type: ignore[attr-defined]
    made = with_named_errors(function)
    made.__name__ = made.__qualname__ = called
    return made


_FOURIER: dict[str, Transform] = {
    "fft": fft, "ifft": ifft, "rfft": rfft, "irfft": irfft,
    **{f"{word}{count}": _over_axes(last, others, axes)
       for word, last, others in (("fft", fft, fft), ("ifft", ifft, ifft), ("rfft", rfft, fft), ("irfft", irfft, ifft))
       for count, axes in (("2", (-2, -1)), ("n", None))},
    "fftfreq": fftfreq, "rfftfreq": rfftfreq, "fftshift": fftshift, "ifftshift": ifftshift,
}  # fmt: skip
FOURIER = {called: _public(called, function) for called, function in _FOURIER.items()}
"""The functions of `torch.fft`, by name."""
