"""The op library and the graph that both engines share.

A function here takes NumPy arrays (and runs at once), `dynamic.Tensor`s (and is recorded) or the symbols of a
`static` trace (and becomes a node): the type of the value decides. Names are those of the array API standard. NumPy
names that the standard lacks are here as well, so that `import graphs as np` runs NumPy programs: docs/numpy.md.
"""

import builtins
from typing import Any as _Any

from graphs import interpreter as _interpreter  # isort: skip  # noqa: F401  (first: it may refuse to load the others)
from graphs import errors, linalg, optim, tree
from graphs.custom import custom_op
from graphs.dims import Dim, dim
from graphs.errors import (
    AnomalyError,
    ArtifactError,
    ControlFlowError,
    DTypeError,
    GraphError,
    InplaceError,
    LinAlgError,
    NotDifferentiableError,
    OutOfRangeError,
    ShapeError,
    ShapeLimitError,
    ShapeLimitWarning,
    VerificationError,
)
from graphs.ir import Graph, Node
from graphs.op import Op
from graphs.ops import *  # noqa: F403  (the op library is this package's surface; graphs/ops lists it)
from graphs.ops import public as _ops
from graphs.spec import TensorSpec
from graphs.tree import tree_map


def isomorphic(first: Graph, second: Graph) -> builtins.bool:
    """Whether two graphs are the same labelled graph, whatever the order of their nodes (needs networkx)."""
    from graphs import analysis

    return analysis.isomorphic(first, second)


_LATER = ("integrate", "onnx", "special", "stats")


def __getattr__(name: str) -> _Any:
    """Load a rarely used submodule, or find the counterpart of a NumPy name. Raises AttributeError for other names."""
    import importlib

    if name in _LATER:
        return importlib.import_module(f"graphs.{name}")
    return importlib.import_module("graphs.frontends.numpy.protocol").find_counterpart(name)


__all__ = [  # noqa: PLE0604  (_ops is a list of names)
    "AnomalyError", "ArtifactError", "ControlFlowError", "DTypeError", "Dim", "Graph", "GraphError", "InplaceError",
    "LinAlgError", "Node", "NotDifferentiableError", "Op", "OutOfRangeError", "ShapeError", "ShapeLimitError",
    "ShapeLimitWarning", "TensorSpec", "VerificationError", "custom_op", "dim", "errors", "isomorphic", "linalg",
    "optim", "tree", "tree_map", *_ops,
]  # fmt: skip
