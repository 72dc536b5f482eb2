"""The methods of a tensor under PyTorch's names: functions as methods, and what is a method alone.

The functions of this folder whose first parameter is a tensor called `input`: each is a method as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from graphs import ops
from graphs.errors import DTypeError, located
from graphs.frontends.torch import arithmetic, dtypes, functions, pointwise, products, shapes, words
from graphs.frontends.torch.words import as_dtype, cast, ndim_of, place
from graphs.ops.shapes import dtype_of


class FunctionMethods:
    """PyTorch's functions as methods of a tensor."""

    __slots__ = ()

    abs = functions.abs
    absolute = functions.absolute
    acos = functions.acos
    acosh = functions.acosh
    add = functions.add
    addbmm = functions.addbmm
    addcdiv = functions.addcdiv
    addcmul = functions.addcmul
    addmm = functions.addmm
    addmv = functions.addmv
    addr = functions.addr
    adjoint = functions.adjoint
    all = functions.all
    allclose = functions.allclose
    amax = functions.amax
    amin = functions.amin
    aminmax = functions.aminmax
    angle = functions.angle
    any = functions.any
    arccos = functions.arccos
    arccosh = functions.arccosh
    arcsin = functions.arcsin
    arcsinh = functions.arcsinh
    arctan = functions.arctan
    arctan2 = functions.arctan2
    arctanh = functions.arctanh
    argmax = functions.argmax
    argmin = functions.argmin
    argsort = functions.argsort
    argwhere = functions.argwhere
    asin = functions.asin
    asinh = functions.asinh
    atan = functions.atan
    atan2 = functions.atan2
    atanh = functions.atanh
    baddbmm = functions.baddbmm
    bincount = functions.bincount
    bitwise_and = functions.bitwise_and
    bitwise_left_shift = functions.bitwise_left_shift
    bitwise_not = functions.bitwise_not
    bitwise_or = functions.bitwise_or
    bitwise_right_shift = functions.bitwise_right_shift
    bitwise_xor = functions.bitwise_xor
    bmm = functions.bmm
    broadcast_to = functions.broadcast_to
    bucketize = functions.bucketize
    ceil = functions.ceil
    cholesky = functions.cholesky
    cholesky_inverse = functions.cholesky_inverse
    cholesky_solve = functions.cholesky_solve
    chunk = functions.chunk
    clamp = functions.clamp
    clamp_max = functions.clamp_max
    clamp_min = functions.clamp_min
    clip = functions.clip
    combinations = functions.combinations
    conj = functions.conj
    conj_physical = functions.conj_physical
    copysign = functions.copysign
    corrcoef = functions.corrcoef
    cos = functions.cos
    cosh = functions.cosh
    count_nonzero = functions.count_nonzero
    cov = functions.cov
    cross = functions.cross
    cummax = functions.cummax
    cummin = functions.cummin
    cumprod = functions.cumprod
    cumsum = functions.cumsum
    deg2rad = functions.deg2rad
    det = functions.det
    diag = functions.diag
    diag_embed = functions.diag_embed
    diagflat = functions.diagflat
    diagonal = functions.diagonal
    diagonal_scatter = functions.diagonal_scatter
    diff = functions.diff
    digamma = functions.digamma
    dist = functions.dist
    div = functions.div
    divide = functions.divide
    dot = functions.dot
    dsplit = functions.dsplit
    eq = functions.eq
    equal = functions.equal
    erf = functions.erf
    erfc = functions.erfc
    erfinv = functions.erfinv
    exp = functions.exp
    exp2 = functions.exp2
    expand = functions.expand
    expand_as = functions.expand_as
    expm1 = functions.expm1
    fix = functions.fix
    flatten = functions.flatten
    flip = functions.flip
    fliplr = functions.fliplr
    flipud = functions.flipud
    float_power = functions.float_power
    floor = functions.floor
    floor_divide = functions.floor_divide
    fmax = functions.fmax
    fmin = functions.fmin
    fmod = functions.fmod
    frac = functions.frac
    frexp = functions.frexp
    gather = functions.gather
    gcd = functions.gcd
    ge = functions.ge
    ger = functions.ger
    gradient = functions.gradient
    greater = functions.greater
    greater_equal = functions.greater_equal
    gt = functions.gt
    heaviside = functions.heaviside
    histc = functions.histc
    histogram = functions.histogram
    hsplit = functions.hsplit
    hypot = functions.hypot
    i0 = functions.i0
    igamma = functions.igamma
    igammac = functions.igammac
    index_add = functions.index_add
    index_copy = functions.index_copy
    index_fill = functions.index_fill
    index_put = functions.index_put
    index_reduce = functions.index_reduce
    index_select = functions.index_select
    inner = functions.inner
    inverse = functions.inverse
    is_complex = functions.is_complex
    is_conj = functions.is_conj
    is_neg = functions.is_neg
    is_nonzero = functions.is_nonzero
    is_same_size = functions.is_same_size
    is_signed = functions.is_signed
    isclose = functions.isclose
    isfinite = functions.isfinite
    isinf = functions.isinf
    isnan = functions.isnan
    isneginf = functions.isneginf
    isposinf = functions.isposinf
    isreal = functions.isreal
    kron = functions.kron
    kthvalue = functions.kthvalue
    lcm = functions.lcm
    ldexp = functions.ldexp
    le = functions.le
    lerp = functions.lerp
    less = functions.less
    less_equal = functions.less_equal
    lgamma = functions.lgamma
    log = functions.log
    log10 = functions.log10
    log1p = functions.log1p
    log2 = functions.log2
    log_softmax = functions.log_softmax
    logaddexp = functions.logaddexp
    logaddexp2 = functions.logaddexp2
    logcumsumexp = functions.logcumsumexp
    logdet = functions.logdet
    logical_and = functions.logical_and
    logical_not = functions.logical_not
    logical_or = functions.logical_or
    logical_xor = functions.logical_xor
    logit = functions.logit
    logsumexp = functions.logsumexp
    lt = functions.lt
    lu = functions.lu
    lu_solve = functions.lu_solve
    masked_fill = functions.masked_fill
    masked_scatter = functions.masked_scatter
    masked_select = functions.masked_select
    matmul = functions.matmul
    matrix_exp = functions.matrix_exp
    matrix_power = functions.matrix_power
    max = functions.max
    maximum = functions.maximum
    mean = functions.mean
    median = functions.median
    min = functions.min
    minimum = functions.minimum
    mm = functions.mm
    mode = functions.mode
    moveaxis = functions.moveaxis
    movedim = functions.movedim
    msort = functions.msort
    mul = functions.mul
    multiply = functions.multiply
    mv = functions.mv
    mvlgamma = functions.mvlgamma
    nan_to_num = functions.nan_to_num
    nanmean = functions.nanmean
    nanmedian = functions.nanmedian
    nanquantile = functions.nanquantile
    nansum = functions.nansum
    narrow = functions.narrow
    ne = functions.ne
    neg = functions.neg
    negative = functions.negative
    nextafter = functions.nextafter
    nonzero = functions.nonzero
    norm = functions.norm
    not_equal = functions.not_equal
    outer = functions.outer
    permute = functions.permute
    pinverse = functions.pinverse
    positive = functions.positive
    pow = functions.pow
    prod = functions.prod
    put = functions.put
    qr = functions.qr
    quantile = functions.quantile
    rad2deg = functions.rad2deg
    ravel = functions.ravel
    reciprocal = functions.reciprocal
    relu = functions.relu
    remainder = functions.remainder
    renorm = functions.renorm
    repeat = functions.repeat
    repeat_interleave = functions.repeat_interleave
    reshape = functions.reshape
    reshape_as = functions.reshape_as
    resolve_conj = functions.resolve_conj
    resolve_neg = functions.resolve_neg
    roll = functions.roll
    rot90 = functions.rot90
    round = functions.round
    rsqrt = functions.rsqrt
    rsub = functions.rsub
    scatter = functions.scatter
    scatter_add = functions.scatter_add
    scatter_reduce = functions.scatter_reduce
    select = functions.select
    select_scatter = functions.select_scatter
    sgn = functions.sgn
    sigmoid = functions.sigmoid
    sign = functions.sign
    signbit = functions.signbit
    sin = functions.sin
    sinc = functions.sinc
    sinh = functions.sinh
    slice_scatter = functions.slice_scatter
    slogdet = functions.slogdet
    softmax = functions.softmax
    sort = functions.sort
    split = functions.split
    split_with_sizes = functions.split_with_sizes
    sqrt = functions.sqrt
    square = functions.square
    squeeze = functions.squeeze
    std = functions.std
    std_mean = functions.std_mean
    sub = functions.sub
    subtract = functions.subtract
    sum = functions.sum
    sum_to_size = functions.sum_to_size
    svd = functions.svd
    swapaxes = functions.swapaxes
    swapdims = functions.swapdims
    t = functions.t
    take = functions.take
    take_along_dim = functions.take_along_dim
    tan = functions.tan
    tanh = functions.tanh
    tensor_split = functions.tensor_split
    threshold = functions.threshold
    tile = functions.tile
    topk = functions.topk
    trace = functions.trace
    transpose = functions.transpose
    triangular_solve = functions.triangular_solve
    tril = functions.tril
    triu = functions.triu
    true_divide = functions.true_divide
    trunc = functions.trunc
    unbind = functions.unbind
    unflatten = functions.unflatten
    unfold = functions.unfold
    unique = functions.unique
    unique_consecutive = functions.unique_consecutive
    unsqueeze = functions.unsqueeze
    var = functions.var
    var_mean = functions.var_mean
    vdot = functions.vdot
    view = functions.view
    view_as = functions.view_as
    vsplit = functions.vsplit
    xlogy = functions.xlogy


_DTYPES = (type, np.dtype, dtypes.dtype)
NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "int64": "Long", "int32": "Int", "int16": "Short",
    "int8": "Char", "uint8": "Byte", "bool": "Bool",
}  # fmt: skip


def _conversion(name: str, dtype: Any) -> Callable[..., Any]:
    def converted(self: Any) -> Any:
        return cast(self, dtype)

    converted.__name__ = converted.__qualname__ = name
    converted.__doc__ = f"The values as {np.dtype(dtype).name}."
    return converted


class Conversions:
    """Methods that give the values in another dtype."""

    __slots__ = ()

    float, double = _conversion("float", np.float32), _conversion("double", np.float64)
    half, long = _conversion("half", np.float16), _conversion("long", np.int64)
    int, short = _conversion("int", np.int32), _conversion("short", np.int16)
    char, byte = _conversion("char", np.int8), _conversion("byte", np.uint8)
    bool = _conversion("bool", np.bool_)


def swapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of two operands with these the other way round."""

    def called(self: Any, other: Any) -> Any:
        return function(other, self)

    return called


class TorchNames(FunctionMethods, Conversions):
    """Methods of a tensor under PyTorch's names, and its operators: the dtype of a result is PyTorch's."""

    __slots__ = ()

    # Defined where tensors are made: `dynamic/creation.py` and `dynamic/random.py`.
    new: ClassVar[Callable[..., Any]]
    new_empty: ClassVar[Callable[..., Any]]
    new_full: ClassVar[Callable[..., Any]]
    new_ones: ClassVar[Callable[..., Any]]
    new_tensor: ClassVar[Callable[..., Any]]
    new_zeros: ClassVar[Callable[..., Any]]
    bernoulli: ClassVar[Callable[..., Any]]
    bernoulli_: ClassVar[Callable[..., Any]]
    exponential_: ClassVar[Callable[..., Any]]
    multinomial: ClassVar[Callable[..., Any]]
    normal_: ClassVar[Callable[..., Any]]
    random_: ClassVar[Callable[..., Any]]
    uniform_: ClassVar[Callable[..., Any]]

    __add__ = arithmetic.add
    __radd__ = swapped(arithmetic.add)
    __sub__ = arithmetic.sub
    __rsub__ = arithmetic.rsub
    __mul__ = arithmetic.mul
    __rmul__ = swapped(arithmetic.mul)
    __truediv__ = arithmetic.true_divide
    __rtruediv__ = swapped(arithmetic.true_divide)
    __floordiv__ = functions.floor_divide
    __rfloordiv__ = swapped(functions.floor_divide)
    __mod__ = functions.remainder
    __rmod__ = swapped(functions.remainder)
    __rpow__ = swapped(arithmetic.pow)
    __matmul__ = products.matmul
    __rmatmul__ = swapped(products.matmul)
    __and__ = __rand__ = arithmetic.bitwise_and
    __or__ = __ror__ = arithmetic.bitwise_or
    __xor__ = __rxor__ = arithmetic.bitwise_xor
    __eq__ = arithmetic.eq
    __ne__ = arithmetic.ne
    __lt__ = arithmetic.lt
    __le__ = arithmetic.le
    __gt__ = arithmetic.gt
    __ge__ = arithmetic.ge
    __abs__ = pointwise.abs
    __neg__ = pointwise.neg
    __hash__ = object.__hash__

    def __pow__(self, other: Any) -> Any:
        if dtype_of(self).kind == "f" and type(other) in (int, float):
            return ops.square(self) if other == 2 else ops.pow(self, other)
        return arithmetic.pow(self, other)

    def where(self, condition: Any, other: Any) -> Self:
        """These elements where the condition is true, and the others' elsewhere."""
        return functions.where(condition, self, other)

    def take_along_axis(self, indices: Any, axis: int) -> Self:
        """The elements along an axis that an index names, which broadcasts."""
        return ops.take_along_axis(self, indices, axis=axis)

    def polygamma(self, n: int) -> Self:
        """Derivative n + 1 of log(gamma(x))."""
        return functions.polygamma(n, self)

    def clone(self, *, memory_format: Any = None) -> Self:
        """A copy that keeps the history."""
        del memory_format
        return ops.identity(self)

    # Kinds ------------------------------------------------------------------------------------------------------

    is_cuda = is_sparse = is_quantized = False

    def to(
        self,
        *args: Any,
        dtype: Any = None,
        device: Any = None,
        copy: bool = False,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> Self:
        """The values in a dtype, that of another tensor too; the tensor itself where nothing changes.

        Raises ValueError for any device but the CPU.
        """
        del non_blocking
        for target in args:
            if isinstance(target, str):
                words.check(target)
            elif isinstance(target, _DTYPES):
                dtype = target
            elif hasattr(target, "shape"):
                dtype = dtype_of(target)
            elif target is not None and (type(target) is not bool or target is args[0]):
                raise DTypeError(located(f"to: {target!r} is no dtype, no device and no tensor; give one of these"))
        words.check(device)
        copy = copy or [target for target in args if type(target) is bool][1:] == [True]  # after non_blocking
        wanted = dtype_of(self) if dtype is None else as_dtype(dtype)
        if "channels_last" in str(memory_format):
            return TorchNames.contiguous(cast(self, wanted), memory_format)
        return ops.identity(self) if copy and wanted == dtype_of(self) else cast(self, wanted)

    def type(self, dtype: Any = None) -> Any:
        """The name of the kind of tensor, or the values in a dtype."""
        if dtype is None:
            return f"torch.{NAMES[dtype_of(self).name]}Tensor"
        return self.to(dtype if isinstance(dtype, _DTYPES) else dtype.dtype)

    def type_as(self, other: Any) -> Self:
        """The values in the dtype of another tensor."""
        return cast(self, dtype_of(other))

    def cpu(self) -> Self:
        """The tensor itself, which is on the CPU."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Raises ValueError: there is no GPU."""
        words.check(device or "cuda")
        return self

    def contiguous(self, memory_format: Any = None) -> Self:
        """The tensor itself where its elements lie in a row, or as "channels_last" says, else a copy that does."""
        if TorchNames.is_contiguous(self, memory_format):
            return self
        if "channels_last" in str(memory_format):
            return ops.moveaxis(ops.identity(ops.moveaxis(self, 1, -1)), -1, 1)
        return ops.identity(self)

    def is_floating_point(self) -> bool:
        """Whether the elements are floats."""
        return dtype_of(self).kind == "f"

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the elements lie in a row; in "channels_last" those of all channels next to each other."""
        memory = shapes.memory_of(self)
        if memory is not None and "channels_last" in str(memory_format):
            return bool(memory.ndim > 3 and np.moveaxis(memory, 1, -1).flags.c_contiguous)
        return memory is None or bool(memory.flags.c_contiguous)

    def element_size(self) -> int:
        """The bytes of an element."""
        return dtype_of(self).itemsize

    # Shape ------------------------------------------------------------------------------------------------------

    def dim(self) -> int:
        """The number of axes."""
        return ndim_of(self)

    ndimension = dim

    @property
    def real(self) -> Self:
        """The tensor itself: all numbers are real."""
        return self

    @property
    def H(self) -> Self:  # noqa: N802
        """The axes of a matrix swapped."""
        return functions.t(self)

    @property
    def mH(self) -> Self:  # noqa: N802
        """The last two axes swapped."""
        return ops.matrix_transpose(self)


class Count(int):
    """The number of elements, as the array API standard has it; called, the shape or one size, as PyTorch."""

    shape: tuple[Any, ...]

    def __new__(cls, count: int, shape: tuple[Any, ...]) -> Self:
        """The number of elements of a tensor of that shape."""
        made = super().__new__(cls, count)
        made.shape = shape
        return made

    def __call__(self, dim: int | None = None) -> Any:
        """The shape, or the size of one axis."""
        return self.shape if dim is None else self.shape[place(dim, len(self.shape))]
