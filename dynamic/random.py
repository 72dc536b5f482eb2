"""Random tensors, from generators that a seed restarts. The numbers are NumPy's, not PyTorch's.

A trace draws no numbers: they become an input of the graph, which is drawn anew in each call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from dynamic.checkpoint import drawn_from
from dynamic.creation import _shape, lay_like
from dynamic.creation import leaf as made
from dynamic.tensor import Tensor
from graphs import capture, ops
from graphs.errors import ArgumentError, GraphError, OptionError, locate
from graphs.frontends.torch.complexes import view_as_complex
from graphs.frontends.torch.dtypes import complex128
from graphs.frontends.torch.names import guard, method
from graphs.frontends.torch.words import as_dtype, cast
from graphs.ops.shapes import as_count, new_shape

__all__ = [
    "Generator", "bernoulli", "default_generator", "get_rng_state", "initial_seed", "manual_seed", "multinomial",
    "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "seed",
    "set_rng_state",
]  # fmt: skip

numpy_draws: Any = SimpleNamespace  # a generator of this engine that draws from one of NumPy's, `numpy`
Array = np.ndarray[Any, Any]
Draw: TypeAlias = "Callable[[np.random.Generator], Any]"  # a text: NumPy loads its generators when they are used
_FIRST_SEED = 67280421310721  # as in PyTorch: a program that names no seed draws the same numbers in each run


class Generator:
    """A stream of random numbers, which a seed restarts.

    A restart in a trace is one of every call: the first draw after it restarts the stream before it draws.
    """

    def __init__(self, device: Any = None) -> None:
        from graphs.frontends.torch import words as devices

        devices.check(device)
        self.device = devices.CPU
        self._seed = _FIRST_SEED
        self._restart: tuple[Any, Callable[[], object]] | None = None  # of a trace, where no draw has followed
        self._in_each_call(lambda: self._start(_FIRST_SEED))

    @functools.cached_property
    def numpy(self) -> np.random.Generator:
        """NumPy's generator, which is loaded at first use."""
        return np.random.default_rng(self._seed % 2**64)

    def manual_seed(self, seed: int) -> Generator:
        """Restart from a seed, and return the generator."""
        self._in_each_call(lambda: self._start(seed))
        self._start(seed)
        return self

    def seed(self) -> int:
        """Restart from a random seed, and return the seed."""
        self._in_each_call(lambda: self._start(_random_seed()))
        self._start(_random_seed())
        return self._seed

    def _start(self, seed: int) -> None:
        self._seed = int(seed)
        self.numpy.bit_generator.state = np.random.default_rng(self._seed % 2**64).bit_generator.state

    def _in_each_call(self, restart: Callable[[], object]) -> None:
        """Note a restart of a function that is traced."""
        trace = capture.trace_now()
        if trace is not None:
            self._restart = trace, restart

    def drawing(self, draw: Callable[[], Any]) -> Callable[[], Any]:
        """What each call of a graph does for `draw`: it restarts the stream first where the traced function does."""
        noted, self._restart = self._restart, None
        if noted is None or noted[0] is not capture.trace_now():
            return draw
        return lambda: (noted[1](), draw())[1]

    def initial_seed(self) -> int:
        """The seed that the stream was last started from."""
        return self._seed

    def get_state(self) -> dict[str, Any]:
        """The state of the stream, for `set_state`."""
        return {"seed": self._seed, "stream": self.numpy.bit_generator.state}

    def set_state(self, new_state: dict[str, Any]) -> None:
        """Continue the stream from a state of `get_state`."""
        self._in_each_call(lambda: self._continue(new_state))
        self._continue(new_state)

    def _continue(self, state: dict[str, Any]) -> None:
        self._seed, self.numpy.bit_generator.state = state["seed"], state["stream"]


def _random_seed() -> int:
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) >> 1


class DrawnNumbers:
    """Stands for NumPy's generator: it hands out numbers that were drawn earlier or elsewhere.

    A subclass defines `next`, and `state`, so that a checkpoint may draw the same numbers again.
    """

    state: Any

    @property
    def bit_generator(self) -> Any:
        """The object whose `state` a checkpoint saves: this one."""
        return self

    def next(self, shape: tuple[int, ...], draw: Draw) -> Array:
        """The next numbers, of this shape, in place of those that `draw` would draw."""
        raise NotImplementedError

    def random(self, size: Any = (), dtype: Any = np.float64) -> Array:
        """Numbers in [0, 1); where the numbers are a mask, a set element counts as below any probability."""
        return self._of(size, lambda chance: chance.random(_sizes(size))).astype(dtype)

    def standard_normal(self, size: Any = ()) -> Array:
        """Normal numbers of mean 0 and deviation 1."""
        return self._of(size, lambda chance: chance.standard_normal(_sizes(size)))

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = ()) -> Array:
        """Numbers from `low` up to `high`."""
        return low + (high - low) * self.random(size)

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: Any = ()) -> Array:
        """Normal numbers of this mean and deviation."""
        return loc + scale * self.standard_normal(size)

    def poisson(self, lam: Any) -> Array:
        """Counts of events, one for each rate."""
        return self._of(np.shape(lam), lambda chance: chance.poisson(lam))

    def standard_exponential(self, size: Any = ()) -> Array:
        """Exponential numbers of mean 1."""
        return self._of(size, lambda chance: chance.standard_exponential(_sizes(size)))

    def integers(self, low: int, high: int, size: Any = (), dtype: Any = np.int64) -> Array:
        """Integers in the range they were drawn from."""
        return self._of(size, lambda chance: chance.integers(low, high, _sizes(size))).astype(dtype)

    def permutation(self, count: int) -> Array:
        """A permutation of the integers from 0 to count - 1."""
        return self._of((count,), lambda chance: chance.permutation(count))

    def kept(self, shape: tuple[int, ...], p: float) -> Array:
        """The bool mask of elements that dropout keeps; it drops a share p."""
        return self._of(shape, lambda chance: chance.random(shape) >= p).astype(bool)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        remedy = "draw them before the step, and pass them as an argument"
        raise GraphError(locate(f"random numbers by {name} are not handed out; {remedy}"))

    def _of(self, size: Any, draw: Draw) -> Array:
        return self.next(_sizes(size), lambda chance: np.asarray(draw(chance)))


def _sizes(size: Any) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else tuple(map(int, size))


@contextmanager
def drawing_from(numbers: DrawnNumbers) -> Iterator[None]:
    """Let the default generator hand out these numbers inside the block."""
    before = default_generator.numpy
    default_generator.numpy = numbers  # type: ignore[assignment]  # which has what this engine asks NumPy's for
    try:
        yield
    finally:
        default_generator.numpy = before


default_generator = Generator()
drawn_from.append(default_generator)
capture.generators.append(default_generator)
manual_seed, seed, initial_seed = default_generator.manual_seed, default_generator.seed, default_generator.initial_seed


def get_rng_state() -> dict[str, Any]:
    """The state of the default generator."""
    return default_generator.get_state()


def set_rng_state(new_state: dict[str, Any]) -> None:
    """Continue the default generator from a state of `get_rng_state`."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **_: Any) -> Iterator[None]:
    """A block whose draws leave the default generator as it was."""
    del devices
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


def _numpy(generator: Generator | None) -> np.random.Generator:
    return (generator or default_generator).numpy


def draw_leaf(draw: Draw, generator: Generator | None, dtype: Any, **options: Any) -> Any:
    """Random numbers as a leaf of `dtype` (None: the default dtype); options are `device` and `requires_grad`."""
    kind = as_dtype(dtype)
    values = _numbers(lambda chance: np.asarray(draw(chance), kind), generator)
    return made(values, kind, **options) if type(values) is np.ndarray else values


def _numbers(draw: Draw, generator: Generator | None) -> Any:
    """Random numbers as an array, or in a trace as a symbol. `DrawnNumbers` are taken at once."""
    chance: Any = _numpy(generator)
    if not isinstance(chance, np.random.Generator) or not capture.is_traced():
        return draw(chance)
    drawn = (generator or default_generator).drawing(lambda: draw(_numpy(generator)))
    return ops.identity(capture.Fresh(drawn, draw(np.random.default_rng(0)), drawn=True))


def rand(*size: Any, generator: Generator | None = None, dtype: Any = None, **options: Any) -> Tensor:
    """Uniform numbers in [0, 1)."""
    if getattr(dtype, "is_complex", False):
        return _pair_of(rand, size, dtype, 1, generator=generator, **options)
    shape, kind = _shape(size, {}), np.promote_types(as_dtype(dtype), np.float32) if dtype is None else np.float64
    return draw_leaf(lambda chance: chance.random(shape, kind), generator, dtype, **options)


def randn(*size: Any, generator: Generator | None = None, dtype: Any = None, **options: Any) -> Tensor:
    """Normal numbers of mean 0 and variance 1."""
    if getattr(dtype, "is_complex", False):
        return _pair_of(randn, size, dtype, 0.5**0.5, generator=generator, **options)
    shape = _shape(size, {})
    return draw_leaf(lambda chance: chance.standard_normal(shape), generator, dtype, **options)


def _pair_of(draw: Callable[..., Tensor], size: Any, dtype: Any, scale: float, **options: Any) -> Any:
    """Complex numbers whose two parts are random numbers times a scale."""
    part = np.float64 if dtype == complex128 else np.float32
    return view_as_complex(draw(*_shape(size, {}), 2, dtype=part, **options) * scale)


def randint(
    low: int = 0, high: Any = None, size: Any = None,
    *, generator: Generator | None = None, dtype: Any = None, **options: Any,
) -> Tensor:  # fmt: skip
    """Integers from `low` up to, but without, `high`: `randint(high, size)`, `randint(low, high, size)`."""
    if size is None:
        high, size = (None, high) if high is not None else (None, ())
    first, last = (0, low) if high is None else (low, high)
    if not first < last:
        raise OptionError(f"there are no integers from {first} up to {last}; give a larger end")
    shape = tuple(map(int, new_shape(size)))
    return draw_leaf(lambda chance: chance.integers(first, last, shape), generator, dtype or np.int64, **options)


def randperm(n: int, *, generator: Generator | None = None, dtype: Any = None, **options: Any) -> Tensor:
    """A random permutation of the integers from 0 to n - 1."""
    count = as_count(n, "the number of integers")
    return draw_leaf(lambda chance: chance.permutation(count), generator, dtype or np.int64, **options)


def rand_like(input: Tensor, *, dtype: Any = None, memory_format: Any = None, **options: Any) -> Tensor:
    """Uniform numbers in [0, 1), with the shape and dtype of a tensor."""
    return lay_like(rand(input.shape, dtype=_float_dtype(input, dtype), **options), input, memory_format)


def randn_like(input: Tensor, *, dtype: Any = None, memory_format: Any = None, **options: Any) -> Tensor:
    """Normal numbers with the shape and dtype of a tensor."""
    return lay_like(randn(input.shape, dtype=_float_dtype(input, dtype), **options), input, memory_format)


def randint_like(
    input: Tensor,
    low: int = 0,
    high: int | None = None,
    *,
    dtype: Any = None,
    memory_format: Any = None,
    **options: Any,
) -> Tensor:
    """Integers from `low`, 0 by default, up to, but without, `high`, with the shape and dtype of a tensor."""
    first, last = (0, low) if high is None else (low, high)
    made = randint(first, last, input.shape, dtype=dtype or input.dtype, **options)
    return lay_like(made, input, memory_format)


def _float_dtype(x: Tensor, dtype: Any) -> Any:
    wanted = as_dtype(x.dtype if dtype is None else dtype)
    if wanted.kind != "f":
        raise GraphError(locate(f"random floats have no dtype {wanted}; give dtype=, or use randint"))
    return wanted


def normal(
    mean: Any,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    **options: Any,
) -> Tensor:
    """Normal numbers with a mean and a standard deviation, which may be tensors that broadcast."""
    tensors = [value for value in (mean, std) if isinstance(value, Tensor)]
    shape = np.broadcast_shapes(*(value.shape for value in tensors)) if size is None else tuple(size)
    if size is None and not tensors:
        raise ArgumentError("normal of two numbers needs a size; give it as a tuple")
    if any(value.dtype.kind != "f" for value in tensors) or np.any(_value_or_default(std, 0.0) < 0):
        raise GraphError(locate("normal takes floats, and no standard deviation below 0; convert with .float()"))
    kind = dtype or (tensors[0].dtype if tensors else None)
    if capture.is_traced():
        numbers = draw_leaf(lambda chance: chance.standard_normal(shape), generator, np.float64)
        return ops.astype(ops.add(mean, ops.multiply(std, numbers)), as_dtype(kind))
    first, scale = _array_or_value(mean), _array_or_value(std)
    numbers = draw_leaf(lambda chance: first + scale * chance.standard_normal(shape), generator, kind, **options)
    return _with_history(numbers, *tensors)


@method()
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """Draw 1 with probability `p`, by default the value of each element, and 0 otherwise."""
    shares = input if p is None else p
    if (p is None and input.dtype.kind != "f") or not _are_shares(shares):
        raise GraphError(locate("bernoulli takes probabilities from 0 to 1; use sigmoid or clamp"))
    happened = draw_bernoulli(input.shape, shares, generator)
    return (
        _with_history(made(happened, input.dtype), input) if _is_known(happened) else ops.astype(happened, input.dtype)
    )


def _are_shares(p: Any) -> bool:
    """Whether probabilities are from 0 to 1; true for symbols, whose values only a run has."""
    shares = _value_or_default(p, 0.5)
    return bool(np.all((shares >= 0) & (shares <= 1)))


def draw_bernoulli(shape: tuple[int, ...], p: Any, generator: Generator | None) -> Any:
    """Draw bools of `shape`, each True with probability `p`."""
    if isinstance(numbers := _numpy(generator), DrawnNumbers):
        return numbers.next(shape, lambda chance: draw_bernoulli(shape, p, numpy_draws(numpy=chance))).astype(bool)
    chances = _numbers(lambda chance: chance.random(shape), generator)
    return ops.less(chances, p if capture.is_traced() else _array_or_value(p))


def _array_or_value(value: Any) -> Any:
    """The array of a tensor, also of one that a trace makes from constants alone; any other value unchanged."""
    if issubclass(type(value), Tensor):
        return value._data
    constant = value._constant() if hasattr(value, "_constant") else None
    return value if constant is None else constant


def _is_known(value: Any) -> bool:
    """Whether a value is an array or a number, and no symbol."""
    return isinstance(value, (np.ndarray, np.generic, float, int))


def _value_or_default(value: Any, otherwise: float) -> Any:
    """The array of a tensor, or a number; `otherwise` for a symbol."""
    return held if _is_known(held := _array_or_value(value)) else np.asarray(otherwise)


def _with_history(numbers: Tensor, *parameters: Tensor) -> Tensor:
    """Connect random numbers to the history of their parameters, with gradient 0."""
    for parameter in parameters:
        if getattr(parameter, "requires_grad", False):
            numbers = ops.where(np.asarray(True), numbers, cast(parameter, numbers.dtype))
    return numbers


def poisson(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Poisson numbers whose rates are the elements of `input`."""
    if input.dtype.kind != "f":
        raise GraphError(locate("poisson takes rates that are floats; convert with .float()"))
    rates = _array_or_value(input)
    if not _is_known(rates):
        raise GraphError(
            locate("poisson of rates that only a run knows; draw outside of the graph, and pass the numbers")
        )
    return _with_history(draw_leaf(lambda chance: chance.poisson(rates), generator, input.dtype), input)


@method()
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Indices of a vector, or of each row of a matrix, drawn with its elements as weights."""
    picked = draw_indices(input, num_samples, replacement, generator)
    return made(picked) if _is_known(picked) else picked


def draw_indices(input: Tensor, num_samples: int, replacement: bool, generator: Generator | None) -> Any:
    """The indices that `multinomial` returns."""
    if isinstance(numbers := _numpy(generator), DrawnNumbers):
        shape = (*input.shape[:-1], num_samples)
        return numbers.next(
            shape, lambda chance: draw_indices(input, num_samples, replacement, numpy_draws(numpy=chance))
        )
    weights = ops.astype(input if capture.is_traced() else _array_or_value(input), np.float64)
    if _is_known(_array_or_value(input)):
        _check_weights(np.asarray(_array_or_value(input), np.float64), num_samples, replacement, input.dtype)
    shape = (*weights.shape[:-1], num_samples if replacement else weights.shape[-1])
    draw = _numbers(lambda chance: chance.random(shape), generator)
    if not replacement:  # the first of exponential clocks that run at the speeds of the weights
        with np.errstate(divide="ignore", invalid="ignore"):
            times = ops.where(
                ops.greater(weights, 0), ops.divide(ops.negative(ops.log1p(ops.negative(draw))), weights), np.inf
            )
        return ops.identity(ops.argsort(times, axis=-1)[..., :num_samples], order="C")
    ends = ops.cumulative_sum(weights, axis=-1)
    reached = ops.greater_equal(ops.multiply(draw[..., :, None], ends[..., None, -1:]), ends[..., None, :])
    return ops.sum(reached, axis=-1)


def _check_weights(weights: Array, count: int, replacement: bool, dtype: Any) -> None:
    if dtype.kind != "f" or weights.ndim not in (1, 2) or count < 1:
        raise GraphError(locate("multinomial takes floats in one or two axes, and draws one or more; use .float()"))
    if not np.all(np.isfinite(weights)) or np.any(weights < 0) or np.any(weights.sum(-1) <= 0):
        raise GraphError(locate("multinomial takes weights that are finite, not below 0 and not all 0; use softmax"))
    if not replacement and count > (weights > 0).sum(-1).min():
        raise GraphError(locate(f"multinomial draws {count} of fewer weights above 0; use replacement=True"))


@method()
def uniform_(
    self: Tensor, from_: float = 0, to: float = 1, *, generator: Generator | None = None, **words: Any
) -> Tensor:
    """Fill with uniform numbers from `from_` up to `to`, in place."""
    low = words.pop("from", from_)
    if not low <= to:
        raise OptionError(f"numbers from {low} up to {to} are none; swap the two")
    return _fill_random(self, lambda chance: low + (to - low) * chance.random(self.shape), generator)


@method()
def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers, in place."""
    if not std >= 0:
        raise OptionError(f"a standard deviation is 0 or more, not {std}; change its sign")
    return _fill_random(self, lambda chance: mean + std * chance.standard_normal(self.shape), generator)


@method()
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with 1 with probability `p`, and 0 otherwise, in place."""
    if not _are_shares(p):
        raise OptionError("probabilities are from 0 to 1; use sigmoid or clamp")
    return _put(self, draw_bernoulli(self.shape, p, generator))


@method()
def exponential_(self: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponential numbers of rate `lambd`, in place."""
    if not lambd > 0:
        raise OptionError(f"a rate is above 0, not {lambd}; change its sign")
    return _fill_random(self, lambda chance: chance.standard_exponential(self.shape) / lambd, generator)


@method()
def random_(self: Tensor, from_: int = 0, to: int | None = None, *, generator: Generator | None = None) -> Tensor:
    """Fill with integers from `from_`, 0 by default, up to, but without, `to`, in place."""
    low, high = (0, from_) if to is None else (from_, to)
    if to is None and from_ == 0:
        high = 2 ** (np.finfo(self.dtype).nmant + 1) if self.dtype.kind == "f" else int(np.iinfo(self.dtype).max)
    if not low < high:
        raise OptionError(f"there are no integers from {low} up to {high}; give a larger end")
    return _fill_random(self, lambda chance: chance.integers(low, high, self.shape), generator)


def _fill_random(x: Tensor, draw: Draw, generator: Generator | None) -> Tensor:
    return _put(x, _numbers(draw, generator))


def _put(x: Tensor, values: Any) -> Tensor:
    """Write random numbers into a tensor. Raises GraphError for an existing tensor in the graph that draws them."""
    if not _is_known(values) and issubclass(type(x), Tensor):
        raise GraphError(
            locate("a trace fills no tensor that exists already with random numbers; make them, by torch.randn or rand")
        )
    return x.copy_(made(values, x.dtype) if _is_known(values) else ops.astype(values, x.dtype))


guard(globals(), __all__)
