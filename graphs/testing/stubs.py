"""The stubs of `graphs` and `dynamic`, for editors and checkers of types: `python -m graphs.testing.stubs` writes them.

A package gives names that it gathers when it is loaded. Its stub imports each from the file that defines it, so that a
name that does not exist is an error, and "go to definition" arrives.
"""

from __future__ import annotations

import ast
import importlib
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from graphs.files import write_file

ROOT = Path(__file__).resolve().parents[2]
Names = dict[str, str]  # the statement that makes a name known, by the name
_HEAD = '"""Made by `python -m graphs.testing.stubs`{version}; do not edit."""\n'


def defined(module: str) -> dict[str, str]:
    """The public names that `from module import *` gives, each with the module that defines it."""
    names: list[str] = importlib.import_module(module).__all__
    gathered: dict[str, str] = {}
    for node in _tree(module).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.names[0].name == "*":
            gathered |= defined(node.module)
    return {name: gathered.get(name, module) for name in names}


def of_graphs() -> str:
    """The stub of `graphs`: its own names, what it loads later, and NumPy's for all others."""
    own = _declared("graphs") | {name: _import("graphs", name) for name in importlib.import_module("graphs")._LATER}
    own["array"] = _import("graphs.frontends.numpy.names", "array")
    numpy = [name for name in np.__all__ if name not in own and not name.startswith("_")]
    return _page("graphs", own | {name: _import("numpy", name) for name in numpy}, f" with NumPy {_version()}")


def of_dynamic() -> str:
    """The stub of `dynamic`: its own names, and what it loads later."""
    dynamic = importlib.import_module("dynamic")
    names = _declared("dynamic") | {name: _import("dynamic", name) for name in dynamic._LATER}
    neural = (*dynamic._NEURAL, *dynamic._LAYERS)
    names |= {name: _import("dynamic.pytorch.neural", name) for name in neural}
    names = {name: line for name, line in names.items() if name not in neural or hasattr(dynamic, name)}
    for module, lazy in dynamic._BY_MODULE.items():
        names |= {name: _import(f"dynamic.pytorch.{module}", name) for name in lazy}
    names["__version__"] = "__version__: str"
    names |= {f"{name}_": f"{name}_ = Tensor.{name}_" for name in dynamic._IN_PLACE.split()}
    return _page("dynamic", names)


PAGES = {"graphs": of_graphs, "dynamic": of_dynamic}


def place(package: str) -> Path:
    """The file of a package's stub."""
    return ROOT / package / "__init__.pyi"


def _tree(module: str) -> ast.Module:
    path = importlib.import_module(module).__file__
    if path is None:
        raise ValueError(f"{module} has no file; give a module that is written in Python")
    return ast.parse(Path(path).read_text("utf-8"))


def _declared(package: str) -> Names:
    """What the statements of a package's `__init__` make public, the last of a name."""
    names: Names = {}
    for node in _tree(package).body:
        names |= dict(_statement(node))
    return {name: line for name, line in names.items() if not name.startswith("_") or name.startswith("__array")}


def _statement(node: ast.stmt) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.ImportFrom) and node.module:
        if node.names[0].name == "*":
            yield from ((name, _import(module, name)) for name, module in defined(node.module).items())
        else:
            yield from ((a.asname or a.name, _import(node.module, a.name, a.asname)) for a in node.names)
    elif isinstance(node, ast.FunctionDef):
        node.body = [ast.Expr(ast.Constant(...))]
        yield node.name, ast.unparse(node)
    elif isinstance(node, ast.AnnAssign):
        yield ast.unparse(node.target), ast.unparse(ast.AnnAssign(node.target, node.annotation, None, 1))
    elif isinstance(node, ast.Assign):
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=True))
        yield from ((ast.unparse(name), f"{ast.unparse(name)} = {ast.unparse(of)}") for name, of in pairs)


def _import(module: str, name: str, public: str | None = None) -> str:
    return f"from {module} import {name} as {public or name}"


def _page(package: str, names: Names, version: str = "") -> str:
    """A stub: imports together by module, then the rest."""
    imports: dict[str, list[str]] = {}
    rest: list[str] = []
    for line in names.values():
        if line.startswith("from "):
            module, _, imported = line.removeprefix("from ").partition(" import ")
            imports.setdefault(module, []).append(imported)
        else:
            rest.append(line)
    lines = [_imports(module, sorted(imported)) for module, imported in sorted(imports.items())]
    head = [_HEAD.format(version=version), "import builtins", "from typing import Any as _Any", ""]
    public = dict.fromkeys(importlib.import_module(package).__all__)
    return "\n".join([*head, *lines, "", *rest, "", f"__all__ = [\n{_filled(map(repr, public))},\n]", ""])


def _imports(module: str, imported: list[str]) -> str:
    return f"from {module} import (\n{_filled(imported)},\n)"


def _filled(parts: Iterable[str]) -> str:
    """Parts with commas between them, in lines; none is broken."""
    text = textwrap.fill(", ".join(part.replace(" ", "\0") for part in parts), 116, break_on_hyphens=False)
    return textwrap.indent(text.replace("\0", " "), "    ")


def _version() -> str:
    return ".".join(np.__version__.split(".")[:2])


if __name__ == "__main__":
    for package, page in PAGES.items():
        write_file(place(package), page().encode())
