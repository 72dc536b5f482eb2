"""Sample calls of every registered op: broadcasting patterns, axes, 0-d, size-1 and zero-size shapes.

A sample call of each public function that is made of ops, or of none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from graphs import op as registry
from graphs import ops
from graphs.errors import GraphError
from graphs.op import Op, RuleTable
from graphs.testing.elementwise import EFFECTS, NEURAL, REDUCTIONS, SOFTMAX, SORTING, elementwise, over_axes
from graphs.testing.sample import Array, Case, Given, Maker, Sample, Sizes, Values, calls, join_makers, real

# op -> title -> (shape, attributes)
_ONE_INPUT: dict[str, dict[str, tuple[Sizes, dict[str, Any]]]] = {
    "reshape": {
        "flat": ((2, 3), {"shape": (6,)}),
        "minus-one": ((2, 3, 4), {"shape": (4, -1)}),
        "to-0-d": ((1, 1), {"shape": ()}),
        "from-0-d": ((), {"shape": (1, 1)}),
        "empty": ((0, 3), {"shape": (3, 0)}),
        "copied": ((2, 3), {"shape": (3, 2), "copy": True}),
    },
    "permute_dims": {
        "reversed": ((2, 3, 4), {}),
        "cycle": ((2, 3, 4), {"axes": (1, 2, 0)}),
        "negative": ((2, 3, 4), {"axes": (0, -1, -2)}),
        "0-d": ((), {}),
        "empty": ((0, 3), {}),
    },
    "broadcast_to": {
        "row": ((3,), {"shape": (2, 3)}),
        "column": ((2, 1), {"shape": (4, 2, 3)}),
        "0-d": ((), {"shape": (2, 2)}),
        "to-empty": ((1, 3), {"shape": (0, 3)}),
        "same": ((2, 3), {"shape": (2, 3)}),
    },
    "flip": {
        "all": ((2, 3), {}),
        "one": ((2, 3), {"axis": -1}),
        "two": ((2, 3, 4), {"axis": (0, 2)}),
        "0-d": ((), {}),
        "empty": ((0, 3), {"axis": 0}),
    },
    "roll": {
        "flat": ((2, 3), {"shift": 2}),
        "one": ((2, 3), {"shift": -4, "axis": -1}),
        "two": ((2, 3, 4), {"shift": (1, -2), "axis": (0, 2)}),
        "one-axis-twice": ((5,), {"shift": (1, 1), "axis": (0, 0)}),
        "0-d": ((), {"shift": 3}),
        "empty": ((0, 3), {"shift": 1, "axis": 0}),
    },
    "pad": {
        "all": ((2, 3), {"pad_width": 1}),
        "uneven": ((2, 3), {"pad_width": ((0, 2), (1, 0)), "value": 0.5}),
        "from-empty": ((0, 3), {"pad_width": ((2, 0), (0, 0))}),
        "nothing": ((2, 3), {"pad_width": 0}),
        "0-d": ((), {"pad_width": ()}),
    },
    "astype": {
        "same": ((2, 3), {"dtype": np.float64}),
        "to-int": ((2, 3), {"dtype": np.int32}),
        "to-bool": ((3,), {"dtype": bool}),
        "0-d": ((), {"dtype": np.int64}),
        "empty": ((0, 3), {"dtype": np.int64}),
    },
    "identity": {"matrix": ((2, 3), {}), "0-d": ((), {}), "empty": ((0,), {})},
    "stop_gradient": {"matrix": ((2, 3), {}), "0-d": ((), {}), "empty": ((0,), {})},
    "getitem": {
        "int": ((2, 3), {"key": -1}),
        "ints": ((2, 3), {"key": (1, 0)}),
        "slice": ((4, 3), {"key": slice(1, 3)}),
        "step": ((5, 3), {"key": slice(None, None, 2)}),
        "backwards": ((5, 3), {"key": (slice(None), slice(None, None, -2))}),
        "none-and-ellipsis": ((2, 3, 4), {"key": (None, Ellipsis, 1)}),
        "nothing": ((4, 3), {"key": slice(2, 2)}),
        "0-d": ((), {"key": ()}),
    },
    "place": {
        "int": ((3,), {"shape": (2, 3), "key": (1, slice(None))}),
        "slice": ((2, 3), {"shape": (4, 3), "key": (slice(1, 3), slice(None))}),
        "step": ((3, 2), {"shape": (5, 3), "key": (slice(None, None, 2), slice(0, 2))}),
        "new-axis": ((1, 3), {"shape": (3,), "key": (None, slice(None))}),
        "empty": ((0, 3), {"shape": (4, 3), "key": (slice(2, 2), slice(None))}),
    },
}
_CONCAT: dict[str, tuple[tuple[Sizes, ...], int | None]] = {
    "rows": (((2, 3), (1, 3), (4, 3)), 0),
    "columns": (((2, 3), (2, 1)), -1),
    "one": (((2, 3),), 0),
    "with-empty": (((2, 3), (0, 3)), 0),
    "flattened": (((2, 3), (4,)), None),
}
_STACK: dict[str, tuple[tuple[Sizes, ...], int]] = {
    "rows": (((2, 3),) * 3, 0),
    "inside": (((2, 3),) * 2, 1),
    "last": (((2, 3),) * 2, -1),
    "one": (((2,),), 0),
    "0-d": (((),) * 3, 0),
    "empty": (((0, 3),) * 2, 0),
}
_SETITEM: dict[str, tuple[Sizes, Sizes, Any]] = {
    "row": ((2, 3), (3,), 1),
    "spread": ((4, 3), (), (slice(1, None), slice(None, None, 2))),
    "column": ((4, 3), (2, 1), slice(0, 4, 2)),
    "everything": ((2, 3), (2, 3), Ellipsis),
    "nothing": ((4, 3), (0, 3), slice(2, 2)),
    "0-d": ((), (), ()),
}
# title -> (arguments, attributes)
_FULL: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "float": (((2, 3), 1.5), {}),
    "int": (((2,), 3), {"dtype": np.int32}),
    "0-d": (((), True), {}),
    "empty": (((0, 3), 0), {"dtype": np.float32}),
}
_ARANGE: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "stop": ((4,), {}),
    "start": ((-3, 2), {}),
    "step": ((7, 0), {"step": -3}),
    "float": ((3,), {"dtype": np.float32}),
    "empty": ((5, 2), {}),
    "negative-stop": ((-3,), {}),
    "fractions": ((0.5, 2.0), {"step": 0.25}),
    "backwards-fractions": ((1, -1), {"step": -0.3, "dtype": np.float32}),
}

MOVEMENT: dict[str, Maker] = {
    **{name: calls(cases, real) for name, cases in _ONE_INPUT.items()},
    "concat": calls(_CONCAT, lambda v, shapes, axis: (([v.real(shape) for shape in shapes],), {"axis": axis})),
    "stack": calls(_STACK, lambda v, shapes, axis: (([v.real(shape) for shape in shapes],), {"axis": axis})),
    "setitem": calls(_SETITEM, lambda v, shape, values, key: ((v.real(shape), v.real(values)), {"key": key})),
    "full": calls(_FULL, lambda v, args, options: (args, options)),
    "arange": calls(_ARANGE, lambda v, args, options: (args, options)),
}


def _indices(values: Values, shape: Sizes, size: int) -> Array:
    return values.ints(shape, -size, size)


# title -> (shape of x, shape of the indices, axis)
_TAKE: dict[str, tuple[Sizes, Sizes, int]] = {
    "rows": ((4, 3), (6,), 0),
    "columns": ((2, 3), (4,), -1),
    "matrix-of-indices": ((5, 2), (2, 3), 0),
    "one-index": ((4, 3), (), 0),
    "no-index": ((4, 3), (0,), 1),
}
_ALONG: dict[str, tuple[Sizes, Sizes, int]] = {
    "last": ((2, 3), (2, 5), -1),
    "first": ((4, 3), (2, 3), 0),
    "vector": ((4,), (3,), 0),
    "middle": ((2, 4, 3), (2, 1, 3), 1),
    "no-index": ((2, 3), (2, 0), 1),
}
_BROADCAST: dict[str, tuple[Sizes, Sizes, int]] = {
    "indices-broadcast": ((2, 4, 3), (1, 2, 1), 1),
    "values-broadcast": ((4, 1), (3, 2), 0),
}


def _take_sample(v: Values, shape: Sizes, picked: Sizes, axis: int) -> Given:
    return (v.real(shape), _indices(v, picked, shape[axis])), {"axis": axis}


def _scatter(op: Op, values: Values) -> Iterator[Case]:
    for title, (shape, picked, axis) in _TAKE.items():
        at, size = axis % len(shape), shape[axis]
        count = int(np.prod(picked))
        if count > size:
            continue  # which of two values for one place stays is no question of gradients
        once = np.random.default_rng(count).permutation(size)[:count].reshape(picked) - size
        updates = values.real((*shape[:at], *picked, *shape[at + 1 :]))
        yield title, (values.real(shape), once, updates), {"axis": axis}


def _scatter_sample(v: Values, shape: Sizes, picked: Sizes, axis: int) -> Given:
    at = axis % len(shape)
    g = v.real((*shape[:at], *picked, *shape[at + 1 :]))
    return (g, _indices(v, picked, shape[at])), {"shape": shape, "axis": at}


def _scatter_add_sample(v: Values, shape: Sizes, picked: Sizes, axis: int) -> Given:
    at = axis % len(shape)
    return (v.real(picked), _indices(v, picked, shape[at])), {"shape": shape, "axis": at}


def _extreme_along_axis(op: Op, values: Values) -> Iterator[Case]:
    for title, (shape, picked, axis) in _ALONG.items():
        for largest in (True, False):
            operands = values.real(shape), _indices(values, picked, shape[axis]), values.real(picked)
            yield f"{title}-{largest}", operands, {"axis": axis, "largest": largest}


_REPEATED = np.array([1, -2, 1, 1, 0], np.int32)


def _flat_index(op: Op, values: Values) -> Iterator[Case]:
    for title, shapes in {"pair": ((3,), (3,)), "broadcast": ((2, 1), (3,), ())}.items():
        sizes = tuple(range(2, 2 + len(shapes)))
        yield title, tuple(map(values.ints, shapes, [-s for s in sizes], sizes)), {"sizes": sizes}


INDEXING: dict[str, Maker] = {
    "take": join_makers(
        calls(_TAKE, _take_sample), calls({"repeated": (_REPEATED,)}, lambda v, at: ((v.real((3, 2)), at), {"axis": 0}))
    ),
    "scatter": _scatter,
    "scatter_add": calls(_TAKE, _scatter_sample),
    "take_along_axis": calls({**_ALONG, **_BROADCAST}, _take_sample),
    "add_along_axis": calls(_ALONG, _scatter_add_sample),
    "extreme_along_axis": _extreme_along_axis,
    "flat_index": _flat_index,
}


_MATMUL: dict[str, tuple[Sizes, Sizes]] = {
    "matrices": ((2, 3), (3, 4)),
    "vectors": ((3,), (3,)),
    "matrix-vector": ((2, 3), (3,)),
    "vector-matrix": ((3,), (3, 4)),
    "batch": ((5, 2, 3), (5, 3, 4)),
    "batch-by-matrix": ((5, 2, 3), (3, 4)),
    "matrix-by-batch": ((2, 3), (5, 3, 4)),
    "batches-stretched": ((5, 1, 2, 3), (4, 3, 2)),
    "batch-vector": ((5, 2, 3), (3,)),
    "vector-batch": ((3,), (5, 3, 4)),
    "size-1": ((1, 1), (1, 1)),
    "empty-inner": ((2, 0), (0, 3)),
    "empty-rows": ((0, 3), (3, 2)),
}

_LINEAR: dict[str, tuple[Sizes, int]] = {
    "rows": ((4, 3), 2),
    "row": ((3,), 2),
    "batch": ((5, 4, 3), 2),
    "batches": ((2, 3, 4, 5), 1),
    "no-rows": ((0, 3), 2),
    "empty-inner": ((2, 0), 3),
}

# Solvers and factors ----------------------------------------------------------------------------------------------

_SQUARE: dict[str, Sizes] = {
    "matrix": (3, 3),
    "batch": (2, 3, 3),
    "size-1": (1, 1),
    "no-matrices": (0, 2, 2),
    "empty": (0, 0),
}
_HIGH: dict[str, Sizes] = {**_SQUARE, "high": (4, 2), "high-batch": (2, 3, 2)}
_ANY: dict[str, Sizes] = {**_HIGH, "wide": (2, 4), "wide-batch": (2, 2, 3)}
_SOLVE: dict[str, tuple[Sizes, Sizes]] = {
    "matrices": ((3, 3), (3, 2)),
    "batch": ((2, 3, 3), (2, 3, 1)),
    "one-matrix": ((2, 2), (3, 2, 1)),
    "one-side": ((2, 1, 2, 2), (3, 2, 2)),
    "size-1": ((1, 1), (1, 1)),
    "empty": ((0, 0), (0, 2)),
    "no-sides": ((2, 2), (2, 0)),
}


def _general(shapes: dict[str, Sizes], **options: Any) -> Maker:
    return calls(shapes, lambda v, *shape: ((v.matrix(shape),), options))


def _definite_of(v: Values, *shape: int) -> Given:
    x = v.matrix(shape)
    return (x @ np.swapaxes(x, -1, -2),), {}


def _pivots(v: Values, *shape: int) -> Given:
    """Pivots as an LU factoring has them: none lies before its own row."""
    return (np.minimum(np.arange(shape[-1]) + v.ints(shape, 0, 3), shape[-1]),), {"size": shape[-1] + 1}


LINALG: dict[str, Maker] = {
    "matmul": calls(_MATMUL, lambda v, left, right: ((v.real(left), v.real(right)), {})),
    "linear": calls(_LINEAR, lambda v, x, m: ((v.real(x), v.real((m, x[-1])), v.real((m,))), {})),
    "solve": calls(_SOLVE, lambda v, left, right: ((v.matrix(left), v.real(right)), {})),
    **dict.fromkeys(("inv", "det", "slogdet", "cofactor"), _general(_SQUARE)),
    **dict.fromkeys(("cholesky", "eigh", "leading_definite"), calls(_SQUARE, _definite_of)),
    "fourier": calls({"row": (4, 2), "odd": (3, 5, 2)}, lambda v, *shape: ((v.real(shape),), {"inverse": True})),
    "matrix_exp": _general(_SQUARE),
    "svd": _general(_ANY),
    "lu": _general(_ANY),
    "permutation": calls({"three": (4,), "batch": (2, 3), "none": (0,)}, _pivots),
    "qr": _general(_HIGH),
    # Orthonormal and square, so that nothing is added: the rest has no gradient to be checked.
    "complement": calls(_SQUARE, lambda v, *shape: ((np.linalg.qr(v.matrix(shape))[0],), {})),
    "pinv": _general(_ANY, rtol=1e-6),
}


_MAKERS: RuleTable[Maker | None] = RuleTable(
    "samples", otherwise=None, families={"elementwise": elementwise, "reduction": over_axes}
)
for _makers in (EFFECTS, MOVEMENT, REDUCTIONS, INDEXING, LINALG, SORTING, NEURAL, SOFTMAX):
    _MAKERS.enter(_makers)


def samples(op_name: str) -> list[Sample]:
    """Calls of one op, each a `Sample`; the same list every time.

    Elementwise ops and reductions have those of their family; any other op needs an entry of its own.
    Raises GraphError when the op is unknown or has no samples.
    """
    op = registry.get(op_name)
    maker = _MAKERS[op]
    if maker is None:
        raise GraphError(f"op {op_name!r} has no samples; add some to graphs/testing")
    return [Sample(op, title, args, attrs) for title, args, attrs in maker(op, Values(op_name))]


Make = Callable[[Values], Given]


def _real(*shapes: tuple[int, ...], **options: Any) -> Make:
    """Positional arguments of these shapes, of real numbers."""
    return lambda v: (tuple(v.real(shape) for shape in shapes), options)


def _then(shape: tuple[int, ...], *rest: Any, **options: Any) -> Make:
    """One array of real numbers, then these arguments."""
    return lambda v: ((v.real(shape), *rest), options)


def _exactly(*args: Any, **options: Any) -> Make:
    return lambda v: (args, options)


def _classes(v: Values) -> Any:
    return v.ints((4,), 0, 3)


def _matrix(*shapes: tuple[int, ...], **options: Any) -> Make:
    """Matrices of full rank."""
    return lambda v: (tuple(v.matrix(shape) for shape in shapes), options)


def _definite(v: Values) -> Given:
    x = v.matrix((3, 3))
    return (x @ x.T,), {}


_KEY = ops.random_key(0)
_ACTIVATIONS = ("digamma", "elu", "gelu", "leaky_relu", "logsumexp", "silu", "softplus")
_STATISTICS = ("std", "var", "vector_norm", "count_nonzero", "diff", "tril", "triu", "batch_statistics")
_WHOLE = ("argwhere", "nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values")
_LIKE = ("empty_like", "ones_like", "zeros_like", "asarray", "finfo", "result_type")

CALLS: dict[str, Make] = {
    **dict.fromkeys((*_ACTIVATIONS, *_STATISTICS, *_LIKE), _real((2, 3))),
    **dict.fromkeys(_WHOLE, lambda v: ((v.ints((6,), 0, 3),), {})),
    **dict.fromkeys(("empty", "ones", "zeros"), _exactly((2, 3))),
    **dict.fromkeys(("diagonal", "flatten", "matrix_transpose", "trace", "unstack"), _real((3, 3))),
    **dict.fromkeys(("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "broadcast_arrays"), _real((2, 3), (2, 3))),
    **dict.fromkeys(("vecdot", "outer"), _real((3,), (3,))),
    **dict.fromkeys(("max_pool1d", "avg_pool1d"), _then((2, 3, 6), 2)),
    **dict.fromkeys(("max_pool2d", "avg_pool2d"), _then((1, 2, 4, 4), 2)),
    **dict.fromkeys(("max_pool3d", "avg_pool3d"), _then((1, 2, 4, 4, 4), 2)),
    **dict.fromkeys(("flipud", "fliplr", "rot90", "ravel", "atleast_1d", "atleast_2d", "atleast_3d"), _real((2, 3))),
    **dict.fromkeys(("gradient", "nan_to_num", "sinc", "cummax", "cummin"), _real((3, 4))),
    **dict.fromkeys(("append", "dot", "inner", "kron"), _real((3, 3), (3, 3))),
    **dict.fromkeys(("vstack", "hstack"), lambda v: (([v.real((2, 3)), v.real((2, 3))],), {})),
    **dict.fromkeys(("linalg.slogdet", "linalg.matrix_norm", "linalg.matrix_rank"), _matrix((3, 3))),
    **dict.fromkeys(("linalg.pinv", "linalg.qr", "linalg.svdvals"), _matrix((4, 3))),
    **dict.fromkeys(("linalg.cholesky", "linalg.eigh", "linalg.eigvalsh"), _definite),
    "linalg.matrix_power": lambda v: ((v.matrix((3, 3)), -2), {}),
    "linalg.solve": lambda v: ((v.matrix((3, 3)), v.real((3, 2))), {}),
    "linalg.svd": _matrix((4, 3), full_matrices=False),
    "__array_namespace_info__": _exactly(),
    "astype": _then((2, 3), np.float64),
    "attention": _real((4, 3), (5, 3), (5, 2)),
    "batch_norm": _real((4, 3), (3,), (3,)),
    "bernoulli": _exactly(_KEY, 0.5, (2, 3)),
    "binary_cross_entropy": lambda v: ((v.unit((4,)) / 2 + 0.5, v.unit((4,)) / 2 + 0.5), {}),
    "binary_cross_entropy_with_logits": lambda v: ((v.real((4,)), v.unit((4,)) / 2 + 0.5), {}),
    "breakpoint": _real((2, 3), hook=len),
    "can_cast": _exactly(np.int32, np.int64),
    "cond": lambda v: ((np.asarray(True), ops.sin, ops.cos, v.real((3,))), {}),
    "conv1d": _real((2, 3, 6), (4, 3, 3), (4,)),
    "conv2d": _real((1, 2, 5, 5), (3, 2, 3, 3), (3,)),
    "conv3d": _real((1, 2, 4, 3, 3), (3, 2, 3, 2, 2), (3,)),
    "conv_transpose1d": _real((2, 3, 4), (3, 2, 3), (2,)),
    "conv_transpose2d": _real((1, 2, 3, 3), (2, 3, 2, 2), (3,)),
    "conv_transpose3d": _real((1, 2, 2, 3, 3), (2, 3, 2, 2, 2), (3,)),
    "cross": _real((2, 3), (2, 3)),
    "cross_entropy": lambda v: ((v.real((4, 3)), _classes(v)), {}),
    "diag": _real((3,)),
    "dropout": _then((2, 3), 0.5, _KEY),
    "einsum": lambda v: (("ij,jk->ik", v.real((2, 3)), v.real((3, 4))), {}),
    "embedding": lambda v: ((v.real((3, 2)), _classes(v)), {}),
    "expand_dims": _real((2, 3), axis=1),
    "eye": _exactly(3),
    "fori_loop": lambda v: ((0, 3, lambda i, s: ops.sin(s), v.real((3,))), {}),
    "from_dlpack": _real((2, 3)),
    "full_like": _then((2, 3), 2),
    "group_norm": lambda v: ((v.real((2, 4, 3)), 2, v.real((4,)), v.real((4,))), {}),
    "iinfo": _exactly(np.int32),
    "index": lambda v: ((v.real((4, 3)), (_classes(v), slice(None))), {}),
    "instance_norm": _real((2, 4, 3), (4,), (4,)),
    "interpolate": _then((1, 2, 3, 3), (4, 5), mode="bilinear"),
    "isdtype": _exactly(np.float32, "real floating"),
    "kl_div": lambda v: ((v.real((2, 3)), v.positive((2, 3))), {}),
    "layer_norm": _real((2, 3), (3,), (3,)),
    "linspace": _exactly(0.0, 1.0, 5),
    "meshgrid": _real((2,), (3,)),
    "moveaxis": _then((2, 3, 4), 0, -1),
    "one_hot": lambda v: ((_classes(v), 3), {}),
    "print": _real((2, 3)),
    "random_key": _exactly(7),
    "repeat": _then((2, 3), 2),
    "rms_norm": _real((2, 3), (3,)),
    "scan": lambda v: ((lambda s, x: (ops.sin(s + x), s * x), v.real((2,)), v.real((3, 2))), {}),
    "scatter_reduce": lambda v: ((v.real((4, 3)), 0, v.ints((5, 3), 0, 4), v.real((5, 3)), "amax"), {}),
    "squeeze": _real((2, 1, 3)),
    "switch": lambda v: ((np.asarray(1), (ops.sin, ops.cos), v.real((3,))), {}),
    "tensordot": _real((2, 3), (3, 4), axes=1),
    "tile": _then((2, 3), (2, 1)),
    "while_loop": lambda v: ((lambda s: ops.sum(s * s) > 0.5, lambda s: s * 0.5, v.real((3,))), {}),
}
