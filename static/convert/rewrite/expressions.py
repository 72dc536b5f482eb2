"""Expressions rewritten: a decision, comparison, call or new container goes through an operator."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from static.convert.rewrite.syntax import (
    COMPREHENSIONS,
    GIVEN,
    NONE,
    OPERATORS,
    Names,
    NotConvertedError,
    at,
    is_operator,
    load,
    loaded_names,
    names_bound,
    operator,
    parameters,
    texts,
    thunk,
)

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
# Functions that look at the frame of their caller.
_OF_FRAMES = frozenset(["super", "globals", "__import__", "breakpoint"])


class Expressions(ast.NodeTransformer):
    """Rewrites the expressions of one function. `guarded` are its variables that may hold an unreadable value.

    `settable` are variables that an expression may set by `:=` in a part that becomes a function of its own: `<put
    NAME>` sets NAME. A lambda has none, since no other function can set its variables.
    """

    def __init__(self, guarded: Names, settable: Names = NONE, tried: bool = False) -> None:
        self._guarded, self._settable = guarded, settable
        self.tried = tried  # whether the expression is inside a try with handlers
        self._is_apart = False  # whether the expression becomes a function of its own

    def __call__(self, node: ast.expr) -> ast.expr:
        """Return the rewritten expression."""
        new: ast.expr = self.visit(node)
        return new

    def apart(self, node: ast.expr) -> ast.expr:
        """Return the rewritten expression, as the body of a function of its own."""
        outside, self._is_apart = self._is_apart, True
        new = self(node)
        self._is_apart = outside
        return new

    def later(self, node: ast.expr) -> ast.Lambda:
        """Return a lambda that computes the expression."""
        return thunk(self.apart(node))

    def index(self, node: ast.expr) -> ast.expr:
        """Return the index of a subscript as an expression that can stand outside of brackets."""
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
        """Rewrite `a if test else b`; both values become lambdas."""
        return at(operator("choose", self(node.test), self.later(node.body), self.later(node.orelse)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Rewrite `and` and `or`; the operands after the first become a lambda."""
        name = "both" if isinstance(node.op, ast.And) else "any_of"
        first, *rest = node.values
        after = rest[0] if len(rest) == 1 else ast.copy_location(ast.BoolOp(node.op, rest), node)
        return at(operator(name, self(first), self.later(after)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """Rewrite `not`, `-`, `+` and `~`."""
        if isinstance(node.op, ast.Not):
            return at(operator("negated", self(node.operand)), node)
        if isinstance(node.operand, ast.Constant):
            return node
        return at(operator("signed", ast.Constant(type(node.op).__name__), self(node.operand)), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Rewrite a comparison; a chain of comparisons reads each operand once."""
        names = [_COMPARED[type(op)] for op in node.ops]
        node.comparators = [
            at(operator("iterated", value), value) if isinstance(op, (ast.In, ast.NotIn)) else value
            for op, value in zip(node.ops, node.comparators, strict=True)
        ]
        if len(names) == 1:
            return at(operator(names[0], self(node.left), self(node.comparators[0])), node)
        rest = [self.later(value) for value in node.comparators[1:]]
        kinds = ast.Tuple([ast.Constant(name) for name in names], ast.Load())
        return at(operator("chain", kinds, self(node.left), self(node.comparators[0]), *rest), node)

    # Calls and containers ------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Rewrite a call, so that the called function is converted where it can be."""
        if (isinstance(node.func, ast.Name) and node.func.id in _OF_FRAMES) or is_operator(node):
            self.generic_visit(node)
            return node
        self.generic_visit(node)
        node.func = at(operator("call", node.func), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Rewrite the read of an attribute, which a property or a method of the user's may compute."""
        self.generic_visit(node)
        is_read = isinstance(node.ctx, ast.Load) and getattr(node.value, "id", "") != OPERATORS
        return at(operator("attribute", node.value, ast.Constant(node.attr)), node) if is_read else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        """Rewrite an f-string, whose values become text."""
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                value.value = at(operator("shown", self(value.value)), value)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        """Rewrite a starred expression, which spreads items into arguments or a container."""
        if isinstance(node.ctx, ast.Load):
            return at(ast.Starred(operator("spread", self(node.value)), ast.Load()), node)
        self.generic_visit(node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Rewrite the read of an item, whose index only the run may know."""
        if isinstance(node.ctx, ast.Load):
            return at(operator("tried_item" if self.tried else "item", self(node.value), self.index(node.slice)), node)
        self.generic_visit(node)
        return node

    def visit(self, node: ast.AST) -> Any:
        """Return the rewritten form of any node."""
        if isinstance(node, COMPREHENSIONS):
            return self._comprehension(node)
        if isinstance(node, (ast.List, ast.Set, ast.Dict)):
            return self._display(node)
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
            raise NotConvertedError("it has a yield or an await in an expression; make it a statement")
        return super().visit(node)

    def _display(self, node: ast.List | ast.Set | ast.Dict) -> ast.expr:
        """Rewrite a list, set or dict display, which makes a container that nobody else holds."""
        self.generic_visit(node)
        return node if isinstance(getattr(node, "ctx", None), ast.Store) else at(operator("made", node), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Rewrite a binary operator."""
        name = ast.Constant(type(node.op).__name__)
        return at(operator("arithmetic", name, self(node.left), self(node.right)), node)

    # Scopes --------------------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Rewrite the read of a variable that may hold an unreadable value."""
        if isinstance(node.ctx, ast.Load) and node.id in self._guarded:
            return at(operator("read", node), node)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        """Rewrite `name := value`; in a function of its own the variable is set by `<put name>`."""
        name, value = node.target.id, self(node.value)
        if not self._is_apart:
            return at(ast.NamedExpr(node.target, value), node)
        if name not in self._settable:
            raise NotConvertedError("it sets a variable by := in a part of a lambda that may not run; write a function")
        get = thunk(ast.Tuple([load(name)], ast.Load()))
        return at(operator("assigned", operator("variables", texts([name]), get, load(put_name(name))), value), node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """Rewrite a lambda, which is converted with the function around it."""
        node.args = self.arguments(node.args)
        node.body = Expressions(self._guarded - names_bound(node.args))(node.body)
        return at(operator("converted", node), node)

    def arguments(self, args: ast.arguments) -> ast.arguments:
        """Return parameters with rewritten defaults, which belong to the scope around the function."""
        args.defaults = [self(default) for default in args.defaults]
        args.kw_defaults = [default and self(default) for default in args.kw_defaults]
        return args

    def _comprehension(self, node: ast.expr) -> ast.expr:
        """Rewrite a comprehension; its first iterable belongs to the scope around it."""
        inner = Expressions(self._guarded - names_bound(node), self._settable, self.tried)
        inner._is_apart = True
        generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
        if any(isinstance(n, (ast.Attribute, ast.Subscript)) for clause in generators for n in ast.walk(clause.target)):
            raise NotConvertedError("a comprehension in it sets an attribute or an item; write a for statement")
        first = self(generators[0].iter)
        if isinstance(node, ast.GeneratorExp) and _is_simple(node):
            return at(_stream(first, generators, inner, node.elt), node)
        for number, generator in enumerate(generators):
            items = inner(generator.iter) if number else first
            generator.iter = at(operator("iterated", items), generator.iter)
            generator.ifs = [at(operator("condition", inner(test)), test) for test in generator.ifs]
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                setattr(node, field, inner(getattr(node, field)))
        return at(operator("born" if isinstance(node, ast.GeneratorExp) else "made", node), node)


def put_name(name: str) -> str:
    """Return the name of the function that sets a variable for expressions in functions of their own."""
    return f"<put {name}>"


def _is_simple(node: ast.GeneratorExp) -> bool:
    """Whether the loops of a generator expression are over plain names, which no function inside captures."""
    own, loops = names_bound(node), node.generators
    targets = [n for loop in loops for n in ast.walk(loop.target)]
    parts = [node.elt, *(test for loop in loops for test in loop.ifs), *(loop.iter for loop in loops[1:])]
    functions = [n for part in parts for n in ast.walk(part) if isinstance(n, (ast.Lambda, ast.GeneratorExp))]
    return (
        all(isinstance(n, (ast.Name, ast.Tuple, ast.Store)) for n in targets)
        and not any(loop.is_async for loop in loops)
        and not any(loaded_names(function) & own for function in functions)
        and not any(isinstance(n, (ast.Await, ast.Yield)) for n in ast.walk(node))
    )


def _stream(source: ast.expr, loops: Sequence[ast.comprehension], inner: Expressions, element: ast.expr) -> ast.expr:
    """Return a generator expression as a stream.

    With several loops each item of the first is a stream of the others.
    """
    loop, *rest = loops
    tests = [inner(test) for test in loop.ifs]
    test = tests[-1] if tests else ast.Constant(None)
    for condition in reversed(tests[:-1]):
        test = operator("both", condition, thunk(test))
    tested = _of_item(loop.target, test) if tests else test
    value = _stream(inner(rest[0].iter), rest, inner, element) if rest else inner(element)
    return operator("stream", source, _of_item(loop.target, value), tested, ast.Constant(bool(rest)))


def _of_item(target: ast.expr, value: ast.expr) -> ast.expr:
    """Return a lambda of an item, which unpacks it to the names of a target."""
    if isinstance(target, ast.Name):
        return ast.Lambda(parameters(target.id), value)
    return ast.Lambda(parameters(GIVEN), _unpack(target, value))


def _unpack(target: ast.expr, value: ast.expr) -> ast.expr:
    """Return an expression for a value that reads the names of a target, after the given item is unpacked to them."""
    parts = target.elts if isinstance(target, ast.Tuple) else []
    names = [part.id if isinstance(part, ast.Name) else f"{GIVEN} {number}" for number, part in enumerate(parts)]
    for name, part in zip(names, parts, strict=True):
        if not isinstance(part, ast.Name):
            inner = ast.Lambda(parameters(GIVEN), _unpack(part, value))
            value = ast.Call(inner, [load(name)], [])
    return ast.Call(ast.Lambda(parameters(*names), value), [ast.Starred(load(GIVEN), ast.Load())], [])
