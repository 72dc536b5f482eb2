"""Made by `python -m graphs.testing.stubs`; do not edit."""

import builtins
from typing import Any as _Any

from dynamic import (
    amp as amp, autograd as autograd, backends as backends, cuda as cuda, distributions as distributions, func as func,
    jit as jit, nn as nn, optim as optim, special as special, utils as utils,
)
from dynamic.anomaly import (
    detect_anomaly as detect_anomaly,
)
from dynamic.batching import (
    batched as batched, cell as cell,
)
from dynamic.checkpoint import (
    checkpoint as checkpoint,
)
from dynamic.creation import (
    BoolTensor as BoolTensor, ByteTensor as ByteTensor, DoubleTensor as DoubleTensor, FloatTensor as FloatTensor,
    HalfTensor as HalfTensor, IntTensor as IntTensor, LongTensor as LongTensor, ShortTensor as ShortTensor,
    arange as arange, as_tensor as as_tensor, asarray as asarray, can_cast as can_cast, clone as clone,
    detach as detach, empty as empty, empty_like as empty_like, eye as eye, from_numpy as from_numpy, full as full,
    full_like as full_like, get_default_device as get_default_device, get_default_dtype as get_default_dtype,
    is_floating_point as is_floating_point, is_tensor as is_tensor, linspace as linspace, logspace as logspace,
    numel as numel, ones as ones, ones_like as ones_like, promote_types as promote_types, range as range,
    result_type as result_type, scalar_tensor as scalar_tensor, set_default_device as set_default_device,
    set_default_dtype as set_default_dtype, tensor as tensor, tril_indices as tril_indices,
    triu_indices as triu_indices, zeros as zeros, zeros_like as zeros_like,
)
from dynamic.functional import (
    elementwise_grad as elementwise_grad, grad as grad, hessian as hessian,
    hessian_vector_product as hessian_vector_product, hvp as hvp, jacobian as jacobian, jvp as jvp,
    value_and_grad as value_and_grad, vjp as vjp,
)
from dynamic.grad_mode import (
    enable_grad as enable_grad, inference_mode as inference_mode, is_grad_enabled as is_grad_enabled,
    is_inference_mode_enabled as is_inference_mode_enabled, no_grad as no_grad, set_grad_enabled as set_grad_enabled,
)
from dynamic.gradients import (
    backward as backward, grad_of as grad_of,
)
from dynamic.inspect import (
    Tape as Tape, TapeStats as TapeStats, tape_of as tape_of, tape_stats as tape_stats,
)
from dynamic.node import (
    Node as Node,
)
from dynamic.pool import (
    PoolStats as PoolStats, pool as pool,
)
from dynamic.pytorch.formats import (
    channels_last as channels_last, channels_last_3d as channels_last_3d, contiguous_format as contiguous_format,
    memory_format as memory_format, preserve_format as preserve_format,
)
from dynamic.pytorch.neural import (
    adaptive_avg_pool1d as adaptive_avg_pool1d, adaptive_max_pool1d as adaptive_max_pool1d,
    alpha_dropout as alpha_dropout, avg_pool1d as avg_pool1d, batch_norm as batch_norm, bilinear as bilinear,
    channel_shuffle as channel_shuffle, conv1d as conv1d, conv2d as conv2d, conv3d as conv3d,
    conv_transpose1d as conv_transpose1d, conv_transpose2d as conv_transpose2d, conv_transpose3d as conv_transpose3d,
    dropout as dropout, embedding as embedding, feature_alpha_dropout as feature_alpha_dropout,
    grid_sampler as grid_sampler, group_norm as group_norm, hardshrink as hardshrink, instance_norm as instance_norm,
    layer_norm as layer_norm, max_pool1d as max_pool1d, max_pool2d as max_pool2d, max_pool3d as max_pool3d,
    native_channel_shuffle as native_channel_shuffle, pairwise_distance as pairwise_distance,
    pixel_shuffle as pixel_shuffle, pixel_unshuffle as pixel_unshuffle, prelu as prelu, rms_norm as rms_norm,
    rrelu as rrelu, selu as selu,
)
from dynamic.pytorch.saving import (
    load as load, save as save,
)
from dynamic.pytorch.switches import (
    _assert as _assert, get_float32_matmul_precision as get_float32_matmul_precision,
    get_num_threads as get_num_threads, set_float32_matmul_precision as set_float32_matmul_precision,
    set_num_threads as set_num_threads, use_deterministic_algorithms as use_deterministic_algorithms,
)
from dynamic.pytorch.windows import (
    bartlett_window as bartlett_window, blackman_window as blackman_window, hamming_window as hamming_window,
    hann_window as hann_window, kaiser_window as kaiser_window,
)
from dynamic.random import (
    Generator as Generator, bernoulli as bernoulli, default_generator as default_generator,
    get_rng_state as get_rng_state, initial_seed as initial_seed, manual_seed as manual_seed,
    multinomial as multinomial, normal as normal, poisson as poisson, rand as rand, rand_like as rand_like,
    randint as randint, randint_like as randint_like, randn as randn, randn_like as randn_like, randperm as randperm,
    seed as seed, set_rng_state as set_rng_state,
)
from dynamic.recorder import (
    record as record,
)
from dynamic.tensor import (
    Tensor as Tensor,
)
from graphs.frontends.torch import (
    linalg as linalg,
)
from graphs.frontends.torch.arithmetic import (
    add as add, addcdiv as addcdiv, addcmul as addcmul, allclose as allclose, arctan2 as arctan2, atan2 as atan2,
    bitwise_and as bitwise_and, bitwise_left_shift as bitwise_left_shift, bitwise_not as bitwise_not,
    bitwise_or as bitwise_or, bitwise_right_shift as bitwise_right_shift, bitwise_xor as bitwise_xor, clamp as clamp,
    clamp_max as clamp_max, clamp_min as clamp_min, clip as clip, copysign as copysign, div as div, divide as divide,
    eq as eq, equal as equal, floor_divide as floor_divide, fmax as fmax, fmin as fmin, fmod as fmod, ge as ge,
    greater as greater, greater_equal as greater_equal, gt as gt, heaviside as heaviside, hypot as hypot,
    isclose as isclose, isfinite as isfinite, isinf as isinf, isnan as isnan, isneginf as isneginf,
    isposinf as isposinf, le as le, lerp as lerp, less as less, less_equal as less_equal, logaddexp as logaddexp,
    logaddexp2 as logaddexp2, logical_and as logical_and, logical_not as logical_not, logical_or as logical_or,
    logical_xor as logical_xor, lt as lt, maximum as maximum, minimum as minimum, mul as mul, multiply as multiply,
    ne as ne, nextafter as nextafter, not_equal as not_equal, pow as pow, remainder as remainder, rsub as rsub,
    sub as sub, subtract as subtract, true_divide as true_divide, xlogy as xlogy,
)
from graphs.frontends.torch.dtypes import (
    bool as bool, double as double, dtype as dtype, float as float, float16 as float16, float32 as float32,
    float64 as float64, half as half, int as int, int16 as int16, int32 as int32, int64 as int64, int8 as int8,
    long as long, short as short, uint8 as uint8,
)
from graphs.frontends.torch.joining import (
    atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d, block_diag as block_diag,
    cartesian_prod as cartesian_prod, cat as cat, column_stack as column_stack, combinations as combinations,
    concat as concat, concatenate as concatenate, diag as diag, diag_embed as diag_embed, diagflat as diagflat,
    diagonal as diagonal, dstack as dstack, hstack as hstack, meshgrid as meshgrid, row_stack as row_stack,
    stack as stack, tril as tril, triu as triu, vstack as vstack,
)
from graphs.frontends.torch.numbers import (
    angle as angle, conj as conj, conj_physical as conj_physical, erfinv as erfinv, float_power as float_power,
    frexp as frexp, gcd as gcd, i0 as i0, igamma as igamma, igammac as igammac, is_complex as is_complex,
    is_conj as is_conj, is_neg as is_neg, is_nonzero as is_nonzero, is_same_size as is_same_size,
    is_signed as is_signed, isreal as isreal, lcm as lcm, ldexp as ldexp, mvlgamma as mvlgamma, real as real,
    resolve_conj as resolve_conj, resolve_neg as resolve_neg, sum_to_size as sum_to_size,
)
from graphs.frontends.torch.picking import (
    argsort as argsort, argwhere as argwhere, bincount as bincount, bucketize as bucketize,
    diagonal_scatter as diagonal_scatter, gather as gather, histc as histc, histogram as histogram,
    index_add as index_add, index_copy as index_copy, index_fill as index_fill, index_put as index_put,
    index_reduce as index_reduce, index_select as index_select, isin as isin, kthvalue as kthvalue,
    masked_fill as masked_fill, masked_scatter as masked_scatter, masked_select as masked_select, msort as msort,
    nonzero as nonzero, put as put, scatter as scatter, scatter_add as scatter_add, scatter_reduce as scatter_reduce,
    searchsorted as searchsorted, select_scatter as select_scatter, slice_scatter as slice_scatter, sort as sort,
    take as take, take_along_dim as take_along_dim, topk as topk, unique as unique,
    unique_consecutive as unique_consecutive, where as where,
)
from graphs.frontends.torch.pointwise import (
    abs as abs, absolute as absolute, acos as acos, acosh as acosh, arccos as arccos, arccosh as arccosh,
    arcsin as arcsin, arcsinh as arcsinh, arctan as arctan, arctanh as arctanh, asin as asin, asinh as asinh,
    atan as atan, atanh as atanh, ceil as ceil, cos as cos, cosh as cosh, deg2rad as deg2rad, digamma as digamma,
    erf as erf, erfc as erfc, exp as exp, exp2 as exp2, expm1 as expm1, fix as fix, floor as floor, frac as frac,
    lgamma as lgamma, log as log, log10 as log10, log1p as log1p, log2 as log2, logit as logit,
    nan_to_num as nan_to_num, neg as neg, negative as negative, polygamma as polygamma, positive as positive,
    rad2deg as rad2deg, reciprocal as reciprocal, relu as relu, round as round, rsqrt as rsqrt, sgn as sgn,
    sigmoid as sigmoid, sign as sign, signbit as signbit, sin as sin, sinc as sinc, sinh as sinh, sqrt as sqrt,
    square as square, tan as tan, tanh as tanh, threshold as threshold, trunc as trunc,
)
from graphs.frontends.torch.printing import (
    set_printoptions as set_printoptions,
)
from graphs.frontends.torch.products import (
    addbmm as addbmm, addmm as addmm, addmv as addmv, addr as addr, baddbmm as baddbmm, bmm as bmm, cdist as cdist,
    chain_matmul as chain_matmul, cholesky as cholesky, cholesky_inverse as cholesky_inverse,
    cholesky_solve as cholesky_solve, corrcoef as corrcoef, cosine_similarity as cosine_similarity, cov as cov,
    cross as cross, det as det, dot as dot, einsum as einsum, ger as ger, gradient as gradient, inner as inner,
    inverse as inverse, kron as kron, logdet as logdet, lu as lu, lu_solve as lu_solve, lu_unpack as lu_unpack,
    matmul as matmul, matrix_exp as matrix_exp, matrix_power as matrix_power, mm as mm, mv as mv, outer as outer,
    pinverse as pinverse, qr as qr, renorm as renorm, slogdet as slogdet, svd as svd, tensordot as tensordot,
    trace as trace, trapezoid as trapezoid, trapz as trapz, triangular_solve as triangular_solve, vander as vander,
    vdot as vdot,
)
from graphs.frontends.torch.quantiles import (
    mode as mode, nanmedian as nanmedian, nanquantile as nanquantile, quantile as quantile,
)
from graphs.frontends.torch.reductions import (
    all as all, amax as amax, amin as amin, aminmax as aminmax, any as any, argmax as argmax, argmin as argmin,
    count_nonzero as count_nonzero, cummax as cummax, cummin as cummin, cumprod as cumprod, cumsum as cumsum,
    dist as dist, log_softmax as log_softmax, logcumsumexp as logcumsumexp, logsumexp as logsumexp, max as max,
    mean as mean, median as median, min as min, nanmean as nanmean, nansum as nansum, norm as norm, prod as prod,
    softmax as softmax, std as std, std_mean as std_mean, sum as sum, var as var, var_mean as var_mean,
)
from graphs.frontends.torch.shapes import (
    adjoint as adjoint, broadcast_shapes as broadcast_shapes, broadcast_tensors as broadcast_tensors,
    broadcast_to as broadcast_to, chunk as chunk, diff as diff, dsplit as dsplit, expand as expand,
    expand_as as expand_as, flatten as flatten, flip as flip, fliplr as fliplr, flipud as flipud, hsplit as hsplit,
    moveaxis as moveaxis, movedim as movedim, narrow as narrow, permute as permute, ravel as ravel, repeat as repeat,
    repeat_interleave as repeat_interleave, reshape as reshape, reshape_as as reshape_as, roll as roll, rot90 as rot90,
    select as select, split as split, split_with_sizes as split_with_sizes, squeeze as squeeze, swapaxes as swapaxes,
    swapdims as swapdims, t as t, tensor_split as tensor_split, tile as tile, transpose as transpose, unbind as unbind,
    unflatten as unflatten, unfold as unfold, unsqueeze as unsqueeze, view as view, view_as as view_as, vsplit as vsplit,
)
from graphs.frontends.torch.words import (
    device as device,
)
from graphs.ops.composites import (
    one_hot as one_hot, silu as silu, softplus as softplus,
)
from graphs.ops.control import (
    cond as cond, fori_loop as fori_loop, scan as scan, switch as switch, while_loop as while_loop,
)
from graphs.ops.convolution import (
    convolution as convolution, convolution_input as convolution_input, convolution_weight as convolution_weight,
)
from graphs.ops.creation import (
    from_dlpack as from_dlpack,
)
from graphs.ops.dtypes import (
    __array_api_version__ as __array_api_version__, __array_namespace_info__ as __array_namespace_info__, e as e,
    finfo as finfo, iinfo as iinfo, inf as inf, isdtype as isdtype, nan as nan, newaxis as newaxis, pi as pi,
    uint16 as uint16, uint32 as uint32, uint64 as uint64,
)
from graphs.ops.effects import (
    breakpoint as breakpoint, print as print,
)
from graphs.ops.elementwise import (
    bitwise_invert as bitwise_invert,
)
from graphs.ops.gamma import (
    betainc as betainc, gammainc as gammainc, gammaincc as gammaincc, gammaln as gammaln, i0e as i0e, i1 as i1,
    i1e as i1e, stdtr as stdtr, zeta as zeta,
)
from graphs.ops.indexing import (
    add_along_axis as add_along_axis, flat_index as flat_index, index as index, setitem as setitem,
    take_along_axis as take_along_axis,
)
from graphs.ops.linalg import (
    vecdot as vecdot, vector_norm as vector_norm,
)
from graphs.ops.losses import (
    binary_cross_entropy as binary_cross_entropy, cross_entropy as cross_entropy, huber_loss as huber_loss,
    l1_loss as l1_loss, mse_loss as mse_loss, nll_loss as nll_loss, smooth_l1_loss as smooth_l1_loss,
)
from graphs.ops.manipulation import (
    append as append, astype as astype, broadcast_arrays as broadcast_arrays,
)
from graphs.ops.movement import (
    expand_dims as expand_dims, identity as identity, matrix_transpose as matrix_transpose,
    permute_dims as permute_dims, stop_gradient as stop_gradient, unstack as unstack,
)
from graphs.ops.neural import (
    attention as attention, batch_statistics as batch_statistics, elu as elu, gelu as gelu, leaky_relu as leaky_relu,
    linear as linear,
)
from graphs.ops.padding import (
    pad as pad,
)
from graphs.ops.pooling import (
    avg_pool2d as avg_pool2d, avg_pool3d as avg_pool3d, window_argmax as window_argmax, window_max as window_max,
    window_pick as window_pick, window_place as window_place, window_spread as window_spread, window_sum as window_sum,
)
from graphs.ops.random import (
    fold_in as fold_in, random_key as random_key, split_key as split_key, uniform as uniform,
)
from graphs.ops.resizing import (
    interpolate as interpolate,
)
from graphs.ops.scans import (
    cumulative_argmax as cumulative_argmax, cumulative_argmin as cumulative_argmin, cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum, linear_recurrence as linear_recurrence,
)
from graphs.ops.scattering import (
    extreme_along_axis as extreme_along_axis,
)
from graphs.ops.slicing import (
    getitem as getitem, place as place,
)
from graphs.ops.softmax import (
    log_softmax_gradient as log_softmax_gradient, softmax_gradient as softmax_gradient,
)
from graphs.ops.sorting import (
    unique_all as unique_all, unique_counts as unique_counts, unique_inverse as unique_inverse,
    unique_values as unique_values,
)
from graphs.ops.special import (
    erfcinv as erfcinv, erfcx as erfcx,
)

Entry = Node
Size: type[tuple[_Any, ...]]
__version__: str
abs_ = Tensor.abs_
acos_ = Tensor.acos_
acosh_ = Tensor.acosh_
addmv_ = Tensor.addmv_
arccos_ = Tensor.arccos_
arccosh_ = Tensor.arccosh_
arcsin_ = Tensor.arcsin_
arcsinh_ = Tensor.arcsinh_
arctan_ = Tensor.arctan_
arctanh_ = Tensor.arctanh_
asin_ = Tensor.asin_
asinh_ = Tensor.asinh_
atan_ = Tensor.atan_
atanh_ = Tensor.atanh_
ceil_ = Tensor.ceil_
clamp_ = Tensor.clamp_
clamp_max_ = Tensor.clamp_max_
clamp_min_ = Tensor.clamp_min_
clip_ = Tensor.clip_
conj_physical_ = Tensor.conj_physical_
cos_ = Tensor.cos_
cosh_ = Tensor.cosh_
deg2rad_ = Tensor.deg2rad_
detach_ = Tensor.detach_
erf_ = Tensor.erf_
erfc_ = Tensor.erfc_
exp_ = Tensor.exp_
exp2_ = Tensor.exp2_
expm1_ = Tensor.expm1_
fill_ = Tensor.fill_
fix_ = Tensor.fix_
floor_ = Tensor.floor_
frac_ = Tensor.frac_
gcd_ = Tensor.gcd_
i0_ = Tensor.i0_
index_put_ = Tensor.index_put_
lcm_ = Tensor.lcm_
ldexp_ = Tensor.ldexp_
log_ = Tensor.log_
log10_ = Tensor.log10_
log1p_ = Tensor.log1p_
log2_ = Tensor.log2_
logit_ = Tensor.logit_
nan_to_num_ = Tensor.nan_to_num_
neg_ = Tensor.neg_
negative_ = Tensor.negative_
rad2deg_ = Tensor.rad2deg_
reciprocal_ = Tensor.reciprocal_
relu_ = Tensor.relu_
round_ = Tensor.round_
rsqrt_ = Tensor.rsqrt_
sigmoid_ = Tensor.sigmoid_
sin_ = Tensor.sin_
sinc_ = Tensor.sinc_
sinh_ = Tensor.sinh_
sqrt_ = Tensor.sqrt_
square_ = Tensor.square_
tan_ = Tensor.tan_
tanh_ = Tensor.tanh_
threshold_ = Tensor.threshold_
trunc_ = Tensor.trunc_
xlogy_ = Tensor.xlogy_
zero_ = Tensor.zero_

__all__ = [
    'Entry', 'Node', 'PoolStats', 'Tape', 'TapeStats', 'Tensor', 'record', 'tape_of', 'tape_stats', 'backward',
    'checkpoint', 'elementwise_grad', 'grad', 'grad_of', 'hessian', 'hessian_vector_product', 'hvp', 'jacobian', 'jvp',
    'value_and_grad', 'vjp', 'enable_grad', 'inference_mode', 'is_grad_enabled', 'is_inference_mode_enabled', 'no_grad',
    'set_grad_enabled', 'batched', 'cell', 'detect_anomaly', 'linalg', 'pool', 'bool', 'float16', 'float32', 'float64',
    'int16', 'int32', 'int64', 'int8', 'uint8', 'Size', 'device', 'double', 'dtype', 'half', 'load', 'long', 'save',
    'set_printoptions', 'short', 'BoolTensor', 'ByteTensor', 'DoubleTensor', 'FloatTensor', 'HalfTensor', 'IntTensor',
    'LongTensor', 'ShortTensor', 'arange', 'as_tensor', 'asarray', 'can_cast', 'clone', 'detach', 'empty', 'empty_like',
    'eye', 'from_numpy', 'full', 'full_like', 'get_default_device', 'get_default_dtype', 'is_floating_point',
    'is_tensor', 'linspace', 'logspace', 'numel', 'ones', 'ones_like', 'promote_types', 'range', 'result_type',
    'scalar_tensor', 'set_default_device', 'set_default_dtype', 'tensor', 'tril_indices', 'triu_indices', 'zeros',
    'zeros_like', 'Generator', 'bernoulli', 'default_generator', 'get_rng_state', 'initial_seed', 'manual_seed',
    'multinomial', 'normal', 'poisson', 'rand', 'rand_like', 'randint', 'randint_like', 'randn', 'randn_like',
    'randperm', 'seed', 'set_rng_state', 'add', 'addcdiv', 'addcmul', 'allclose', 'arctan2', 'atan2', 'bitwise_and',
    'bitwise_left_shift', 'bitwise_not', 'bitwise_or', 'bitwise_right_shift', 'bitwise_xor', 'clamp', 'clamp_max',
    'clamp_min', 'clip', 'copysign', 'div', 'divide', 'eq', 'equal', 'floor_divide', 'fmax', 'fmin', 'fmod', 'ge',
    'greater', 'greater_equal', 'gt', 'heaviside', 'hypot', 'isclose', 'isfinite', 'isinf', 'isnan', 'isneginf',
    'isposinf', 'le', 'lerp', 'less', 'less_equal', 'logaddexp', 'logaddexp2', 'logical_and', 'logical_not',
    'logical_or', 'logical_xor', 'lt', 'maximum', 'minimum', 'mul', 'multiply', 'ne', 'nextafter', 'not_equal', 'pow',
    'remainder', 'rsub', 'sub', 'subtract', 'true_divide', 'xlogy', 'atleast_1d', 'atleast_2d', 'atleast_3d',
    'block_diag', 'cartesian_prod', 'cat', 'column_stack', 'combinations', 'concat', 'concatenate', 'diag',
    'diag_embed', 'diagflat', 'diagonal', 'dstack', 'hstack', 'meshgrid', 'row_stack', 'stack', 'tril', 'triu',
    'vstack', 'angle', 'conj', 'conj_physical', 'erfinv', 'float_power', 'frexp', 'gcd', 'i0', 'igamma', 'igammac',
    'is_complex', 'is_conj', 'is_neg', 'is_nonzero', 'is_same_size', 'is_signed', 'isreal', 'lcm', 'ldexp', 'mvlgamma',
    'real', 'resolve_conj', 'resolve_neg', 'sum_to_size', 'argsort', 'argwhere', 'bincount', 'bucketize',
    'diagonal_scatter', 'gather', 'histc', 'histogram', 'index_add', 'index_copy', 'index_fill', 'index_put',
    'index_reduce', 'index_select', 'isin', 'kthvalue', 'masked_fill', 'masked_scatter', 'masked_select', 'msort',
    'nonzero', 'put', 'scatter', 'scatter_add', 'scatter_reduce', 'searchsorted', 'select_scatter', 'slice_scatter',
    'sort', 'take', 'take_along_dim', 'topk', 'unique', 'unique_consecutive', 'where', 'abs', 'absolute', 'acos',
    'acosh', 'arccos', 'arccosh', 'arcsin', 'arcsinh', 'arctan', 'arctanh', 'asin', 'asinh', 'atan', 'atanh', 'ceil',
    'cos', 'cosh', 'deg2rad', 'digamma', 'erf', 'erfc', 'exp', 'exp2', 'expm1', 'fix', 'floor', 'frac', 'lgamma', 'log',
    'log1p', 'log2', 'log10', 'logit', 'nan_to_num', 'neg', 'negative', 'polygamma', 'positive', 'rad2deg',
    'reciprocal', 'relu', 'round', 'rsqrt', 'sgn', 'sigmoid', 'sign', 'signbit', 'sin', 'sinc', 'sinh', 'sqrt',
    'square', 'tan', 'tanh', 'threshold', 'trunc', 'addbmm', 'addmm', 'addmv', 'addr', 'baddbmm', 'bmm', 'cdist',
    'chain_matmul', 'cholesky', 'cholesky_inverse', 'cholesky_solve', 'corrcoef', 'cosine_similarity', 'cov', 'cross',
    'det', 'dot', 'einsum', 'ger', 'gradient', 'inner', 'inverse', 'kron', 'logdet', 'lu', 'lu_solve', 'lu_unpack',
    'matmul', 'matrix_exp', 'matrix_power', 'mm', 'mv', 'outer', 'pinverse', 'qr', 'renorm', 'slogdet', 'svd',
    'tensordot', 'trace', 'trapezoid', 'trapz', 'triangular_solve', 'vander', 'vdot', 'mode', 'nanmedian',
    'nanquantile', 'quantile', 'all', 'amax', 'amin', 'aminmax', 'any', 'argmax', 'argmin', 'count_nonzero', 'cummax',
    'cummin', 'cumprod', 'cumsum', 'dist', 'log_softmax', 'logcumsumexp', 'logsumexp', 'max', 'mean', 'median', 'min',
    'nanmean', 'nansum', 'norm', 'prod', 'softmax', 'std', 'std_mean', 'sum', 'var', 'var_mean', 'adjoint',
    'broadcast_shapes', 'broadcast_tensors', 'broadcast_to', 'chunk', 'diff', 'dsplit', 'expand', 'expand_as',
    'flatten', 'flip', 'fliplr', 'flipud', 'hsplit', 'moveaxis', 'movedim', 'narrow', 'permute', 'ravel', 'repeat',
    'repeat_interleave', 'reshape', 'reshape_as', 'roll', 'rot90', 'select', 'split', 'split_with_sizes', 'squeeze',
    'swapaxes', 'swapdims', 't', 'tensor_split', 'tile', 'transpose', 'unbind', 'unflatten', 'unfold', 'unsqueeze',
    'view', 'view_as', 'vsplit', '__array_api_version__', '__array_namespace_info__', 'add_along_axis', 'append',
    'astype', 'attention', 'avg_pool2d', 'avg_pool3d', 'batch_statistics', 'betainc', 'binary_cross_entropy',
    'bitwise_invert', 'breakpoint', 'broadcast_arrays', 'cond', 'convolution', 'convolution_input',
    'convolution_weight', 'cross_entropy', 'cumulative_argmax', 'cumulative_argmin', 'cumulative_prod',
    'cumulative_sum', 'e', 'elu', 'erfcinv', 'erfcx', 'expand_dims', 'extreme_along_axis', 'finfo', 'flat_index',
    'fold_in', 'fori_loop', 'from_dlpack', 'gammainc', 'gammaincc', 'gammaln', 'gelu', 'getitem', 'huber_loss', 'i0e',
    'i1', 'i1e', 'identity', 'iinfo', 'index', 'inf', 'interpolate', 'isdtype', 'l1_loss', 'leaky_relu', 'linear',
    'linear_recurrence', 'log_softmax_gradient', 'matrix_transpose', 'mse_loss', 'nan', 'newaxis', 'nll_loss',
    'one_hot', 'pad', 'permute_dims', 'pi', 'place', 'print', 'random_key', 'scan', 'setitem', 'silu', 'smooth_l1_loss',
    'softmax_gradient', 'softplus', 'split_key', 'stdtr', 'stop_gradient', 'switch', 'take_along_axis', 'uint16',
    'uint32', 'uint64', 'uniform', 'unique_all', 'unique_counts', 'unique_inverse', 'unique_values', 'unstack',
    'vecdot', 'vector_norm', 'while_loop', 'window_argmax', 'window_max', 'window_pick', 'window_place',
    'window_spread', 'window_sum', 'zeta',
]
