"""One source for every framework: a module over `graphs`, executed again with the framework's functions as `graphs`.

Compilers that read source (AutoGraph) or bytecode (Dynamo) then see plain calls of their own framework. Imported
modules that compute with `graphs` are executed again as well; all others are shared. `compose` adds the functions that
a framework lacks, composed of others; their control flow is Python's own.
"""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import graphs
from compare.engines.mode import Role
from compare.engines.process import patch_namespace
from compare.engines.step import Function
from compare.workloads.base import Workload

OURS = ("graphs", "static", "dynamic")


class Loader:
    """Executes modules over one engine's replacement of `graphs`; each module once."""

    def __init__(self, engine: str, graphs: ModuleType) -> None:
        self.prefix = f"graphduel_{engine}"
        self.graphs = graphs
        self.loaded: dict[str, ModuleType] = {}

    def load(self, name: str) -> ModuleType:
        """Return a module over the framework. Raises ModuleNotFoundError, and the errors of executing the module."""
        if name not in self.loaded:
            path = _file(name)
            tree = ast.parse(path.read_text("utf-8"), str(path))
            again = {other: self.load(other) for other in imports(tree) if are_related(other, name) and computes(other)}
            self.loaded[name] = self._execute(name, tree, str(path), again)
        return self.loaded[name]

    @contextmanager
    def edited(self, name: str, text: str) -> Iterator[ModuleType]:
        """A context that gives a loaded module with another text; its imports stay as they are."""
        with TemporaryDirectory(prefix="graphduel-") as folder:
            path = Path(folder, _file(name).name)
            path.write_text(text, "utf-8")  # AutoGraph reads the file of a function when it is called
            tree = ast.parse(text, str(path))
            again = {other: self.loaded[other] for other in imports(tree) if other in self.loaded}
            yield self._execute(f"{name}.edited", tree, str(path), again)

    def _execute(self, name: str, tree: ast.Module, file: str, again: Mapping[str, ModuleType]) -> ModuleType:
        module = ModuleType(f"{self.prefix}.{name}")
        module.__file__ = file
        sys.modules[module.__name__] = module  # inspect looks here for a function's source
        with patch_namespace(sys.modules, {"graphs": self.graphs, **again}):
            exec(compile(tree, file, "exec"), module.__dict__)  # noqa: S102  (a module of the harness or the user)
        return module


def namespace(framework: str, functions: Mapping[str, Callable[..., Any]]) -> ModuleType:
    """Return a module to stand for `graphs`: a framework's functions, and our own functions for containers.

    Reading a name for which the framework has no function raises NotImplementedError.
    """
    module = ModuleType(f"graphduel_{framework}.graphs")
    vars(module).update(functions, tree=graphs.tree, tree_map=graphs.tree_map)

    def missing(name: str) -> Any:
        if name.startswith("__") or not hasattr(graphs, name):
            raise AttributeError(f"module 'graphs' has no attribute {name!r}")
        raise NotImplementedError(f"{framework} has no counterpart of graphs.{name} here")

    vars(module)["__getattr__"] = missing
    sys.modules[module.__name__] = module
    return module


def imports(tree: ast.Module) -> Iterator[str]:
    """Yield the modules that a module imports at its top level."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def computes(name: str) -> bool:
    """Return whether a module computes with `graphs`, directly or through another module of its package."""
    imported = list(imports(ast.parse(_file(name).read_text("utf-8"))))
    return "graphs" in imported or any(computes(other) for other in imported if are_related(other, name))


def are_related(module: str, other: str) -> bool:
    """Return whether two modules are of one package that is none of our engines."""
    package = module.partition(".")[0]
    return package == other.partition(".")[0] and package not in OURS


def _file(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or not spec.origin:
        raise ModuleNotFoundError(f"no source of the module {name} is there", name=name)
    return Path(spec.origin)


# Functions that a framework may lack ----------------------------------------------------------------------------------


Array = Any
Functions = dict[str, Callable[..., Any]]


def compose(of: Functions) -> Functions:
    """Return `of` and the functions that it lacks and that can be composed.

    The framework's own functions take priority.
    """
    f: Functions = {}

    def cross_entropy(logits: Array, labels: Array) -> Array:
        return -f["mean"](f["take_along_axis"](f["log_softmax"](logits), f["expand_dims"](labels, -1)))

    def layer_norm(x: Array, scale: Array, shift: Array, eps: float = 1e-5) -> Array:
        centred = x - f["mean"](x, axis=-1, keepdims=True)
        spread = f["sqrt"](f["mean"](centred * centred, axis=-1, keepdims=True) + eps)
        return centred / spread * scale + shift

    def attention(query: Array, key: Array, value: Array, mask: Array = None) -> Array:
        scores = query @ f["matrix_transpose"](key) / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = f["where"](mask, scores, -math.inf)
        return f["softmax"](scores) @ value

    def while_loop(test: Any, body: Any, state: Any) -> Any:
        while test(state):
            state = body(state)
        return state

    def fori_loop(low: int, high: int, body: Any, state: Any) -> Any:
        for i in range(low, high):
            state = body(i, state)
        return state

    f |= {
        "silu": lambda x: x * f["sigmoid"](x),
        "softmax": lambda x, axis=-1: f["exp"](f["log_softmax"](x, axis=axis)),
        "cross_entropy": cross_entropy,
        "layer_norm": layer_norm,
        "attention": attention,
        "embedding": lambda table, ids: f["take"](table, ids, axis=0),
        "cond": lambda predicate, then, otherwise, *operands: (then if predicate else otherwise)(*operands),
        "switch": lambda index, branches, *operands: branches[min(max(int(index), 0), len(branches) - 1)](*operands),
        "while_loop": while_loop,
        "fori_loop": fori_loop,
        **of,
    }
    return f


def loop_scan(stack: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return `scan` as a Python loop, for a framework that has none; `stack` joins the outputs."""

    def scan(step: Any, state: Any, xs: Any) -> Any:
        outputs = []
        for x in xs:
            state, output = step(state, x)
            outputs.append(output)
        return state, () if isinstance(outputs[0], tuple) and not outputs[0] else stack(outputs)

    return scan


class Library(Role):
    """The modules written over `graphs`, executed again over this framework's functions."""

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self._loaders: dict[bool, Loader] = {}

    def load(self, module: str, *, control: bool = False) -> ModuleType:
        """Load a module written over `graphs` with this framework's functions; `control` uses its control-flow ops."""
        return self._loader(control=control).load(module)

    def edited(self, module: str, text: str) -> AbstractContextManager[ModuleType]:
        """Return a context that gives an already loaded module with another text, over this framework's functions."""
        return self._loader().edited(module, text)

    def _loader(self, *, control: bool = False) -> Loader:
        if control not in self._loaders:
            name = f"{self.engine.name}_control" if control else self.engine.name
            functions = {**self.engine.functions(), **(self.control() if control else {})}
            self._loaders[control] = Loader(name, namespace(name, functions))
        return self._loaders[control]

    def workload(self, source: str) -> Workload:
        """Return the workload at `module:attribute` over this framework's functions; its data stay NumPy arrays."""
        module, _, attribute = source.partition(":")
        workload: Workload = getattr(self.load(module), attribute)
        return workload

    def control(self) -> dict[str, Function]:
        """Return the framework's own ops for control flow, which replace Python's control flow of `functions`."""
        return {}
