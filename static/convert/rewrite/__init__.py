"""Python rewritten to Python: a function whose tests, loops, calls and writes go through the operators of `stage`.

Read this file (a whole function), then `statements` and `expressions`; `jumps` turns `return`, `break` and
`continue` into flags first. `syntax` finds the tree of a function, and makes trees.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import weakref
from collections.abc import Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

from static.convert.rewrite import syntax
from static.convert.rewrite.expressions import put_name
from static.convert.rewrite.jumps import lower_jumps
from static.convert.rewrite.statements import Around, Statements
from static.convert.rewrite.syntax import (
    FUNCTIONS,
    FUTURE,
    GIVEN,
    NONE,
    OPERATORS,
    Definition,
    Names,
    NotConvertedError,
    assign,
    at,
    copy_tree,
    definition,
    function,
    load,
    loaded_names,
    names_bound,
    negate,
    operator,
    scope,
    store,
    stored_names,
    thunk,
)

_FACTORY, _NAME = "<factory>", "<rewritten>"
_BLOCK = re.compile(r"<(if|else|while|for) \d+>\.<locals>\.")
"""The parts of a qualified name that belong to functions made from blocks."""


def rewrite_function(node: ast.FunctionDef, enclosing: Names = NONE) -> ast.FunctionDef:
    """Return the function with its statements rewritten.

    `enclosing` are guarded variables of the functions around it.
    """
    doc = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
    statements = node.body[len(doc) :] or [at(ast.Pass(), node)]
    parameters = names_bound(node.args)
    body, last = lower_jumps(statements)
    around = Around([*body, last], enclosing - stored_names(body) - parameters)
    rewriter = Statements(around, rewrite_function)
    new = [*rewriter.block(body, loaded_names(last)), rewriter.returned(last)]
    head = [at(statement, node) for statement in _head(around, parameters, stored_names(body))]
    out = ast.copy_location(function(node.name, node.args, [*doc, *head, *new]), node)
    out.returns = node.returns
    return out


def _head(around: Around, parameters: set[str], written: Names) -> list[ast.stmt]:
    """Return the first statements of a rewritten function: declarations, and outer variables for the journal."""
    out: list[ast.stmt] = []
    if around.globals:
        out.append(ast.Global(sorted(around.globals)))
    if around.outer - around.globals:
        out.append(ast.Nonlocal(sorted(around.outer - around.globals)))
    unset = sorted(around.merged - parameters - around.outer)
    out += [assign(name, operator("unset", ast.Constant(name))) for name in unset]
    owned = sorted((around.merged | around.lent) - around.outer)
    if owned:
        out.append(ast.Expr(operator("owned", thunk(ast.Tuple([load(name) for name in owned], ast.Load())))))
    for name in sorted(around.assigned):
        setting = ast.Assign([ast.Tuple([store(name)], ast.Store())], load(GIVEN))
        out.append(function(put_name(name), syntax.parameters(GIVEN), [*around.shared([name]), setting]))
    for name in sorted(around.outer & written):
        put = f"<set {name}>"
        body = [*around.shared([name]), assign(name, load(GIVEN))]
        out.append(function(put, syntax.parameters(GIVEN), body))
        out.append(ast.Expr(operator("outer", ast.Constant(name), thunk(load(name)), load(put))))
    return out


class RewriteCache:
    """Rewritten functions by code, each rewritten once; a `NotConvertedError` is remembered as well."""

    def __init__(self, operators: object) -> None:
        self._cell = CellType(operators)
        # Equal codes may stand in several files.
        self._kept: weakref.WeakKeyDictionary[CodeType, dict[str, CodeType | NotConvertedError]]
        self._kept = weakref.WeakKeyDictionary()

    def __call__(self, f: FunctionType) -> FunctionType:
        """Return the function with rewritten code; it shares the variables and the defaults of the original.

        Raises NotConvertedError with the reason.
        """
        linecache.lazycache(f.__code__.co_filename, f.__globals__)  # a file in an archive has its text from its loader
        code = self._code(f.__code__)
        cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
        cells[OPERATORS] = self._cell
        closure = tuple([cells[name] for name in code.co_freevars])
        new = FunctionType(code, f.__globals__, f.__name__, f.__defaults__, closure)
        new.__kwdefaults__ = f.__kwdefaults__
        new.__qualname__, new.__module__, new.__doc__ = f.__qualname__, f.__module__, f.__doc__
        return new

    def _code(self, code: CodeType) -> CodeType:
        kept, file = self._kept.setdefault(code, {}), code.co_filename
        if file not in kept:
            try:
                kept[file] = compile_rewritten(code)
            except NotConvertedError as reason:
                kept[file] = reason
        outcome = kept[file]
        if isinstance(outcome, NotConvertedError):
            raise NotConvertedError(*outcome.args)
        return outcome


def compile_rewritten(code: CodeType) -> CodeType:
    """Return the rewritten code of a function. Raises NotConvertedError."""
    node = _as_function(copy_tree(definition(code)), code)
    if code.co_flags & inspect.CO_GENERATOR:
        turned_inside_out(node)
    new = rewrite_function(node, frozenset(code.co_freevars))
    new.name = _NAME  # its own name is that of the original, which recursion calls
    outer: list[ast.stmt] = [assign(name, ast.Constant(None)) for name in (*code.co_freevars, OPERATORS)]
    factory = at(function(_FACTORY, syntax.parameters(), [*outer, new]), node)
    module = ast.fix_missing_locations(ast.Module([factory], []))
    try:
        top = compile(module, code.co_filename, "exec", dont_inherit=True, flags=code.co_flags & FUTURE)
    except SyntaxError as error:
        raise NotConvertedError(f"its rewritten form does not compile: {error}; write it in simpler parts") from None
    inner = _inside(_inside(top, _FACTORY), _NAME)
    return _copy_qualified_names(code, inner.replace(co_name=code.co_name))


def _copy_qualified_names(original: CodeType, code: CodeType) -> CodeType:
    """Return a rewritten code, and the codes inside it, with their original qualified names."""

    def qualify(name: str) -> str:
        return _BLOCK.sub("", name.replace(f"{_FACTORY}.<locals>.{_NAME}", original.co_qualname, 1))

    consts = [
        _copy_qualified_names(original, const)
        if isinstance(const, CodeType)
        else qualify(const)  # the body of a class sets this name
        if isinstance(const, str) and const.startswith(_FACTORY)
        else const
        for const in code.co_consts
    ]
    return code.replace(co_qualname=qualify(code.co_qualname), co_consts=tuple(consts))


def _as_function(node: ast.FunctionDef | ast.Lambda, code: CodeType) -> ast.FunctionDef:
    """Return the definition without decorators, annotations and defaults, which were evaluated when it was made."""
    if isinstance(node, ast.Lambda):
        body: Sequence[ast.stmt] = [at(ast.Return(node.body), node)]
        node = ast.copy_location(function("<lambda>", node.args, body), node)
    node.decorator_list, node.returns = [], None
    for arg in ast.walk(node.args):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    _name_supers(node)
    _mangle(node, code.co_qualname.rpartition(".")[0].rpartition(".")[2].lstrip("_"))
    node.args.defaults = [at(ast.Constant(None), node) for _ in node.args.defaults]
    node.args.kw_defaults = [default and at(ast.Constant(None), node) for default in node.args.kw_defaults]
    return node


def _name_supers(node: Definition) -> None:
    """Give `super()` its arguments: Python finds them in a frame, which a rewritten call does not have."""
    first = next((arg.arg for arg in (*node.args.posonlyargs, *node.args.args)), "")
    inside = list(scope([node.body] if isinstance(node, ast.Lambda) else node.body))
    for n in inside:
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "super" and not n.args:
            n.args = [at(load("__class__"), n), at(load(first), n)]
        elif isinstance(n, (ast.FunctionDef, ast.Lambda)):
            _name_supers(n)


def _mangle(node: ast.FunctionDef, owner: str) -> None:
    """Give private names the form that they have inside their class (Python's reference, 6.2.1)."""
    if owner in ("", "<locals>"):
        return
    todo: list[ast.AST] = [node]
    while todo:
        n = todo.pop()
        for field in ("attr", "id"):
            name = getattr(n, field, "")
            if name.startswith("__") and not name.endswith("__"):
                setattr(n, field, f"_{owner}{name}")
        if not isinstance(n, ast.ClassDef):  # a class has private names of its own
            todo += ast.iter_child_nodes(n)


def _inside(code: CodeType, name: str) -> CodeType:
    return next(const for const in code.co_consts if isinstance(const, CodeType) and const.co_name == name)


CONSUME, GOES_ON, EACH = "<consume>", "<goes on>", "<each>"


def turned_inside_out(node: ast.FunctionDef) -> None:
    """Turn a generator function inside out. Raises NotConvertedError where the value of a yield is used."""
    node.args.posonlyargs[:0] = [ast.arg(CONSUME), ast.arg(GOES_ON)]
    node.body = [new for statement in node.body for new in _Yields().statements(statement)]


class _Yields(ast.NodeTransformer):
    def statements(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the statements that a statement becomes, without yields."""
        visited = self.visit(statement)
        return visited if isinstance(visited, list) else [visited]

    def visit(self, node: ast.AST) -> Any:
        """Visit a node, except functions and classes inside, which yield for themselves."""
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
            raise NotConvertedError(
                f"its line {node.lineno} takes what is sent to a generator, or awaits; write a loop and a function"
            )
        return node if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else super().visit(node)

    def visit_Try(self, node: ast.Try) -> Any:
        """Visit a try; one with a yield is refused, since it would catch errors of the consumer."""
        return self._left_late(node)

    def visit_With(self, node: ast.With) -> Any:
        """Visit a with; one with a yield is refused, since it would see errors of the consumer."""
        return self._left_late(node)

    def _left_late(self, node: ast.Try | ast.With) -> Any:
        """Visit a block that Python leaves when the generator dies, not when its consumer leaves the loop.

        Raises NotConvertedError where the block has a yield.
        """
        if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in scope([node])):
            raise NotConvertedError(f"its line {node.lineno} holds a yield in a try or a with; yield outside of it")
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        """Replace the statements `yield value` and `yield from values`."""
        match node.value:
            case ast.Yield(value=value):
                new: list[ast.stmt] = _yield_statements(value or ast.Constant(None))
            case ast.YieldFrom(value=values):
                new = [ast.For(store(EACH), values, _yield_statements(load(EACH)), [])]
            case _:
                return self.generic_visit(node)
        return [at(statement, node) for statement in new]


def _yield_statements(value: ast.expr) -> list[ast.stmt]:
    left = negate(operator("consumed", load(GOES_ON)))
    return [ast.Expr(operator("consumed", load(CONSUME), value)), ast.If(left, [ast.Return(None)], [])]
