"""Made by `python -m graphs.testing.stubs`; do not edit."""

import builtins
from typing import Any as _Any

from dynamic import (
    amp as amp, autograd as autograd, backends as backends, cuda as cuda, distributions as distributions, func as func,
    jit as jit, nn as nn, optim as optim, special as special, utils as utils,
)
from dynamic.anomaly import (
    Tape as Tape, TapeStats as TapeStats, detect_anomaly as detect_anomaly, record as record, tape_of as tape_of,
    tape_stats as tape_stats,
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
from dynamic.node import (
    Node as Node,
)
from dynamic.pool import (
    PoolStats as PoolStats, pool as pool,
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
from dynamic.pytorch.seldom import (
    _assert as _assert, bartlett_window as bartlett_window, blackman_window as blackman_window,
    channels_last as channels_last, channels_last_3d as channels_last_3d, contiguous_format as contiguous_format,
    get_float32_matmul_precision as get_float32_matmul_precision, get_num_threads as get_num_threads,
    hamming_window as hamming_window, hann_window as hann_window, kaiser_window as kaiser_window,
    memory_format as memory_format, preserve_format as preserve_format,
    set_float32_matmul_precision as set_float32_matmul_precision, set_num_threads as set_num_threads,
    use_deterministic_algorithms as use_deterministic_algorithms,
)
from dynamic.random import (
    Generator as Generator, bernoulli as bernoulli, default_generator as default_generator,
    get_rng_state as get_rng_state, initial_seed as initial_seed, manual_seed as manual_seed,
    multinomial as multinomial, normal as normal, poisson as poisson, rand as rand, rand_like as rand_like,
    randint as randint, randint_like as randint_like, randn as randn, randn_like as randn_like, randperm as randperm,
    seed as seed, set_rng_state as set_rng_state,
)
from dynamic.tensor import (
    Tensor as Tensor,
)
from graphs.frontends.torch import (
    linalg as linalg,
)
from graphs.frontends.torch.dtypes import (
    bool as bool, double as double, dtype as dtype, float as float, float16 as float16, float32 as float32,
    float64 as float64, half as half, int as int, int16 as int16, int32 as int32, int64 as int64, int8 as int8,
    long as long, short as short, uint8 as uint8,
)
from graphs.frontends.torch.functions import (
    abs as abs, absolute as absolute, acos as acos, acosh as acosh, add as add, addbmm as addbmm, addcdiv as addcdiv,
    addcmul as addcmul, addmm as addmm, addmv as addmv, addr as addr, adjoint as adjoint, all as all,
    allclose as allclose, amax as amax, amin as amin, aminmax as aminmax, angle as angle, any as any, arccos as arccos,
    arccosh as arccosh, arcsin as arcsin, arcsinh as arcsinh, arctan as arctan, arctan2 as arctan2, arctanh as arctanh,
    argmax as argmax, argmin as argmin, argsort as argsort, argwhere as argwhere, asin as asin, asinh as asinh,
    atan as atan, atan2 as atan2, atanh as atanh, atleast_1d as atleast_1d, atleast_2d as atleast_2d,
    atleast_3d as atleast_3d, baddbmm as baddbmm, bincount as bincount, bitwise_and as bitwise_and,
    bitwise_left_shift as bitwise_left_shift, bitwise_not as bitwise_not, bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift, bitwise_xor as bitwise_xor, block_diag as block_diag, bmm as bmm,
    broadcast_shapes as broadcast_shapes, broadcast_tensors as broadcast_tensors, broadcast_to as broadcast_to,
    bucketize as bucketize, cartesian_prod as cartesian_prod, cat as cat, cdist as cdist, ceil as ceil,
    chain_matmul as chain_matmul, cholesky as cholesky, cholesky_inverse as cholesky_inverse,
    cholesky_solve as cholesky_solve, chunk as chunk, clamp as clamp, clamp_max as clamp_max, clamp_min as clamp_min,
    clip as clip, column_stack as column_stack, combinations as combinations, concat as concat,
    concatenate as concatenate, conj as conj, conj_physical as conj_physical, copysign as copysign,
    corrcoef as corrcoef, cos as cos, cosh as cosh, cosine_similarity as cosine_similarity,
    count_nonzero as count_nonzero, cov as cov, cross as cross, cummax as cummax, cummin as cummin, cumprod as cumprod,
    cumsum as cumsum, deg2rad as deg2rad, det as det, diag as diag, diag_embed as diag_embed, diagflat as diagflat,
    diagonal as diagonal, diagonal_scatter as diagonal_scatter, diff as diff, digamma as digamma, dist as dist,
    div as div, divide as divide, dot as dot, dsplit as dsplit, dstack as dstack, einsum as einsum, eq as eq,
    equal as equal, erf as erf, erfc as erfc, erfinv as erfinv, exp as exp, exp2 as exp2, expand as expand,
    expand_as as expand_as, expm1 as expm1, fix as fix, flatten as flatten, flip as flip, fliplr as fliplr,
    flipud as flipud, float_power as float_power, floor as floor, floor_divide as floor_divide, fmax as fmax,
    fmin as fmin, fmod as fmod, frac as frac, frexp as frexp, gather as gather, gcd as gcd, ge as ge, ger as ger,
    gradient as gradient, greater as greater, greater_equal as greater_equal, gt as gt, heaviside as heaviside,
    histc as histc, histogram as histogram, hsplit as hsplit, hstack as hstack, hypot as hypot, i0 as i0,
    igamma as igamma, igammac as igammac, index_add as index_add, index_copy as index_copy, index_fill as index_fill,
    index_put as index_put, index_reduce as index_reduce, index_select as index_select, inner as inner,
    inverse as inverse, is_complex as is_complex, is_conj as is_conj, is_neg as is_neg, is_nonzero as is_nonzero,
    is_same_size as is_same_size, is_signed as is_signed, isclose as isclose, isfinite as isfinite, isin as isin,
    isinf as isinf, isnan as isnan, isneginf as isneginf, isposinf as isposinf, isreal as isreal, kron as kron,
    kthvalue as kthvalue, lcm as lcm, ldexp as ldexp, le as le, lerp as lerp, less as less, less_equal as less_equal,
    lgamma as lgamma, log as log, log10 as log10, log1p as log1p, log2 as log2, log_softmax as log_softmax,
    logaddexp as logaddexp, logaddexp2 as logaddexp2, logcumsumexp as logcumsumexp, logdet as logdet,
    logical_and as logical_and, logical_not as logical_not, logical_or as logical_or, logical_xor as logical_xor,
    logit as logit, logsumexp as logsumexp, lt as lt, lu as lu, lu_solve as lu_solve, lu_unpack as lu_unpack,
    masked_fill as masked_fill, masked_scatter as masked_scatter, masked_select as masked_select, matmul as matmul,
    matrix_exp as matrix_exp, matrix_power as matrix_power, max as max, maximum as maximum, mean as mean,
    median as median, meshgrid as meshgrid, min as min, minimum as minimum, mm as mm, mode as mode,
    moveaxis as moveaxis, movedim as movedim, msort as msort, mul as mul, multiply as multiply, mv as mv,
    mvlgamma as mvlgamma, nan_to_num as nan_to_num, nanmean as nanmean, nanmedian as nanmedian,
    nanquantile as nanquantile, nansum as nansum, narrow as narrow, ne as ne, neg as neg, negative as negative,
    nextafter as nextafter, nonzero as nonzero, norm as norm, not_equal as not_equal, outer as outer,
    permute as permute, pinverse as pinverse, polygamma as polygamma, positive as positive, pow as pow, prod as prod,
    put as put, qr as qr, quantile as quantile, rad2deg as rad2deg, ravel as ravel, real as real,
    reciprocal as reciprocal, relu as relu, remainder as remainder, renorm as renorm, repeat as repeat,
    repeat_interleave as repeat_interleave, reshape as reshape, reshape_as as reshape_as, resolve_conj as resolve_conj,
    resolve_neg as resolve_neg, roll as roll, rot90 as rot90, round as round, row_stack as row_stack, rsqrt as rsqrt,
    rsub as rsub, scatter as scatter, scatter_add as scatter_add, scatter_reduce as scatter_reduce,
    searchsorted as searchsorted, select as select, select_scatter as select_scatter, sgn as sgn, sigmoid as sigmoid,
    sign as sign, signbit as signbit, sin as sin, sinc as sinc, sinh as sinh, slice_scatter as slice_scatter,
    slogdet as slogdet, softmax as softmax, sort as sort, split as split, split_with_sizes as split_with_sizes,
    sqrt as sqrt, square as square, squeeze as squeeze, stack as stack, std as std, std_mean as std_mean, sub as sub,
    subtract as subtract, sum as sum, sum_to_size as sum_to_size, svd as svd, swapaxes as swapaxes,
    swapdims as swapdims, t as t, take as take, take_along_dim as take_along_dim, tan as tan, tanh as tanh,
    tensor_split as tensor_split, tensordot as tensordot, threshold as threshold, tile as tile, topk as topk,
    trace as trace, transpose as transpose, trapezoid as trapezoid, trapz as trapz,
    triangular_solve as triangular_solve, tril as tril, triu as triu, true_divide as true_divide, trunc as trunc,
    unbind as unbind, unflatten as unflatten, unfold as unfold, unique as unique,
    unique_consecutive as unique_consecutive, unsqueeze as unsqueeze, vander as vander, var as var,
    var_mean as var_mean, vdot as vdot, view as view, view_as as view_as, vsplit as vsplit, vstack as vstack,
    where as where, xlogy as xlogy,
)
from graphs.frontends.torch.printing import (
    set_printoptions as set_printoptions,
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
    append as append, astype as astype, broadcast_arrays as broadcast_arrays, pad as pad,
)
from graphs.ops.movement import (
    expand_dims as expand_dims, identity as identity, matrix_transpose as matrix_transpose,
    permute_dims as permute_dims, stop_gradient as stop_gradient, unstack as unstack,
)
from graphs.ops.neural import (
    attention as attention, batch_statistics as batch_statistics, elu as elu, gelu as gelu, interpolate as interpolate,
    leaky_relu as leaky_relu, linear as linear,
)
from graphs.ops.pooling import (
    avg_pool2d as avg_pool2d, avg_pool3d as avg_pool3d, window_argmax as window_argmax, window_max as window_max,
    window_pick as window_pick, window_place as window_place, window_spread as window_spread, window_sum as window_sum,
)
from graphs.ops.random import (
    fold_in as fold_in, random_key as random_key, split_key as split_key, uniform as uniform,
)
from graphs.ops.scans import (
    cumulative_argmax as cumulative_argmax, cumulative_argmin as cumulative_argmin, cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum, linear_recurrence as linear_recurrence,
)
from graphs.ops.slicing import (
    getitem as getitem, place as place,
)
from graphs.ops.softmax import (
    log_softmax_gradient as log_softmax_gradient, softmax_gradient as softmax_gradient,
)
from graphs.ops.sorting import (
    extreme_along_axis as extreme_along_axis, unique_all as unique_all, unique_counts as unique_counts,
    unique_inverse as unique_inverse, unique_values as unique_values,
)
from graphs.ops.special import (
    entr as entr, erfcinv as erfcinv, erfcx as erfcx,
)

Entry = Node
Size: type[tuple[_Any, ...]]
__version__: str
abs_ = Tensor.abs_
absolute_ = Tensor.absolute_
acos_ = Tensor.acos_
acosh_ = Tensor.acosh_
add_ = Tensor.add_
addbmm_ = Tensor.addbmm_
addcdiv_ = Tensor.addcdiv_
addcmul_ = Tensor.addcmul_
addmm_ = Tensor.addmm_
addmv_ = Tensor.addmv_
addr_ = Tensor.addr_
arccos_ = Tensor.arccos_
arccosh_ = Tensor.arccosh_
arcsin_ = Tensor.arcsin_
arcsinh_ = Tensor.arcsinh_
arctan2_ = Tensor.arctan2_
arctan_ = Tensor.arctan_
arctanh_ = Tensor.arctanh_
asin_ = Tensor.asin_
asinh_ = Tensor.asinh_
atan2_ = Tensor.atan2_
atan_ = Tensor.atan_
atanh_ = Tensor.atanh_
baddbmm_ = Tensor.baddbmm_
bernoulli_ = Tensor.bernoulli_
bitwise_and_ = Tensor.bitwise_and_
bitwise_left_shift_ = Tensor.bitwise_left_shift_
bitwise_not_ = Tensor.bitwise_not_
bitwise_or_ = Tensor.bitwise_or_
bitwise_right_shift_ = Tensor.bitwise_right_shift_
bitwise_xor_ = Tensor.bitwise_xor_
ceil_ = Tensor.ceil_
clamp_ = Tensor.clamp_
clamp_max_ = Tensor.clamp_max_
clamp_min_ = Tensor.clamp_min_
clip_ = Tensor.clip_
conj_physical_ = Tensor.conj_physical_
copy_ = Tensor.copy_
copysign_ = Tensor.copysign_
cos_ = Tensor.cos_
cosh_ = Tensor.cosh_
cumprod_ = Tensor.cumprod_
cumsum_ = Tensor.cumsum_
deg2rad_ = Tensor.deg2rad_
detach_ = Tensor.detach_
digamma_ = Tensor.digamma_
div_ = Tensor.div_
divide_ = Tensor.divide_
eq_ = Tensor.eq_
erf_ = Tensor.erf_
erfc_ = Tensor.erfc_
erfinv_ = Tensor.erfinv_
exp2_ = Tensor.exp2_
exp_ = Tensor.exp_
expm1_ = Tensor.expm1_
exponential_ = Tensor.exponential_
fill_ = Tensor.fill_
fill_diagonal_ = Tensor.fill_diagonal_
fix_ = Tensor.fix_
float_power_ = Tensor.float_power_
floor_ = Tensor.floor_
floor_divide_ = Tensor.floor_divide_
fmod_ = Tensor.fmod_
frac_ = Tensor.frac_
gcd_ = Tensor.gcd_
ge_ = Tensor.ge_
greater_ = Tensor.greater_
greater_equal_ = Tensor.greater_equal_
gt_ = Tensor.gt_
heaviside_ = Tensor.heaviside_
hypot_ = Tensor.hypot_
i0_ = Tensor.i0_
igamma_ = Tensor.igamma_
igammac_ = Tensor.igammac_
index_add_ = Tensor.index_add_
index_copy_ = Tensor.index_copy_
index_fill_ = Tensor.index_fill_
index_put_ = Tensor.index_put_
index_reduce_ = Tensor.index_reduce_
lcm_ = Tensor.lcm_
ldexp_ = Tensor.ldexp_
le_ = Tensor.le_
lerp_ = Tensor.lerp_
less_ = Tensor.less_
less_equal_ = Tensor.less_equal_
lgamma_ = Tensor.lgamma_
log10_ = Tensor.log10_
log1p_ = Tensor.log1p_
log2_ = Tensor.log2_
log_ = Tensor.log_
logical_and_ = Tensor.logical_and_
logical_not_ = Tensor.logical_not_
logical_or_ = Tensor.logical_or_
logical_xor_ = Tensor.logical_xor_
logit_ = Tensor.logit_
lt_ = Tensor.lt_
masked_fill_ = Tensor.masked_fill_
masked_scatter_ = Tensor.masked_scatter_
mul_ = Tensor.mul_
multiply_ = Tensor.multiply_
mvlgamma_ = Tensor.mvlgamma_
nan_to_num_ = Tensor.nan_to_num_
ne_ = Tensor.ne_
neg_ = Tensor.neg_
negative_ = Tensor.negative_
nextafter_ = Tensor.nextafter_
normal_ = Tensor.normal_
not_equal_ = Tensor.not_equal_
polygamma_ = Tensor.polygamma_
pow_ = Tensor.pow_
put_ = Tensor.put_
rad2deg_ = Tensor.rad2deg_
random_ = Tensor.random_
reciprocal_ = Tensor.reciprocal_
relu_ = Tensor.relu_
remainder_ = Tensor.remainder_
renorm_ = Tensor.renorm_
requires_grad_ = Tensor.requires_grad_
round_ = Tensor.round_
rsqrt_ = Tensor.rsqrt_
scatter_ = Tensor.scatter_
scatter_add_ = Tensor.scatter_add_
scatter_reduce_ = Tensor.scatter_reduce_
sgn_ = Tensor.sgn_
sigmoid_ = Tensor.sigmoid_
sign_ = Tensor.sign_
sin_ = Tensor.sin_
sinc_ = Tensor.sinc_
sinh_ = Tensor.sinh_
sqrt_ = Tensor.sqrt_
square_ = Tensor.square_
squeeze_ = Tensor.squeeze_
sub_ = Tensor.sub_
subtract_ = Tensor.subtract_
swapaxes_ = Tensor.swapaxes_
swapdims_ = Tensor.swapdims_
t_ = Tensor.t_
tan_ = Tensor.tan_
tanh_ = Tensor.tanh_
threshold_ = Tensor.threshold_
transpose_ = Tensor.transpose_
tril_ = Tensor.tril_
triu_ = Tensor.triu_
true_divide_ = Tensor.true_divide_
trunc_ = Tensor.trunc_
uniform_ = Tensor.uniform_
unsqueeze_ = Tensor.unsqueeze_
where_ = Tensor.where_
xlogy_ = Tensor.xlogy_
zero_ = Tensor.zero_

__all__ = [
    'BoolTensor', 'ByteTensor', 'DoubleTensor', 'Entry', 'FloatTensor', 'Generator', 'HalfTensor', 'IntTensor',
    'LongTensor', 'Node', 'PoolStats', 'ShortTensor', 'Size', 'Tape', 'TapeStats', 'Tensor', '__array_api_version__',
    '__array_namespace_info__', 'abs', 'absolute', 'acos', 'acosh', 'add', 'add_along_axis', 'addbmm', 'addcdiv',
    'addcmul', 'addmm', 'addmv', 'addr', 'adjoint', 'all', 'allclose', 'amax', 'amin', 'aminmax', 'angle', 'any',
    'append', 'arange', 'arccos', 'arccosh', 'arcsin', 'arcsinh', 'arctan', 'arctan2', 'arctanh', 'argmax', 'argmin',
    'argsort', 'argwhere', 'as_tensor', 'asarray', 'asin', 'asinh', 'astype', 'atan', 'atan2', 'atanh', 'atleast_1d',
    'atleast_2d', 'atleast_3d', 'attention', 'avg_pool2d', 'avg_pool3d', 'backward', 'baddbmm', 'batch_statistics',
    'batched', 'bernoulli', 'betainc', 'binary_cross_entropy', 'bincount', 'bitwise_and', 'bitwise_invert',
    'bitwise_left_shift', 'bitwise_not', 'bitwise_or', 'bitwise_right_shift', 'bitwise_xor', 'block_diag', 'bmm',
    'bool', 'breakpoint', 'broadcast_arrays', 'broadcast_shapes', 'broadcast_tensors', 'broadcast_to', 'bucketize',
    'can_cast', 'cartesian_prod', 'cat', 'cdist', 'ceil', 'cell', 'chain_matmul', 'checkpoint', 'cholesky',
    'cholesky_inverse', 'cholesky_solve', 'chunk', 'clamp', 'clamp_max', 'clamp_min', 'clip', 'clone', 'column_stack',
    'combinations', 'concat', 'concatenate', 'cond', 'conj', 'conj_physical', 'convolution', 'convolution_input',
    'convolution_weight', 'copysign', 'corrcoef', 'cos', 'cosh', 'cosine_similarity', 'count_nonzero', 'cov', 'cross',
    'cross_entropy', 'cummax', 'cummin', 'cumprod', 'cumsum', 'cumulative_argmax', 'cumulative_argmin',
    'cumulative_prod', 'cumulative_sum', 'default_generator', 'deg2rad', 'det', 'detach', 'detect_anomaly', 'device',
    'diag', 'diag_embed', 'diagflat', 'diagonal', 'diagonal_scatter', 'diff', 'digamma', 'dist', 'div', 'divide', 'dot',
    'double', 'dsplit', 'dstack', 'dtype', 'e', 'einsum', 'elementwise_grad', 'elu', 'empty', 'empty_like',
    'enable_grad', 'entr', 'eq', 'equal', 'erf', 'erfc', 'erfcinv', 'erfcx', 'erfinv', 'exp', 'exp2', 'expand',
    'expand_as', 'expand_dims', 'expm1', 'extreme_along_axis', 'eye', 'finfo', 'fix', 'flat_index', 'flatten', 'flip',
    'fliplr', 'flipud', 'float16', 'float32', 'float64', 'float_power', 'floor', 'floor_divide', 'fmax', 'fmin', 'fmod',
    'fold_in', 'fori_loop', 'frac', 'frexp', 'from_dlpack', 'from_numpy', 'full', 'full_like', 'gammainc', 'gammaincc',
    'gammaln', 'gather', 'gcd', 'ge', 'gelu', 'ger', 'get_default_device', 'get_default_dtype', 'get_rng_state',
    'getitem', 'grad', 'grad_of', 'gradient', 'greater', 'greater_equal', 'gt', 'half', 'heaviside', 'hessian',
    'hessian_vector_product', 'histc', 'histogram', 'hsplit', 'hstack', 'huber_loss', 'hvp', 'hypot', 'i0', 'i0e', 'i1',
    'i1e', 'identity', 'igamma', 'igammac', 'iinfo', 'index', 'index_add', 'index_copy', 'index_fill', 'index_put',
    'index_reduce', 'index_select', 'inf', 'inference_mode', 'initial_seed', 'inner', 'int16', 'int32', 'int64', 'int8',
    'interpolate', 'inverse', 'is_complex', 'is_conj', 'is_floating_point', 'is_grad_enabled',
    'is_inference_mode_enabled', 'is_neg', 'is_nonzero', 'is_same_size', 'is_signed', 'is_tensor', 'isclose', 'isdtype',
    'isfinite', 'isin', 'isinf', 'isnan', 'isneginf', 'isposinf', 'isreal', 'jacobian', 'jvp', 'kron', 'kthvalue',
    'l1_loss', 'lcm', 'ldexp', 'le', 'leaky_relu', 'lerp', 'less', 'less_equal', 'lgamma', 'linalg', 'linear',
    'linear_recurrence', 'linspace', 'load', 'log', 'log10', 'log1p', 'log2', 'log_softmax', 'log_softmax_gradient',
    'logaddexp', 'logaddexp2', 'logcumsumexp', 'logdet', 'logical_and', 'logical_not', 'logical_or', 'logical_xor',
    'logit', 'logspace', 'logsumexp', 'long', 'lt', 'lu', 'lu_solve', 'lu_unpack', 'manual_seed', 'masked_fill',
    'masked_scatter', 'masked_select', 'matmul', 'matrix_exp', 'matrix_power', 'matrix_transpose', 'max', 'maximum',
    'mean', 'median', 'meshgrid', 'min', 'minimum', 'mm', 'mode', 'moveaxis', 'movedim', 'mse_loss', 'msort', 'mul',
    'multinomial', 'multiply', 'mv', 'mvlgamma', 'nan', 'nan_to_num', 'nanmean', 'nanmedian', 'nanquantile', 'nansum',
    'narrow', 'ne', 'neg', 'negative', 'newaxis', 'nextafter', 'nll_loss', 'no_grad', 'nonzero', 'norm', 'normal',
    'not_equal', 'numel', 'one_hot', 'ones', 'ones_like', 'outer', 'pad', 'permute', 'permute_dims', 'pi', 'pinverse',
    'place', 'poisson', 'polygamma', 'pool', 'positive', 'pow', 'print', 'prod', 'promote_types', 'put', 'qr',
    'quantile', 'rad2deg', 'rand', 'rand_like', 'randint', 'randint_like', 'randn', 'randn_like', 'random_key',
    'randperm', 'range', 'ravel', 'real', 'reciprocal', 'record', 'relu', 'remainder', 'renorm', 'repeat',
    'repeat_interleave', 'reshape', 'reshape_as', 'resolve_conj', 'resolve_neg', 'result_type', 'roll', 'rot90',
    'round', 'row_stack', 'rsqrt', 'rsub', 'save', 'scalar_tensor', 'scan', 'scatter', 'scatter_add', 'scatter_reduce',
    'searchsorted', 'seed', 'select', 'select_scatter', 'set_default_device', 'set_default_dtype', 'set_grad_enabled',
    'set_printoptions', 'set_rng_state', 'setitem', 'sgn', 'short', 'sigmoid', 'sign', 'signbit', 'silu', 'sin', 'sinc',
    'sinh', 'slice_scatter', 'slogdet', 'smooth_l1_loss', 'softmax', 'softmax_gradient', 'softplus', 'sort', 'split',
    'split_key', 'split_with_sizes', 'sqrt', 'square', 'squeeze', 'stack', 'std', 'std_mean', 'stdtr', 'stop_gradient',
    'sub', 'subtract', 'sum', 'sum_to_size', 'svd', 'swapaxes', 'swapdims', 'switch', 't', 'take', 'take_along_axis',
    'take_along_dim', 'tan', 'tanh', 'tape_of', 'tape_stats', 'tensor', 'tensor_split', 'tensordot', 'threshold',
    'tile', 'topk', 'trace', 'transpose', 'trapezoid', 'trapz', 'triangular_solve', 'tril', 'tril_indices', 'triu',
    'triu_indices', 'true_divide', 'trunc', 'uint16', 'uint32', 'uint64', 'uint8', 'unbind', 'unflatten', 'unfold',
    'uniform', 'unique', 'unique_all', 'unique_consecutive', 'unique_counts', 'unique_inverse', 'unique_values',
    'unsqueeze', 'unstack', 'value_and_grad', 'vander', 'var', 'var_mean', 'vdot', 'vecdot', 'vector_norm', 'view',
    'view_as', 'vjp', 'vsplit', 'vstack', 'where', 'while_loop', 'window_argmax', 'window_max', 'window_pick',
    'window_place', 'window_spread', 'window_sum', 'xlogy', 'zeros', 'zeros_like', 'zeta',
]
