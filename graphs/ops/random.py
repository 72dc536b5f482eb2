"""Random numbers from explicit keys: the same key gives the same numbers in both engines, on every call.

A key is an array u64[2] and is passed like any other argument, so that a compiled graph gives other numbers for
another key. A key that is *not* an argument but made inside a traced function is a constant of the graph.

    key = graphs.random_key(0)
    first, second = graphs.split_key(key)          # independent keys
    step_key = graphs.fold_in(key, step)           # a key for each number, which may be an input too
    noise = graphs.normal(first, (3, 4))

**Stability.** The bits are those of `numpy.random.Philox` (Salmon et al., "Parallel random numbers: as easy as
1, 2, 3", SC 2011), whose stream NumPy's policy (NEP 19) keeps fixed for ever. Numbers are made of the bits here and not
by `numpy.random.Generator`, whose methods may change. So uniform, bernoulli and the keys are the same to the bit on
every machine and version; normal is, up to the rounding of the logarithm, the sine and the cosine.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs import dims, dispatch
from graphs.dims import Dim, Shape
from graphs.errors import ShapeError
from graphs.op import Array, Attrs, Op, Prepared
from graphs.ops.elementwise import less
from graphs.ops.movement import identity
from graphs.ops.shapes import as_operand, as_shape, floating, integral, store
from graphs.spec import TensorSpec, spec_of

__all__ = ["bernoulli", "fold_in", "normal", "random_key", "split_key", "uniform"]


# The highest word of Philox's 256-bit counter separates the streams of one key: numbers, new keys, folded keys.
_NUMBERS, _KEYS, _FOLDED = 0, 1, 2


def random_key(seed: int) -> npt.NDArray[np.uint64]:
    """The key for a seed from 0 to 2**64 - 1. Raises ValueError for other seeds."""
    if not 0 <= seed < 1 << 64:
        raise ValueError(f"a seed is from 0 to 2**64 - 1, not {seed}")
    return np.array([seed, 0], np.uint64)


# Kernels ----------------------------------------------------------------------------------------------------------


def _bits(key: Array, count: int, stream: int, block: int = 0) -> npt.NDArray[np.uint64]:
    counter = np.array([0, 0, block, stream], np.uint64)
    return np.asarray(np.random.Philox(key=key, counter=counter).random_raw(count), np.uint64)


def _unit(key: Array, count: int, dtype: np.dtype[Any]) -> Array:
    """Numbers in [0, 1): the highest bits, as many as the dtype holds exactly, scaled by a power of 2."""
    digits = np.finfo(dtype).nmant + 1
    if digits > 32:
        return (_bits(key, count, _NUMBERS) >> np.uint64(64 - digits)) * 2.0**-digits
    words = _bits(key, (count + 1) // 2, _NUMBERS).astype("<u8", copy=False).view("<u4")[:count]
    return (words >> np.uint32(32 - digits)).astype(dtype) * dtype.type(2.0**-digits)


def _uniform(key: Array, *, shape: tuple[int, ...], dtype: np.dtype[Any], out: Array = None) -> Array:
    """Uniform numbers in [0, 1): `uniform(key, shape=(), dtype='float64')`."""
    return store(_unit(key, math.prod(shape), dtype).reshape(shape), out)


def _normal(key: Array, *, shape: tuple[int, ...], dtype: np.dtype[Any], out: Array = None) -> Array:
    """Normal numbers of mean 0 and variance 1: `normal(key, shape=(), dtype='float64')`."""
    # Box and Muller, "A note on the generation of random normal deviates", 1958: two uniform numbers give two normal
    # ones.
    wide = np.promote_types(dtype, np.float32)
    count = math.prod(shape)
    half = (count + 1) // 2
    unit = _unit(key, 2 * half, wide)
    radius = np.sqrt(-2 * np.log(1 - unit[:half]))
    angle = unit[half:] * wide.type(2 * math.pi)
    values = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]
    return store(values.astype(dtype, copy=False).reshape(shape), out)


def _split_key(key: Array, *, n: int, out: Array = None) -> Array:
    """u64[n, 2]: n keys whose numbers are independent of each other's and of those of the original key."""
    return store(_bits(key, 2 * n, _KEYS).reshape(n, 2), out)


def _fold_in(key: Array, number: Array, *, out: Array = None) -> Array:
    """The key for an integer, such as the number of a step: different integers give independent keys."""
    return store(_bits(key, 2, _FOLDED, int(number) & 0xFFFF_FFFF_FFFF_FFFF), out)


# Ops --------------------------------------------------------------------------------------------------------------


def _check_key(key: TensorSpec) -> None:
    if key.dtype != np.uint64 or not dims.same_shape(key.shape, (2,)):
        raise ShapeError(f"a key is u64[2], not {key}; make one with graphs.random_key(seed)")


def _prepare(key: Array, /, shape: Any = (), dtype: npt.DTypeLike = np.float64) -> Prepared:
    sizes = as_shape(shape)
    value = as_operand(key)
    symbolic = next((s for s in sizes if isinstance(s, Dim)), None)
    if symbolic is not None and isinstance(value, np.ndarray):
        # Only the trace that a symbolic size belongs to can hold the result, so the key becomes a constant of that
        # trace.
        bind = dispatch.interpreter_of(symbolic)
        value = bind(identity, (value,), {}) if bind else value
    attrs: Attrs = {"shape": sizes, "dtype": np.dtype(dtype)}
    _infer(spec_of(value), **attrs)  # nothing in the kernel would notice what is no key
    return (value,), attrs


def _infer(key: TensorSpec, *, shape: Shape, dtype: np.dtype[Any]) -> TensorSpec:
    _check_key(key)
    spec = TensorSpec(shape, dtype)
    floating(spec)
    return spec


def _infer_split(key: TensorSpec, *, n: int) -> TensorSpec:
    _check_key(key)
    return TensorSpec((n, 2), np.uint64)


def _infer_fold(key: TensorSpec, number: TensorSpec) -> TensorSpec:
    _check_key(key)
    integral(number, "what is folded in")
    if number.shape:
        raise ShapeError(f"folds in one number, not an array of shape {number.shape}; index it")
    return key


def _prepare_split(key: Array, /, n: int = 2) -> Prepared:
    _check_key(spec_of(key))
    return (as_operand(key),), {"n": n}


def _prepare_fold(key: Array, number: Array, /) -> Prepared:
    values = as_operand(key), as_operand(number)
    _infer_fold(*map(spec_of, values))
    return values, {}


uniform: Op = Op("uniform", _uniform, _infer, prepare=_prepare, cost=10, family="random")
normal: Op = Op("normal", _normal, _infer, prepare=_prepare, cost=30, family="random")
split_key: Op = Op("split_key", _split_key, _infer_split, prepare=_prepare_split, cost=10, family="random")
fold_in: Op = Op("fold_in", _fold_in, _infer_fold, prepare=_prepare_fold, cost=10, family="random")


def bernoulli(key: Array, probability: Any, shape: Any = (), /) -> Array:
    """bool[shape], each True with this probability: a number, or an array that broadcasts to the shape."""
    return less(uniform(key, shape, np.float32), probability)
