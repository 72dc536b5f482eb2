"""Made by `python -m graphs.testing.stubs` with NumPy 2.4; do not edit."""

import builtins
from typing import Any as _Any

from graphs import (
    errors as errors, integrate as integrate, linalg as linalg, onnx as onnx, optim as optim, special as special,
    stats as stats, tree as tree,
)
from graphs.custom import (
    custom_op as custom_op,
)
from graphs.dims import (
    Dim as Dim, dim as dim,
)
from graphs.errors import (
    AnomalyError as AnomalyError, ArtifactError as ArtifactError, ControlFlowError as ControlFlowError,
    DTypeError as DTypeError, GraphError as GraphError, InplaceError as InplaceError, LinAlgError as LinAlgError,
    NotDifferentiableError as NotDifferentiableError, OutOfRangeError as OutOfRangeError, ShapeError as ShapeError,
    ShapeLimitError as ShapeLimitError, ShapeLimitWarning as ShapeLimitWarning, VerificationError as VerificationError,
)
from graphs.frontends.numpy.protocol import (
    array as array,
)
from graphs.ir import (
    Graph as Graph, Node as Node,
)
from graphs.op import (
    Op as Op,
)
from graphs.ops.composites import (
    embedding as embedding, flatten as flatten, gradient as gradient, layer_norm as layer_norm, logsumexp as logsumexp,
    nan_to_num as nan_to_num, one_hot as one_hot, silu as silu, sinc as sinc, softplus as softplus, std as std,
    var as var,
)
from graphs.ops.control import (
    cond as cond, fori_loop as fori_loop, scan as scan, switch as switch, while_loop as while_loop,
)
from graphs.ops.convolution import (
    conv1d as conv1d, conv2d as conv2d, conv3d as conv3d, conv_transpose1d as conv_transpose1d,
    conv_transpose2d as conv_transpose2d, conv_transpose3d as conv_transpose3d, convolution as convolution,
    convolution_input as convolution_input, convolution_weight as convolution_weight,
)
from graphs.ops.creation import (
    arange as arange, asarray as asarray, empty as empty, empty_like as empty_like, eye as eye,
    from_dlpack as from_dlpack, full as full, full_like as full_like, linspace as linspace, ones as ones,
    ones_like as ones_like, zeros as zeros, zeros_like as zeros_like,
)
from graphs.ops.dtypes import (
    __array_api_version__ as __array_api_version__, __array_namespace_info__ as __array_namespace_info__, bool as bool,
    can_cast as can_cast, e as e, finfo as finfo, float16 as float16, float32 as float32, float64 as float64,
    iinfo as iinfo, inf as inf, int16 as int16, int32 as int32, int64 as int64, int8 as int8, isdtype as isdtype,
    nan as nan, newaxis as newaxis, pi as pi, result_type as result_type, uint16 as uint16, uint32 as uint32,
    uint64 as uint64, uint8 as uint8,
)
from graphs.ops.effects import (
    breakpoint as breakpoint, print as print,
)
from graphs.ops.einsum import (
    einsum as einsum,
)
from graphs.ops.elementwise import (
    abs as abs, acos as acos, acosh as acosh, add as add, asin as asin, asinh as asinh, atan as atan, atan2 as atan2,
    atanh as atanh, bitwise_and as bitwise_and, bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift, bitwise_or as bitwise_or, bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor, ceil as ceil, clip as clip, copysign as copysign, cos as cos, cosh as cosh,
    divide as divide, equal as equal, exp as exp, expm1 as expm1, floor as floor, floor_divide as floor_divide,
    fmax as fmax, fmin as fmin, gcd as gcd, greater as greater, greater_equal as greater_equal, hypot as hypot,
    isfinite as isfinite, isinf as isinf, isnan as isnan, lcm as lcm, less as less, less_equal as less_equal,
    log as log, log10 as log10, log1p as log1p, log2 as log2, logaddexp as logaddexp, logical_and as logical_and,
    logical_not as logical_not, logical_or as logical_or, logical_xor as logical_xor, maximum as maximum,
    minimum as minimum, multiply as multiply, negative as negative, nextafter as nextafter, not_equal as not_equal,
    positive as positive, pow as pow, reciprocal as reciprocal, relu as relu, remainder as remainder, round as round,
    sigmoid as sigmoid, sign as sign, signbit as signbit, sin as sin, sinh as sinh, sqrt as sqrt, square as square,
    subtract as subtract, tan as tan, tanh as tanh, trunc as trunc, where as where,
)
from graphs.ops.gamma import (
    betainc as betainc, digamma as digamma, gammainc as gammainc, gammaincc as gammaincc, gammaln as gammaln, i0 as i0,
    i0e as i0e, i1 as i1, i1e as i1e, polygamma as polygamma, stdtr as stdtr, zeta as zeta,
)
from graphs.ops.indexing import (
    add_along_axis as add_along_axis, flat_index as flat_index, index as index, scatter as scatter,
    scatter_add as scatter_add, setitem as setitem, take as take, take_along_axis as take_along_axis,
)
from graphs.ops.linalg import (
    cross as cross, diagonal as diagonal, dot as dot, inner as inner, kron as kron, matmul as matmul, outer as outer,
    tensordot as tensordot, trace as trace, vecdot as vecdot, vector_norm as vector_norm,
)
from graphs.ops.losses import (
    binary_cross_entropy as binary_cross_entropy, binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cross_entropy as cross_entropy, huber_loss as huber_loss, kl_div as kl_div, l1_loss as l1_loss,
    mse_loss as mse_loss, nll_loss as nll_loss, smooth_l1_loss as smooth_l1_loss,
)
from graphs.ops.manipulation import (
    append as append, astype as astype, atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d,
    broadcast_arrays as broadcast_arrays, diag as diag, diff as diff, fliplr as fliplr, flipud as flipud,
    hstack as hstack, meshgrid as meshgrid, pad as pad, ravel as ravel, repeat as repeat, rot90 as rot90, tile as tile,
    tril as tril, triu as triu, vstack as vstack,
)
from graphs.ops.movement import (
    broadcast_to as broadcast_to, concat as concat, expand_dims as expand_dims, flip as flip, identity as identity,
    matrix_transpose as matrix_transpose, moveaxis as moveaxis, permute_dims as permute_dims, reshape as reshape,
    roll as roll, squeeze as squeeze, stack as stack, stop_gradient as stop_gradient, unstack as unstack,
)
from graphs.ops.neural import (
    attention as attention, batch_norm as batch_norm, batch_statistics as batch_statistics, dropout as dropout,
    elu as elu, gelu as gelu, group_norm as group_norm, instance_norm as instance_norm, interpolate as interpolate,
    leaky_relu as leaky_relu, linear as linear, rms_norm as rms_norm,
)
from graphs.ops.pooling import (
    avg_pool1d as avg_pool1d, avg_pool2d as avg_pool2d, avg_pool3d as avg_pool3d, max_pool1d as max_pool1d,
    max_pool2d as max_pool2d, max_pool3d as max_pool3d, window_argmax as window_argmax, window_max as window_max,
    window_pick as window_pick, window_place as window_place, window_spread as window_spread, window_sum as window_sum,
)
from graphs.ops.random import (
    bernoulli as bernoulli, fold_in as fold_in, normal as normal, random_key as random_key, split_key as split_key,
    uniform as uniform,
)
from graphs.ops.reductions import (
    all as all, any as any, argmax as argmax, argmin as argmin, max as max, mean as mean, min as min, prod as prod,
    sum as sum,
)
from graphs.ops.scans import (
    cummax as cummax, cummin as cummin, cumulative_argmax as cumulative_argmax, cumulative_argmin as cumulative_argmin,
    cumulative_prod as cumulative_prod, cumulative_sum as cumulative_sum, linear_recurrence as linear_recurrence,
    logcumsumexp as logcumsumexp,
)
from graphs.ops.slicing import (
    getitem as getitem, place as place,
)
from graphs.ops.softmax import (
    log_softmax as log_softmax, log_softmax_gradient as log_softmax_gradient, softmax as softmax,
    softmax_gradient as softmax_gradient,
)
from graphs.ops.sorting import (
    argsort as argsort, argwhere as argwhere, count_nonzero as count_nonzero, extreme_along_axis as extreme_along_axis,
    nonzero as nonzero, scatter_reduce as scatter_reduce, searchsorted as searchsorted, sort as sort,
    unique_all as unique_all, unique_counts as unique_counts, unique_inverse as unique_inverse,
    unique_values as unique_values,
)
from graphs.ops.special import (
    entr as entr, erf as erf, erfc as erfc, erfcinv as erfcinv, erfcx as erfcx, erfinv as erfinv,
)
from graphs.spec import (
    TensorSpec as TensorSpec,
)
from graphs.tree import (
    tree_map as tree_map,
)
from numpy import (
    False_ as False_, ScalarType as ScalarType, True_ as True_, absolute as absolute, allclose as allclose,
    amax as amax, amin as amin, angle as angle, apply_along_axis as apply_along_axis,
    apply_over_axes as apply_over_axes, arccos as arccos, arccosh as arccosh, arcsin as arcsin, arcsinh as arcsinh,
    arctan as arctan, arctan2 as arctan2, arctanh as arctanh, argpartition as argpartition, around as around,
    array2string as array2string, array_equal as array_equal, array_equiv as array_equiv, array_repr as array_repr,
    array_split as array_split, array_str as array_str, asanyarray as asanyarray,
    asarray_chkfinite as asarray_chkfinite, ascontiguousarray as ascontiguousarray, asfortranarray as asfortranarray,
    asmatrix as asmatrix, average as average, bartlett as bartlett, base_repr as base_repr, binary_repr as binary_repr,
    bincount as bincount, bitwise_count as bitwise_count, bitwise_not as bitwise_not, blackman as blackman,
    block as block, bmat as bmat, bool_ as bool_, broadcast as broadcast, broadcast_shapes as broadcast_shapes,
    busday_count as busday_count, busday_offset as busday_offset, busdaycalendar as busdaycalendar, byte as byte,
    bytes_ as bytes_, c_ as c_, cbrt as cbrt, cdouble as cdouble, char as char, character as character,
    choose as choose, clongdouble as clongdouble, column_stack as column_stack, common_type as common_type,
    complex128 as complex128, complex256 as complex256, complex64 as complex64, complexfloating as complexfloating,
    compress as compress, concatenate as concatenate, conj as conj, conjugate as conjugate, convolve as convolve,
    copy as copy, copyto as copyto, core as core, corrcoef as corrcoef, correlate as correlate, cov as cov,
    csingle as csingle, ctypeslib as ctypeslib, cumprod as cumprod, cumsum as cumsum, datetime64 as datetime64,
    datetime_as_string as datetime_as_string, datetime_data as datetime_data, deg2rad as deg2rad, degrees as degrees,
    delete as delete, diag_indices as diag_indices, diag_indices_from as diag_indices_from, diagflat as diagflat,
    digitize as digitize, divmod as divmod, double as double, dsplit as dsplit, dstack as dstack, dtype as dtype,
    dtypes as dtypes, ediff1d as ediff1d, einsum_path as einsum_path, emath as emath, errstate as errstate,
    euler_gamma as euler_gamma, exceptions as exceptions, exp2 as exp2, extract as extract, f2py as f2py, fabs as fabs,
    fft as fft, fill_diagonal as fill_diagonal, fix as fix, flatiter as flatiter, flatnonzero as flatnonzero,
    flexible as flexible, float128 as float128, float_power as float_power, floating as floating, fmod as fmod,
    format_float_positional as format_float_positional, format_float_scientific as format_float_scientific,
    frexp as frexp, frombuffer as frombuffer, fromfile as fromfile, fromfunction as fromfunction, fromiter as fromiter,
    frompyfunc as frompyfunc, fromregex as fromregex, fromstring as fromstring, generic as generic,
    genfromtxt as genfromtxt, geomspace as geomspace, get_include as get_include, get_printoptions as get_printoptions,
    getbufsize as getbufsize, geterr as geterr, geterrcall as geterrcall, half as half, hamming as hamming,
    hanning as hanning, heaviside as heaviside, histogram as histogram, histogram2d as histogram2d,
    histogram_bin_edges as histogram_bin_edges, histogramdd as histogramdd, hsplit as hsplit, imag as imag,
    index_exp as index_exp, indices as indices, inexact as inexact, info as info, insert as insert, int_ as int_,
    intc as intc, integer as integer, interp as interp, intersect1d as intersect1d, intp as intp, invert as invert,
    is_busday as is_busday, isclose as isclose, iscomplex as iscomplex, iscomplexobj as iscomplexobj,
    isfortran as isfortran, isin as isin, isnat as isnat, isneginf as isneginf, isposinf as isposinf, isreal as isreal,
    isrealobj as isrealobj, isscalar as isscalar, issubdtype as issubdtype, iterable as iterable, ix_ as ix_,
    kaiser as kaiser, ldexp as ldexp, left_shift as left_shift, lexsort as lexsort, lib as lib,
    little_endian as little_endian, load as load, loadtxt as loadtxt, logaddexp2 as logaddexp2, logspace as logspace,
    long as long, longdouble as longdouble, longlong as longlong, ma as ma, mask_indices as mask_indices,
    matrix as matrix, matvec as matvec, may_share_memory as may_share_memory, median as median, memmap as memmap,
    mgrid as mgrid, min_scalar_type as min_scalar_type, mintypecode as mintypecode, mod as mod, modf as modf,
    nanargmax as nanargmax, nanargmin as nanargmin, nancumprod as nancumprod, nancumsum as nancumsum, nanmax as nanmax,
    nanmean as nanmean, nanmedian as nanmedian, nanmin as nanmin, nanpercentile as nanpercentile, nanprod as nanprod,
    nanquantile as nanquantile, nanstd as nanstd, nansum as nansum, nanvar as nanvar, ndarray as ndarray,
    ndenumerate as ndenumerate, ndim as ndim, ndindex as ndindex, nditer as nditer, nested_iters as nested_iters,
    number as number, object_ as object_, ogrid as ogrid, packbits as packbits, partition as partition,
    percentile as percentile, piecewise as piecewise, poly as poly, poly1d as poly1d, polyadd as polyadd,
    polyder as polyder, polydiv as polydiv, polyfit as polyfit, polyint as polyint, polymul as polymul,
    polynomial as polynomial, polysub as polysub, polyval as polyval, power as power, printoptions as printoptions,
    promote_types as promote_types, ptp as ptp, put as put, put_along_axis as put_along_axis, putmask as putmask,
    quantile as quantile, r_ as r_, rad2deg as rad2deg, radians as radians, random as random,
    ravel_multi_index as ravel_multi_index, real as real, real_if_close as real_if_close, rec as rec,
    recarray as recarray, record as record, require as require, resize as resize, right_shift as right_shift,
    rint as rint, rollaxis as rollaxis, roots as roots, row_stack as row_stack, s_ as s_, save as save,
    savetxt as savetxt, savez as savez, savez_compressed as savez_compressed, sctypeDict as sctypeDict,
    select as select, set_printoptions as set_printoptions, setbufsize as setbufsize, setdiff1d as setdiff1d,
    seterr as seterr, seterrcall as seterrcall, setxor1d as setxor1d, shape as shape, shares_memory as shares_memory,
    short as short, show_config as show_config, show_runtime as show_runtime, signedinteger as signedinteger,
    single as single, size as size, sort_complex as sort_complex, spacing as spacing, split as split, str_ as str_,
    strings as strings, swapaxes as swapaxes, test as test, testing as testing, timedelta64 as timedelta64,
    transpose as transpose, trapezoid as trapezoid, tri as tri, tril_indices as tril_indices,
    tril_indices_from as tril_indices_from, trim_zeros as trim_zeros, triu_indices as triu_indices,
    triu_indices_from as triu_indices_from, true_divide as true_divide, typecodes as typecodes, typename as typename,
    typing as typing, ubyte as ubyte, ufunc as ufunc, uint as uint, uintc as uintc, uintp as uintp, ulong as ulong,
    ulonglong as ulonglong, union1d as union1d, unique as unique, unpackbits as unpackbits,
    unravel_index as unravel_index, unsignedinteger as unsignedinteger, unwrap as unwrap, ushort as ushort,
    vander as vander, vdot as vdot, vecmat as vecmat, vectorize as vectorize, void as void, vsplit as vsplit,
)

def isomorphic(first: Graph, second: Graph) -> builtins.bool:
    ...

__all__ = [
    'AnomalyError', 'ArtifactError', 'ControlFlowError', 'DTypeError', 'Dim', 'Graph', 'GraphError', 'InplaceError',
    'LinAlgError', 'Node', 'NotDifferentiableError', 'Op', 'OutOfRangeError', 'ShapeError', 'ShapeLimitError',
    'ShapeLimitWarning', 'TensorSpec', 'VerificationError', '__array_api_version__', '__array_namespace_info__', 'abs',
    'acos', 'acosh', 'add', 'add_along_axis', 'all', 'any', 'append', 'arange', 'argmax', 'argmin', 'argsort',
    'argwhere', 'asarray', 'asin', 'asinh', 'astype', 'atan', 'atan2', 'atanh', 'atleast_1d', 'atleast_2d',
    'atleast_3d', 'attention', 'avg_pool1d', 'avg_pool2d', 'avg_pool3d', 'batch_norm', 'batch_statistics', 'bernoulli',
    'betainc', 'binary_cross_entropy', 'binary_cross_entropy_with_logits', 'bitwise_and', 'bitwise_invert',
    'bitwise_left_shift', 'bitwise_or', 'bitwise_right_shift', 'bitwise_xor', 'bool', 'breakpoint', 'broadcast_arrays',
    'broadcast_to', 'can_cast', 'ceil', 'clip', 'concat', 'cond', 'conv1d', 'conv2d', 'conv3d', 'conv_transpose1d',
    'conv_transpose2d', 'conv_transpose3d', 'convolution', 'convolution_input', 'convolution_weight', 'copysign', 'cos',
    'cosh', 'count_nonzero', 'cross', 'cross_entropy', 'cummax', 'cummin', 'cumulative_argmax', 'cumulative_argmin',
    'cumulative_prod', 'cumulative_sum', 'custom_op', 'diag', 'diagonal', 'diff', 'digamma', 'dim', 'divide', 'dot',
    'dropout', 'e', 'einsum', 'elu', 'embedding', 'empty', 'empty_like', 'entr', 'equal', 'erf', 'erfc', 'erfcinv',
    'erfcx', 'erfinv', 'errors', 'exp', 'expand_dims', 'expm1', 'extreme_along_axis', 'eye', 'finfo', 'flat_index',
    'flatten', 'flip', 'fliplr', 'flipud', 'float16', 'float32', 'float64', 'floor', 'floor_divide', 'fmax', 'fmin',
    'fold_in', 'fori_loop', 'from_dlpack', 'full', 'full_like', 'gammainc', 'gammaincc', 'gammaln', 'gcd', 'gelu',
    'getitem', 'gradient', 'greater', 'greater_equal', 'group_norm', 'hstack', 'huber_loss', 'hypot', 'i0', 'i0e', 'i1',
    'i1e', 'identity', 'iinfo', 'index', 'inf', 'inner', 'instance_norm', 'int16', 'int32', 'int64', 'int8',
    'interpolate', 'isdtype', 'isfinite', 'isinf', 'isnan', 'isomorphic', 'kl_div', 'kron', 'l1_loss', 'layer_norm',
    'lcm', 'leaky_relu', 'less', 'less_equal', 'linalg', 'linear', 'linear_recurrence', 'linspace', 'log', 'log10',
    'log1p', 'log2', 'log_softmax', 'log_softmax_gradient', 'logaddexp', 'logcumsumexp', 'logical_and', 'logical_not',
    'logical_or', 'logical_xor', 'logsumexp', 'matmul', 'matrix_transpose', 'max', 'max_pool1d', 'max_pool2d',
    'max_pool3d', 'maximum', 'mean', 'meshgrid', 'min', 'minimum', 'moveaxis', 'mse_loss', 'multiply', 'nan',
    'nan_to_num', 'negative', 'newaxis', 'nextafter', 'nll_loss', 'nonzero', 'normal', 'not_equal', 'one_hot', 'ones',
    'ones_like', 'optim', 'outer', 'pad', 'permute_dims', 'pi', 'place', 'polygamma', 'positive', 'pow', 'print',
    'prod', 'random_key', 'ravel', 'reciprocal', 'relu', 'remainder', 'repeat', 'reshape', 'result_type', 'rms_norm',
    'roll', 'rot90', 'round', 'scan', 'scatter', 'scatter_add', 'scatter_reduce', 'searchsorted', 'setitem', 'sigmoid',
    'sign', 'signbit', 'silu', 'sin', 'sinc', 'sinh', 'smooth_l1_loss', 'softmax', 'softmax_gradient', 'softplus',
    'sort', 'split_key', 'sqrt', 'square', 'squeeze', 'stack', 'std', 'stdtr', 'stop_gradient', 'subtract', 'sum',
    'switch', 'take', 'take_along_axis', 'tan', 'tanh', 'tensordot', 'tile', 'trace', 'tree', 'tree_map', 'tril',
    'triu', 'trunc', 'uint16', 'uint32', 'uint64', 'uint8', 'uniform', 'unique_all', 'unique_counts', 'unique_inverse',
    'unique_values', 'unstack', 'var', 'vecdot', 'vector_norm', 'vstack', 'where', 'while_loop', 'window_argmax',
    'window_max', 'window_pick', 'window_place', 'window_spread', 'window_sum', 'zeros', 'zeros_like', 'zeta',
]
