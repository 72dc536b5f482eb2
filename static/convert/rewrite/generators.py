"""Generator functions turned inside out: each `yield` becomes a call of a consumer, which is a parameter.

A second parameter tells whether to go on: the function returns where its consumer has left the loop.
"""

from __future__ import annotations

import ast
from typing import Any

from static.convert.rewrite.nodes import FUNCTIONS, at, load, negated, operator, store
from static.convert.rewrite.scopes import scope
from static.convert.rewrite.source import NotConvertedError

CONSUME, GOES_ON, EACH = "<consume>", "<goes on>", "<each>"


def turned_inside_out(node: ast.FunctionDef) -> None:
    """Change a generator function. Raises NotConvertedError where what a yield gives back is used."""
    node.args.posonlyargs[:0] = [ast.arg(CONSUME), ast.arg(GOES_ON)]
    node.body = [new for statement in node.body for new in _Yields().statements(statement)]


class _Yields(ast.NodeTransformer):
    def statements(self, statement: ast.stmt) -> list[ast.stmt]:
        """A statement without yields."""
        visited = self.visit(statement)
        return visited if isinstance(visited, list) else [visited]

    def visit(self, node: ast.AST) -> Any:
        """Any node but functions inside, which yield for themselves."""
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
            raise NotConvertedError(
                f"its line {node.lineno} takes what is sent to a generator, or awaits; write a loop and a function"
            )
        return node if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else super().visit(node)

    def visit_Try(self, node: ast.Try) -> Any:
        """A try, which would see what the consumer raises."""
        return self._left_late(node)

    def visit_With(self, node: ast.With) -> Any:
        """A with, which would see it too."""
        return self._left_late(node)

    def _left_late(self, node: ast.Try | ast.With) -> Any:
        """A block that Python leaves when the generator dies, and not when its consumer leaves the loop."""
        if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in scope([node])):
            raise NotConvertedError(f"its line {node.lineno} holds a yield in a try or a with; yield outside of it")
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        """`yield value` and `yield from values` as statements."""
        match node.value:
            case ast.Yield(value=value):
                new: list[ast.stmt] = _handed(value or ast.Constant(None))
            case ast.YieldFrom(value=values):
                new = [ast.For(store(EACH), values, _handed(load(EACH)), [])]
            case _:
                return self.generic_visit(node)
        return [at(statement, node) for statement in new]


def _handed(value: ast.expr) -> list[ast.stmt]:
    left = negated(operator("consumed", load(GOES_ON)))
    return [ast.Expr(operator("consumed", load(CONSUME), value)), ast.If(left, [ast.Return(None)], [])]
