"""Sample calls of every registered op: broadcasting patterns, axes, 0-d, size-1 and zero-size shapes.

A sample call of each public function that is made of ops, or of none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphs import op as registry
from graphs import ops
from graphs.errors import GraphError
from graphs.op import RuleTable
from graphs.testing.elementwise import EFFECTS, NEURAL, REDUCTIONS, SOFTMAX, SORTING, elementwise, over_axes
from graphs.testing.movement import INDEXING, LINALG, MOVEMENT
from graphs.testing.sample import Given, Maker, Sample, Values

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
