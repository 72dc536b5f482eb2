"""Functions that other libraries have too, for comparison: ours, HIPS autograd's and PyTorch's, with their domains.

`autograd` and `torch` take the module (`autograd.numpy`, `torch`) and the inputs; None where the library has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import graphs as g

Array = np.ndarray
Random = np.random.Generator
Shapes = tuple[tuple[int, ...], ...]
Function = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """`ours(*inputs)` beside the same function elsewhere; `domains` makes each input from a generator and a shape."""

    name: str
    ours: Function
    autograd: Function | None
    torch: Function | None
    domains: tuple[Callable[[Random, tuple[int, ...]], Array], ...]
    shapes: Callable[[Random], Shapes]
    order: int = 2

    def inputs(self, seed: int) -> list[Array]:
        """Inputs in float64, of shapes that the seed chooses."""
        random = np.random.default_rng([seed, *self.name.encode()])
        return [domain(random, shape) for domain, shape in zip(self.domains, self.shapes(random), strict=True)]

    def __str__(self) -> str:
        return self.name


# Domains and shapes -------------------------------------------------------------------------------------------------


def real(random: Random, shape: tuple[int, ...]) -> Array:
    """Distinct almost surely, and away from whole numbers and their halves."""
    return np.asarray(random.integers(-4, 4, shape) / 2 + random.uniform(0.05, 0.45, shape))


def positive(random: Random, shape: tuple[int, ...]) -> Array:
    return np.asarray(random.uniform(0.2, 2.5, shape))


def unit(random: Random, shape: tuple[int, ...]) -> Array:
    return np.asarray(random.uniform(-0.85, 0.85, shape))


def above_one(random: Random, shape: tuple[int, ...]) -> Array:
    return np.asarray(random.uniform(1.1, 3, shape))


def one(random: Random) -> Shapes:
    """Any shape of up to three axes, with sizes from 0 to 4."""
    return (tuple(int(s) for s in random.integers(0 if random.random() < 0.1 else 1, 5, random.integers(0, 4))),)


def two(random: Random) -> Shapes:
    """Two shapes that broadcast: axes of size 1 and missing axes on either side."""
    (whole,) = one(random)
    parts = [
        tuple(1 if random.random() < 0.3 else s for s in whole)[random.integers(0, len(whole) + 1) :] for _ in "xy"
    ]
    return (whole, parts[0]) if random.random() < 0.5 else (parts[1], whole)


def three(random: Random) -> Shapes:
    whole, part = two(random)
    return whole, part, ()


def fixed(*shapes: tuple[int, ...]) -> Callable[[Random], Shapes]:
    return lambda random: shapes


# Elementwise --------------------------------------------------------------------------------------------------------

# name here: (name in autograd.numpy, name in torch, domain)
_UNARY: dict[str, tuple[str | None, str | None, Any]] = {
    **{
        name: (name, name, real) for name in ("sin", "cos", "tan", "exp", "expm1", "square", "negative", "tanh", "sinh")
    },
    **{name: (name, name, real) for name in ("cosh", "abs", "floor", "ceil", "sign", "reciprocal")},
    **{name: (name, name, positive) for name in ("log", "log2", "log10", "log1p", "sqrt")},
    **{name: (f"arc{name[1:]}", name, unit) for name in ("asin", "acos", "atanh")},
    **{name: (f"arc{name[1:]}", name, real) for name in ("atan", "asinh")},
    "acosh": ("arccosh", "acosh", above_one),
    "trunc": (None, "trunc", real),
    "round": (None, "round", real),
    "relu": (None, "relu", real),
    "sigmoid": (None, "sigmoid", real),
    "erf": (None, "erf", real),
    "erfc": (None, "erfc", real),
    "positive": (None, "positive", real),
}
_BINARY: dict[str, tuple[str | None, str | None, Any, Any]] = {
    **{name: (name, name, real, real) for name in ("add", "subtract", "multiply", "maximum", "minimum", "logaddexp")},
    "divide": ("divide", "divide", real, positive),
    "pow": ("power", "pow", positive, real),
    "atan2": ("arctan2", "atan2", real, positive),
    "remainder": ("remainder", "remainder", real, positive),
    "hypot": (None, "hypot", real, real),
    "copysign": (None, "copysign", real, real),
}


def _of(name: str | None) -> Function | None:
    """The function of that name in whichever module is given."""
    return None if name is None else lambda module, *inputs: getattr(module, name)(*inputs)


def elementwise() -> Iterator[Case]:
    for name, (autograd, torch, domain) in _UNARY.items():
        yield Case(name, getattr(g, name), _of(autograd), _of(torch), (domain,), one)
    for name, (autograd, torch, *domains) in _BINARY.items():
        yield Case(name, getattr(g, name), _of(autograd), _of(torch), tuple(domains), two)
    yield Case("where", lambda x, y: g.where(x > 0, x, y),
               lambda np, x, y: np.where(x + 0 * y > 0, x + 0 * y, y + 0 * x),  # it wants one shape
               lambda torch, x, y: torch.where(x > 0, x, y), (real, real), two)  # fmt: skip
    yield Case("clip", lambda x: g.clip(x, -0.5, 1.0), lambda np, x: np.clip(x, -0.5, 1.0),
               lambda torch, x: torch.clamp(x, -0.5, 1.0), (real,), one)  # fmt: skip
    yield Case("clip-by-tensors", lambda x, y: g.clip(x, -y, y), None,
               lambda torch, x, y: torch.clamp(x, -y, y), (real, positive), two)  # fmt: skip


# Reductions and scans -----------------------------------------------------------------------------------------------

CUBE = (3, 2, 4)
_AXES: tuple[Any, ...] = (None, 0, -1, (0, 2), (1, -1))


def reductions() -> Iterator[Case]:
    for axis in _AXES:
        axes = tuple(range(3)) if axis is None else axis
        for keep in (False, True):
            for name, torch in (("sum", "sum"), ("mean", "mean"), ("max", "amax"), ("min", "amin")):
                yield _reduction(name, axis, keep, lambda t, x, f=torch, a=axes, k=keep: getattr(t, f)(x, a, keepdim=k))
            for name in ("var", "std"):
                yield _reduction(name, axis, keep, lambda t, x, f=name, a=axes, k=keep: getattr(t, f)(
                    x, a, correction=0, keepdim=k))  # fmt: skip
            yield Case(f"logsumexp-{axis}-{keep}", lambda x, a=axis, k=keep: g.logsumexp(x, axis=a, keepdims=k),
                       lambda np, x, a=axis, k=keep: np.log(np.sum(np.exp(x), axis=a, keepdims=k)),
                       lambda t, x, a=axes, k=keep: t.logsumexp(x, a, keepdim=k), (real,), fixed(CUBE))  # fmt: skip
    for axis in (0, 1, -1):
        yield _reduction("prod", axis, False, lambda t, x, a=axis: t.prod(x, a))
        yield Case(f"cumulative_sum-{axis}", lambda x, a=axis: g.cumulative_sum(x, axis=a),
                   lambda np, x, a=axis: np.cumsum(x, axis=a), lambda t, x, a=axis: t.cumsum(x, a), (real,),
                   fixed(CUBE))  # fmt: skip
        yield Case(f"cumulative_prod-{axis}", lambda x, a=axis: g.cumulative_prod(x, axis=a), None,
                   lambda t, x, a=axis: t.cumprod(x, a), (real,), fixed(CUBE))  # fmt: skip
        yield Case(f"sort-{axis}", lambda x, a=axis: g.sort(x, axis=a), None,
                   lambda t, x, a=axis: t.sort(x, a).values, (real,), fixed(CUBE))  # fmt: skip
        yield Case(f"softmax-{axis}", lambda x, a=axis: g.softmax(x, axis=a), None,
                   lambda t, x, a=axis: t.softmax(x, a), (real,), fixed(CUBE))  # fmt: skip
        yield Case(f"log_softmax-{axis}", lambda x, a=axis: g.log_softmax(x, axis=a), None,
                   lambda t, x, a=axis: t.log_softmax(x, a), (real,), fixed(CUBE))  # fmt: skip
    yield Case("sort-vector", g.sort, lambda np, x: np.sort(x), lambda t, x: t.sort(x).values, (real,), fixed((7,)))
    for p in (1, 2, 3, np.inf, 0.5):
        yield Case(f"vector_norm-{p}", lambda x, p=p: g.vector_norm(x, axis=-1, ord=p), None,
                   lambda t, x, p=p: t.linalg.vector_norm(x, p, -1), (real,), fixed(CUBE))  # fmt: skip


def _reduction(name: str, axis: Any, keep: bool, torch: Function) -> Case:
    def ours(x: Any) -> Any:
        return getattr(g, name)(x, axis=axis, keepdims=keep)

    def autograd(np: Any, x: Any) -> Any:
        return getattr(np, name)(x, axis=axis, keepdims=keep)

    known = name not in ("max", "min") or not isinstance(axis, tuple)
    return Case(f"{name}-{axis}-{keep}", ours, autograd if known else None, torch, (real,), fixed(CUBE))


# Movement and products ----------------------------------------------------------------------------------------------

_INDICES = np.array([2, 0, -1, 0])


def movement() -> Iterator[Case]:
    def case(name: str, ours: Function, autograd: Function | None, torch: Function | None, *shapes: Any) -> Case:
        sizes = shapes or (CUBE,)
        return Case(name, ours, autograd, torch, (real,) * len(sizes), fixed(*sizes))

    yield case("permute_dims", lambda x: g.permute_dims(x, (2, 0, 1)), lambda np, x: np.transpose(x, (2, 0, 1)),
               lambda t, x: t.permute(x, (2, 0, 1)))  # fmt: skip
    yield case("reshape", lambda x: g.reshape(x, (4, -1)), lambda np, x: np.reshape(x, (4, -1)),
               lambda t, x: t.reshape(x, (4, -1)))  # fmt: skip
    yield case("moveaxis", lambda x: g.moveaxis(x, 0, 2), lambda np, x: np.moveaxis(x, 0, 2),
               lambda t, x: t.moveaxis(x, 0, 2))  # fmt: skip
    yield case("flip", lambda x: g.flip(x, axis=(0, 2)), lambda np, x: x[::-1, :, ::-1],
               lambda t, x: t.flip(x, (0, 2)))  # fmt: skip
    yield case("roll", lambda x: g.roll(x, 2, axis=1), lambda np, x: np.roll(x, 2, 1), lambda t, x: t.roll(x, 2, 1))
    yield case("tile", lambda x: g.tile(x, (2, 1, 3)), lambda np, x: np.tile(x, (2, 1, 3)),
               lambda t, x: t.tile(x, (2, 1, 3)))  # fmt: skip
    yield case("repeat", lambda x: g.repeat(x, 3, axis=1), lambda np, x: np.repeat(x, 3, 1),
               lambda t, x: t.repeat_interleave(x, 3, 1))  # fmt: skip
    yield case("broadcast_to", lambda x: g.broadcast_to(x, (5, *CUBE)), lambda np, x: x + np.zeros((5, *CUBE)),
               lambda t, x: t.broadcast_to(x, (5, *CUBE)), (2, 1))  # fmt: skip
    yield case("concat", lambda x, y: g.concat([x, y], axis=1), lambda np, x, y: np.concatenate([x, y], 1),
               lambda t, x, y: t.cat([x, y], 1), CUBE, (3, 5, 4))  # fmt: skip
    yield case("stack", lambda x, y: g.stack([x, y], axis=1), lambda np, x, y: np.stack([x, y], 1),
               lambda t, x, y: t.stack([x, y], 1), CUBE, CUBE)  # fmt: skip
    yield case("pad", lambda x: g.pad(x, ((0, 0), (1, 2), (0, 1))), lambda np, x: np.pad(x, ((0, 0), (1, 2), (0, 1)),
               mode="constant"), lambda t, x: t.nn.functional.pad(x, (0, 1, 1, 2)))  # fmt: skip
    yield case("slices", lambda x: x[1:, None, ..., 0], lambda np, x: x[1:, None, ..., 0],
               lambda t, x: x[1:, None, ..., 0])  # fmt: skip
    yield case("integer-arrays", lambda x: x[_INDICES, :, _INDICES], lambda np, x: x[_INDICES, :, _INDICES],
               lambda t, x: x[t.from_numpy(_INDICES), :, t.from_numpy(_INDICES)])  # fmt: skip
    yield case("take", lambda x: g.take(x, _INDICES, axis=2), lambda np, x: x[:, :, _INDICES],
               lambda t, x: t.index_select(x, 2, t.from_numpy(_INDICES % 4)))  # fmt: skip
    yield case("diff", lambda x: g.diff(x, axis=0, n=2), lambda np, x: np.diff(x, 2, 0), lambda t, x: t.diff(x, 2, 0))
    for name in ("tril", "triu"):
        yield case(name, lambda x, f=name: getattr(g, f)(x, k=1), lambda np, x, f=name: getattr(np, f)(x, 1),
                   lambda t, x, f=name: getattr(t, f)(x, 1))  # fmt: skip


_PRODUCTS: tuple[Shapes, ...] = (
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 1, 2, 3), (4, 3, 2)),
)  # fmt: skip
_EINSUMS: tuple[tuple[str, Shapes], ...] = (
    ("ij,jk->ik", ((2, 3), (3, 4))), ("bij,bkj->bik", ((2, 3, 4), (2, 5, 4))), ("ij->", ((2, 3),)),
    ("ij->ji", ((2, 3),)), ("i,j->ij", ((2,), (3,))), ("ij,ij,j->i", ((2, 3), (2, 3), (3,))),
    ("...i,ij->...j", ((2, 4, 3), (3, 2))),
)  # fmt: skip


def products() -> Iterator[Case]:
    for left, right in _PRODUCTS:
        yield Case(f"matmul-{left}-{right}", g.matmul, _of("matmul"), _of("matmul"), (real, real), fixed(left, right))
    for text, shapes in _EINSUMS:
        yield Case(f"einsum-{text}", lambda *xs, s=text: g.einsum(s, *xs), lambda np, *xs, s=text: np.einsum(s, *xs),
                   lambda t, *xs, s=text: t.einsum(s, *xs), (real,) * len(shapes), fixed(*shapes))  # fmt: skip
    yield Case("tensordot", lambda x, y: g.tensordot(x, y, axes=((0, 2), (1, 0))),
               lambda np, x, y: np.tensordot(x, y, ((0, 2), (1, 0))),
               lambda t, x, y: t.tensordot(x, y, ((0, 2), (1, 0))), (real, real), fixed(CUBE, (4, 3, 5)))  # fmt: skip
    yield Case("outer", g.outer, _of("outer"), _of("outer"), (real, real), fixed((3,), (4,)))
    yield Case("trace", g.trace, _of("trace"), _of("trace"), (real,), fixed((3, 3)))
    yield Case("vecdot", g.vecdot, lambda np, x, y: np.sum(x * y, -1), lambda t, x, y: t.linalg.vecdot(x, y),
               (real, real), fixed((2, 3), (3,)))  # fmt: skip


CASES: Sequence[Case] = [*elementwise(), *reductions(), *movement(), *products()]


# Comparing ----------------------------------------------------------------------------------------------------------


def weights(shape: tuple[int, ...], seed: int) -> Array:
    return np.asarray(np.random.default_rng(seed).uniform(0.5, 1.5, shape))
