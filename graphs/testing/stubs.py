"""The stubs of `graphs` and `dynamic`, for editors and checkers of types: `python -m graphs.testing.stubs` writes them.

A package gives names that it gathers when it is loaded. Its stub imports each from the file that defines it, so that a
name that does not exist is an error, and "go to definition" arrives.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from graphs.files import write_file
from graphs.frontends.torch.functions import Methods
from graphs.frontends.torch.methods import TorchMethods
from graphs.frontends.torch.names import functions

ROOT = Path(__file__).resolve().parents[2]
Names = dict[str, str]  # the statement that makes a name known, by the name
_HEAD = '"""Made by `python -m graphs.testing.stubs`{version}; do not edit."""\n'


def public_names(module: str) -> dict[str, str]:
    """The public names that `from module import *` gives, each with the module that defines it."""
    names: list[str] = importlib.import_module(module).__all__
    gathered: dict[str, str] = {}
    for node in _tree(module).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.names[0].name == "*":
            gathered |= public_names(node.module)
    return {name: gathered.get(name, module) for name in names}


def of_graphs() -> str:
    """The stub of `graphs`: its own names, what it loads later, and NumPy's for all others."""
    own = _declared_names("graphs") | {
        name: _import("graphs", name) for name in importlib.import_module("graphs")._LATER
    }
    own["array"] = _import("graphs.frontends.numpy.protocol", "array")
    numpy = [name for name in np.__all__ if name not in own and not name.startswith("_")]
    return _page("graphs", own | {name: _import("numpy", name) for name in numpy}, f" with NumPy {_version()}")


def of_dynamic() -> str:
    """The stub of `dynamic`: its own names, and what it loads later."""
    dynamic = importlib.import_module("dynamic")
    names = _declared_names("dynamic") | {name: _import("dynamic", name) for name in dynamic._LATER}
    neural = (*dynamic._NEURAL, *dynamic._LAYERS)
    names |= {name: _import("dynamic.pytorch.neural", name) for name in neural}
    names = {name: line for name, line in names.items() if name not in neural or hasattr(dynamic, name)}
    seldom, switches = (importlib.import_module(f"dynamic.pytorch.{file}") for file in ("seldom", "switches"))
    names |= {name: _import(seldom.__name__, name) for name in seldom.__all__}
    places = [place for place in sorted(switches.PLACES) if "." not in place]
    names |= {name: f"{name}: _Any" for name in (*places, *(name for place, name in switches.NAMES if not place))}
    names["__version__"] = "__version__: str"
    tensor = dynamic.Tensor
    forms = [name for name in dir(tensor) if name.endswith("_") and name[0] != "_" and hasattr(tensor, name)]
    return _page("dynamic", names | {name: f"{name} = Tensor.{name}" for name in forms})


def of_functions() -> str:
    """The stub of PyTorch's functions, methods and in-place forms, which one definition each makes."""
    importlib.import_module("dynamic")  # has some more methods
    imports: dict[str, set[str]] = {"typing": {"Any", "Self"}}
    names, methods = list[str](), list[str]()
    for name, function in sorted(functions.items()):
        definition = inspect.unwrap(function)
        defined = vars(inspect.getmodule(definition)).get(definition.__name__)
        if not callable(defined) or inspect.unwrap(defined) is not definition:  # an op
            names.append(f"def {name}{_signature(definition, imports)}: ...")
        elif name == definition.__name__:
            imports.setdefault(definition.__module__, set()).add(f"{name} as {name}")
        else:
            names.append(f"{name} = {definition.__name__}")
    for name, function in sorted(vars(Methods).items()):
        if name.startswith("_") or name in vars(TorchMethods):  # what a class below has written itself
            continue
        is_form = not hasattr(function, "__wrapped__")
        definition = inspect.unwrap(vars(Methods)[name[:-1]] if is_form else function)
        methods.append(f"    def {name}{_signature(definition, imports, is_form)}: ...")
    lines = [_imports(module, sorted(imported)) for module, imported in sorted(imports.items())]
    listed = f"__all__ = [\n{_fill_lines(map(repr, sorted(functions)))},\n]"
    return "\n".join([_HEAD.format(version=""), *lines, "", *names, "", "class Methods:", *methods, "", listed, ""])


def _signature(function: Callable[..., Any], imports: dict[str, set[str]], is_form: bool | None = None) -> str:
    """`(self, min: Any = None) -> Self`, of a method where `is_form` is a bool; `imports` gets what its types need."""
    signature = inspect.signature(function)
    texts = [_parameter(p, function, imports) for p in signature.parameters.values()]
    kinds = [p.kind for p in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        texts.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    if is_form is not None:
        texts[0] = "self"
    return f"({', '.join(texts)}) -> {'Self' if is_form else _type(signature.return_annotation, function, imports)}"


def _parameter(parameter: inspect.Parameter, function: Callable[..., Any], imports: dict[str, set[str]]) -> str:
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
    default = parameter.default
    is_plain = default is None or type(default) in (bool, int, float, str, tuple)
    value = "" if default is parameter.empty else f" = {default!r}" if is_plain else " = ..."
    return f"{stars}{parameter.name}: {_type(parameter.annotation, function, imports)}{value}"


def _type(annotation: Any, function: Callable[..., Any], imports: dict[str, set[str]]) -> str:
    """A type as it is written, with what it names imported; `Any` where that is none of this package or of Python."""
    if not isinstance(annotation, str):
        return "Any"
    for node in ast.walk(ast.parse(annotation)):
        if isinstance(node, ast.Name) and not hasattr(builtins, node.id):
            module = getattr(function.__globals__.get(node.id), "__module__", "")
            if module.partition(".")[0] not in ("graphs", "collections"):
                return "Any"
            imports.setdefault(module, set()).add(node.id)
    return annotation


PAGES = {"graphs": of_graphs, "dynamic": of_dynamic, "graphs.frontends.torch.functions": of_functions}


def place(module: str) -> Path:
    """The file of a module's stub."""
    path = ROOT / module.replace(".", "/")
    return path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")


def _tree(module: str) -> ast.Module:
    path = importlib.import_module(module).__file__
    if path is None:
        raise ValueError(f"{module} has no file; give a module that is written in Python")
    return ast.parse(Path(path).read_text("utf-8"))


def _declared_names(package: str) -> Names:
    """What the statements of a package's `__init__` make public, the last of a name."""
    names: Names = {}
    for node in _tree(package).body:
        names |= dict(_statement(node))
    return {name: line for name, line in names.items() if not name.startswith("_") or name.startswith("__array")}


def _statement(node: ast.stmt) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.ImportFrom) and node.module:
        if node.names[0].name == "*":
            yield from ((name, _import(module, name)) for name, module in public_names(node.module).items())
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
    public = sorted({*importlib.import_module(package).__all__})
    return "\n".join([*head, *lines, "", *rest, "", f"__all__ = [\n{_fill_lines(map(repr, public))},\n]", ""])


def _imports(module: str, imported: list[str]) -> str:
    return f"from {module} import (\n{_fill_lines(imported)},\n)"


def _fill_lines(parts: Iterable[str]) -> str:
    """Parts with commas between them, in lines; none is broken."""
    text = textwrap.fill(", ".join(part.replace(" ", "\0") for part in parts), 116, break_on_hyphens=False)
    return textwrap.indent(text.replace("\0", " "), "    ")


def _version() -> str:
    return ".".join(np.__version__.split(".")[:2])


if __name__ == "__main__":
    for package, page in PAGES.items():
        write_file(place(package), page().encode())
