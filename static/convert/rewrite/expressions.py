"""Expressions rewritten: what decides, compares, calls, or makes a container goes through an operator."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from static.convert.rewrite.nodes import COMPREHENSIONS, GIVEN, at, is_operator, load, operator, parameters, thunk
from static.convert.rewrite.scopes import Names, bound_by
from static.convert.rewrite.source import NotConvertedError

_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Is: "same",
    ast.IsNot: "not_same",
    ast.In: "contained",
    ast.NotIn: "not_contained",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}
# They look at the frame that calls them.
_OF_FRAMES = frozenset(["super", "globals", "__import__", "breakpoint"])


class Expressions(ast.NodeTransformer):
    """Rewrites the expressions of one function. `guarded` are its variables that may hold what cannot be read."""

    def __init__(self, guarded: Names, tried: bool = False) -> None:
        self._guarded = guarded
        self.tried = tried  # whether a handler of exceptions is around

    def __call__(self, node: ast.expr) -> ast.expr:
        """The rewritten expression."""
        new: ast.expr = self.visit(node)
        return new

    def index(self, node: ast.expr) -> ast.expr:
        """What stands in square brackets, as an expression that can stand outside of them."""
        if isinstance(node, ast.Slice):
            parts = [
                self(part) if part is not None else ast.Constant(None) for part in (node.lower, node.upper, node.step)
            ]
            return at(operator("slice", *parts), node)
        if isinstance(node, ast.Tuple):
            return at(ast.Tuple([self.index(part) for part in node.elts], ast.Load()), node)
        return self(node)

    # Decisions -----------------------------------------------------------------------------------------------

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """`a if test else b`: both are functions."""
        _refuse_walrus([node.body, node.orelse])
        return at(operator("choose", self(node.test), thunk(self(node.body)), thunk(self(node.orelse))), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """`and` and `or`: what comes after the first is a function."""
        _refuse_walrus(node.values[1:])
        name = "both" if isinstance(node.op, ast.And) else "any_of"
        out = self(node.values[-1])
        for value in reversed(node.values[:-1]):
            out = operator(name, self(value), thunk(out))
        return at(out, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """`not`."""
        if isinstance(node.op, ast.Not):
            return at(operator("negated", self(node.operand)), node)
        self.generic_visit(node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """A comparison; a chain of them reads each operand once."""
        names = [_COMPARED[type(op)] for op in node.ops]
        if len(names) == 1:
            return at(operator(names[0], self(node.left), self(node.comparators[0])), node)
        _refuse_walrus(node.comparators[1:])
        rest = [thunk(self(value)) for value in node.comparators[1:]]
        kinds = ast.Tuple([ast.Constant(name) for name in names], ast.Load())
        return at(operator("chain", kinds, self(node.left), self(node.comparators[0]), *rest), node)

    # Calls and containers ------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A call: the function is converted where it can be."""
        if (isinstance(node.func, ast.Name) and node.func.id in _OF_FRAMES) or is_operator(node):
            self.generic_visit(node)
            return node
        self.generic_visit(node)
        node.func = at(operator("call", node.func), node)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        """A text made of values."""
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                value.value = at(operator("shown", self(value.value)), value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """An item that is read: only the run may know which."""
        if isinstance(node.ctx, ast.Load):
            return at(operator("tried_item" if self.tried else "item", self(node.value), self.index(node.slice)), node)
        self.generic_visit(node)
        return node

    def visit(self, node: ast.AST) -> Any:
        """The rewritten form of any node."""
        if isinstance(node, COMPREHENSIONS):
            return self._comprehension(node)
        if isinstance(node, (ast.List, ast.Set, ast.Dict)):
            return self._display(node)
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
            raise NotConvertedError("it has a yield or an await in an expression; make it a statement")
        return super().visit(node)

    def _display(self, node: ast.List | ast.Set | ast.Dict) -> ast.expr:
        """A container that nobody else holds."""
        self.generic_visit(node)
        return node if isinstance(getattr(node, "ctx", None), ast.Store) else at(operator("made", node), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """An operator between two values."""
        name = ast.Constant(type(node.op).__name__)
        return at(operator("arithmetic", name, self(node.left), self(node.right)), node)

    # Scopes --------------------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A variable that is read."""
        if isinstance(node.ctx, ast.Load) and node.id in self._guarded:
            return at(operator("read", node), node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """A function inside: converted with the one around it."""
        node.args = self.arguments(node.args)
        node.body = Expressions(self._guarded - bound_by(node.args))(node.body)
        return at(operator("converted", node), node)

    def arguments(self, args: ast.arguments) -> ast.arguments:
        """Parameters with their defaults, which belong to the scope around the function."""
        args.defaults = [self(default) for default in args.defaults]
        args.kw_defaults = [default and self(default) for default in args.kw_defaults]
        return args

    def _stream(self, node: ast.GeneratorExp, inner: Expressions) -> ast.expr:
        """A generator expression with one loop."""
        loop = node.generators[0]
        tests = [inner(test) for test in loop.ifs]
        test = tests[-1] if tests else ast.Constant(None)
        for one in reversed(tests[:-1]):
            test = operator("both", one, thunk(test))
        tested = _of_item(loop.target, test) if tests else test
        return operator("stream", self(loop.iter), _of_item(loop.target, inner(node.elt)), tested)

    def _comprehension(self, node: ast.expr) -> ast.expr:
        """A comprehension; its first iterable belongs to the scope around it."""
        inner = Expressions(self._guarded - bound_by(node), self.tried)
        if isinstance(node, ast.GeneratorExp) and _is_simple(node):
            return at(self._stream(node, inner), node)
        generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
        for number, generator in enumerate(generators):
            generator.iter = at(operator("iterated", (inner if number else self)(generator.iter)), generator.iter)
            generator.ifs = [at(operator("known", inner(test)), test) for test in generator.ifs]
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                setattr(node, field, inner(getattr(node, field)))
        return node if isinstance(node, ast.GeneratorExp) else at(operator("made", node), node)


def _is_simple(node: ast.GeneratorExp) -> bool:
    """Whether a generator expression has one loop, over names."""
    target = node.generators[0].target
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    return (
        len(node.generators) == 1
        and all(isinstance(name, ast.Name) for name in names)
        and not any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield)) for n in ast.walk(node))
    )


def _of_item(target: ast.expr, value: ast.expr) -> ast.expr:
    """A function of an item, which it unpacks to the names of a target."""
    if isinstance(target, ast.Name):
        return ast.Lambda(parameters(target.id), value)
    names = [name.id for name in ast.walk(target) if isinstance(name, ast.Name)]
    unpacked = ast.Lambda(parameters(*names), value)
    return ast.Lambda(parameters(GIVEN), ast.Call(unpacked, [ast.Starred(load(GIVEN), ast.Load())], []))


def _refuse_walrus(nodes: Iterable[ast.expr]) -> None:
    """Raise NotConvertedError where a variable would be set inside a function made of an expression."""
    for node in nodes:
        if any(isinstance(n, ast.NamedExpr) for n in ast.walk(node)):
            raise NotConvertedError("it sets a variable by := in a part of an expression that may not run")
