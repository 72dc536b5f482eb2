"""The functions and constants of the Python array API standard 2024.12, and why some are not here.

Names are those of https://data-apis.org/array-api/2024.12/; the reasons are the only thing that is not found out.
"""

from __future__ import annotations


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
