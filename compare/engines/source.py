"""One source for every framework: a module over `graphs`, executed again with the framework's functions as `graphs`.

Compilers that read source (AutoGraph) or bytecode (Dynamo) then see plain calls of their own framework. Imported
modules that compute with `graphs` are executed again as well; all others are shared.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import graphs

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
        with _instead({"graphs": self.graphs, **again}):
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


@contextmanager
def _instead(modules: Mapping[str, ModuleType]) -> Iterator[None]:
    """A context in which these modules replace the ones of their names in `sys.modules`."""
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
